#pragma once

#include "command_line.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replay {

/// Options in the units in which they are typed, before they become a command.
struct typed {
  command result;
  synthetic_settings synthetic;
  bool wants_synthetic = false;
  bool skips_bad = false;
  bool quiet = false;
  bool progress = false;
  bool keeps_scores = false;
  std::vector<std::string> policies{"fcfs", "seed_order", "cache_aware"};
  std::string engine = "large";
  std::optional<double> decode_base, decode_request, decode_kv, prefill_base, prefill_token;
  std::optional<std::uint32_t> lanes;
  std::optional<std::uint64_t> kv_tokens, cache_tokens;
  std::string traces_folder;
  std::optional<double> max_wait_seconds;
  double spread_ms = 0;
  std::string json_file;
};

// Groups of options that several commands have.
void add_synthetic_options(CLI::App& app, typed& t);
void add_queue_options(CLI::App& app, typed& t);
void add_engine_options(CLI::App& app, typed& t);

/// \throws usage_error for what makes no sense
[[nodiscard]] command to_command(typed t);

}  // namespace replay
