#pragma once

#include "simulation.hpp"
#include "yardsticks/server_model.hpp"
#include "yardsticks/server_run.hpp"

#include <memory>

namespace replay {

/// Whether a policy is a server of its own, and no order of kvlane's line.
[[nodiscard]] bool is_server(policy p) noexcept;

/// The server that a policy names, with the lanes, KV tokens and costs of the settings; the rest of them is kvlane's.
/// \throws std::invalid_argument for a policy that is none, and for sizes that the server cannot have
[[nodiscard]] std::unique_ptr<server_model> make_server(policy p, workload const& w, simulation_settings const& s);

/// Runs a workload on such a server. \throws std::invalid_argument as make_server and validate
[[nodiscard]] server_outcome simulate_server(workload const& w, policy p, simulation_settings const& s,
                                             progress_listener const& progress = {});

}  // namespace replay
