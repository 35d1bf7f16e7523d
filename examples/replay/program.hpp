#pragma once

#include "progress_bar.hpp"

#include <ostream>

namespace replay {

/// Where the program writes, and whether a person reads `err` as it comes.
struct console {
  std::ostream& out;
  std::ostream& err;
  progress_display default_progress = progress_display::off;
};

/// The whole program but its process. Returns the exit status: 0, 1 for input that cannot be replayed, 2 for a command
/// line that makes no sense. With a status other than 0 nothing that was wrong has been replayed. `validate` returns 1, too,
/// when a simulated figure is too far from a measured one, and 2 when there are no measurements.
int run_program(int argc, char const* const* argv, console const& c);

}  // namespace replay
