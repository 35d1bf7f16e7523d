#pragma once

#include "command_line.hpp"
#include "typed_options.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace replay {

/// Options of `sweep` as they are typed.
struct sweep_typed {
  sweep_typed();

  typed common;
  sweep_settings sweep;
  std::string clients = "leave";
  std::uint32_t let_in_one_of = 20;
  bool timing = false;
  std::string report_file;
};

/// The command `sweep`; `t` must live until the command line has been read.
CLI::App& add_sweep(CLI::App& app, sweep_typed& t);

/// \throws usage_error for what makes no sense
[[nodiscard]] sweep_command to_sweep(sweep_typed t);

}  // namespace replay
