#pragma once

#include "simulation.hpp"
#include "workload.hpp"

#include <cstdint>

namespace replay {

/// Repeats a stream, each time with other prompts of the same shape, a mean gap after the last arrival.
[[nodiscard]] workload in_rounds(workload w, std::uint32_t rounds);

/// What a machine can serve of a stream: all of it, in order of arrival, when it comes at once and nobody is refused.
struct capacity_measure {
  nanoseconds burst_time{};      ///< which that takes
  double speed_at_capacity = 0;  ///< so many times as fast the stream would come as it can be served: load 1
};

/// \throws std::invalid_argument for a workload without two different arrivals, and for an engine that takes no time
[[nodiscard]] capacity_measure measure_capacity(workload const& w, simulation_settings s);

}  // namespace replay
