#pragma once

#include "machines.hpp"
#include "statistics.hpp"
#include "workload.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace replay {

/// How often requests come, as a multiple of what the machine can serve.
inline constexpr double overload = 2;
/// How long they may wait.
inline constexpr kvlane::duration overload_max_wait = std::chrono::seconds{30};
/// How often the stream is repeated: long enough for the line to settle, and for some hundred refusals to be probed.
inline constexpr std::uint32_t overload_rounds = 8;

/// What became of the requests when waits were predicted in one way.
struct overload_outcome {
  std::string_view predictor;
  bool strict = false;  ///< nobody may be overtaken
  run_result result;

  /// Predicted to wait too long, whether let in all the same or not.
  [[nodiscard]] std::uint64_t refused() const noexcept;
  /// Share of the probed refusals that were wrong; 0 where none was probed.
  [[nodiscard]] double wrong() const noexcept;
  /// Of the requests that were let in, without the probes.
  [[nodiscard]] std::uint64_t let_in() const noexcept;
  /// Share of these that waited in vain.
  [[nodiscard]] double late() const noexcept;
};

/// One machine under overload, once for each predictor.
struct overload_trial {
  std::string title;
  std::string machine;
  std::string engine;
  std::size_t requests = 0;
  std::vector<overload_outcome> outcomes;
};

/// Repeats the stream, lets it arrive `overload` times as fast as kvlane's own queue (fcfs) can serve it on the machine, and
/// simulates that for each predictor of the library, for work_left with known lengths of replies, and without predictions;
/// each as the queue is by default, and with nobody overtaken.
/// \throws std::invalid_argument for a workload without two different arrivals
[[nodiscard]] overload_trial try_under_overload(workload const& w, machine const& m,
                                                std::uint32_t rounds = overload_rounds);

}  // namespace replay
