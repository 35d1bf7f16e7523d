#pragma once

#include "simulation.hpp"
#include "sweep.hpp"
#include "synthetic.hpp"
#include "trace_reader.hpp"
#include "workload.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace replay {

enum class progress_wish : std::uint8_t { where_a_terminal_is, always, never };

/// What the command line asks for.
struct command {
  std::vector<std::string> traces;
  std::optional<synthetic_settings> synthetic;
  reshaping arrivals;
  simulation_settings simulation;
  std::vector<policy> policies;
  bad_lines bad = bad_lines::refuse;
  std::optional<std::string> json_file;
  progress_wish progress = progress_wish::where_a_terminal_is;
};

/// Asks for measurements beside simulations.
struct validate_command {
  std::optional<std::string> traces_folder;
  std::optional<std::string> json_file;
};

/// Puts predictors of waits on trial.
struct predict_command {
  std::optional<std::string> traces_folder;
  std::optional<std::string> json_file;
};

/// Compares policies under rising load.
struct sweep_command {
  command what;                                 ///< inputs, and where to write
  sweep_settings how;                           ///< its simulation is that of `what`
  bool timing = false;                          ///< tell how fast decisions were
  std::optional<std::string> report_file = {};  ///< for a page of charts
};

/// A command line that makes no sense; the text says what to do instead.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Text that was asked for instead of a run.
struct help_text {
  std::string text;
};

using parsed_command = std::variant<command, validate_command, predict_command, sweep_command, help_text>;

/// The words of a command line as one would type them in a shell.
[[nodiscard]] std::string typed_line(int argc, char const* const* argv);

/// Reads a command line. \throws usage_error
[[nodiscard]] parsed_command parse_command_line(int argc, char const* const* argv);

}  // namespace replay
