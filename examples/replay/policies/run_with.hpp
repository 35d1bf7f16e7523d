#pragma once

#include "replay_run.hpp"
#include "simulation.hpp"

#include <utility>

namespace replay {

/// Runs a workload with an order of kvlane's line.
template <class Policy>
[[nodiscard]] run_details run_with(Policy p, workload const& w, simulation_settings const& s,
                                   progress_listener const& progress) {
  replay_run<Policy> run{w, s, std::move(p)};
  auto const result = run.run(progress);
  return {.result = result, .fates = run.fates(), .curve = run.curve()};
}

}  // namespace replay
