#pragma once

#include "sweep.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace replay {

/// A row for each load and policy, under the capacity. With `timing` the decisions per second are in it, which differ
/// between equal runs; everything else is equal, byte for byte.
[[nodiscard]] std::string table_of(sweep_outcome const& o, sweep_settings const& s, bool timing);

/// What the columns mean, and what held for all runs.
[[nodiscard]] std::string legend_of(sweep_settings const& s);

/// Everything in the tables but the timing, unrounded, with curves and histograms; sweep_json.cpp describes its shape.
[[nodiscard]] nlohmann::ordered_json json_of(sweep_settings const& s, std::vector<sweep_outcome> const& all);

}  // namespace replay
