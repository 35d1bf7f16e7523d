#pragma once

#include "simulation.hpp"
#include "statistics.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replay {

/// The results of one workload, a run for each policy.
struct comparison {
  std::string title;
  std::optional<std::uint64_t> skipped_lines;  ///< absent: none were to be skipped
  struct column {
    policy used;
    run_result result;
  };
  std::vector<column> columns;
};

/// A table with a column for each policy. Reasons of refusal that do not occur have no row.
[[nodiscard]] std::string table_of(comparison const& c);

/// The line that says under which settings a table came about.
[[nodiscard]] std::string describe(simulation_settings const& s);

/// In seconds.
[[nodiscard]] nlohmann::ordered_json json_of(time_summary const& t);

/// Everything in the tables, unrounded; times in seconds. Keys come in a fixed order.
[[nodiscard]] nlohmann::ordered_json json_of(simulation_settings const& s, std::vector<comparison> const& all);

}  // namespace replay
