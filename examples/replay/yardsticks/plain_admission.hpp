#pragma once

#include "simulation.hpp"

#include <cstdint>

namespace replay {

/// A plain semaphore in front of the engine: as many requests as there are lanes run, the others wait first come, first
/// served, in a line of as many places as kvlane's, until their max_wait is over. It knows nothing of KV tokens: a prompt
/// whose KV does not fit keeps those behind it waiting, nothing is kept free for replies, and where KV runs out the engine
/// preempts and computes again. It predicts nothing.
[[nodiscard]] simulation_settings with_semaphore(simulation_settings s);

/// No admission control: everything that arrives goes to the engine, which runs whatever has room for its prompt, as many
/// as there are `requests`, first come, first served, for as long as it takes. Nobody is ever refused or leaves.
[[nodiscard]] simulation_settings without_admission(simulation_settings s, std::uint32_t requests);

}  // namespace replay
