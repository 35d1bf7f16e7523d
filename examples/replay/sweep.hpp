#pragma once

#include "load_curve.hpp"
#include "simulation.hpp"
#include "sweep_figures.hpp"
#include "workload.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace replay {

/// What a sweep goes through.
struct sweep_settings {
  simulation_settings simulation = {};  ///< limits::max_wait is finite
  std::vector<policy> policies = {};
  std::vector<double> loads = {};  ///< multiples of the capacity, each above 0
  std::uint32_t rounds = 4;        ///< how often the stream is repeated, with other content each time
  std::uint32_t threads = 1;       ///< that share the runs; results do not depend on it
};

/// \throws std::invalid_argument for settings that make no sense, naming them
void validate(sweep_settings const& s);

/// One policy at one load.
struct sweep_run {
  policy used{};
  double load = 0;
  sweep_figures figures;
  nanoseconds interval{};  ///< of the points
  std::vector<load_curve::point> points;
};

/// One workload under all loads and policies.
struct sweep_outcome {
  std::string title;
  std::uint64_t requests = 0;
  nanoseconds
      burst_time{};  ///< in which the machine serves all requests if they come at once, and in the order they came
  std::vector<sweep_run> runs;  ///< by load, then by policy, as they were given

  /// Requests a second, by the burst.
  [[nodiscard]] double capacity() const noexcept;
};

/// Measures the capacity of the machine, then lets the same requests arrive at each load, once for each policy.
/// \throws std::invalid_argument as validate, and for a workload without two different arrivals
[[nodiscard]] sweep_outcome sweep(workload w, sweep_settings const& s);

}  // namespace replay
