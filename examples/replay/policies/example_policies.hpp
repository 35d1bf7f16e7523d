#pragma once

#include "simulation.hpp"

namespace replay {

/// Runs a workload with one of the orders of this folder, which are made of what the library offers for custom ones.
/// \throws std::invalid_argument for a policy that is not among them
[[nodiscard]] run_details run_example_policy(workload const& w, policy p, simulation_settings const& s,
                                             progress_listener const& progress);

}  // namespace replay
