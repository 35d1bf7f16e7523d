#pragma once

#include "chart_page.hpp"
#include "sweep.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace replay {

/// Where a sweep comes from, for who reads of it later.
struct sweep_origin {
  std::uint64_t seed = 1;
  std::string command_line = {};
};

/// The charts of a sweep, workload after workload.
[[nodiscard]] chart_page page_of(sweep_settings const& s, std::vector<sweep_outcome> const& all,
                                 sweep_origin const& from);

}  // namespace replay
