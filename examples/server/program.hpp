#pragma once

#include <ostream>

namespace server {

struct console {
  std::ostream& out;
  std::ostream& err;
};

/// The whole program but its process: serves until SIGTERM or SIGINT, lets what runs and waits come to its end, and
/// returns the exit status: 0, 1 if it could not serve, 2 for a command line that makes no sense. A second signal ends
/// the process at once, with 128 and its number.
int run_program(int argc, char const* const* argv, console const& c);

}  // namespace server
