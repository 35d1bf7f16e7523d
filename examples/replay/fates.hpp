#pragma once

#include <kvlane/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace replay {

using std::chrono::nanoseconds;

enum class ending : std::uint8_t {
  completed,
  cut_off,    ///< its reply ended early: preempted, and too large to fit ever again
  refused,    ///< at arrival
  timed_out,  ///< in line
};

/// What became of one request. Moments count from the first arrival of the workload.
struct request_fate {
  ending end = ending::refused;
  kvlane::errc why{};     ///< of a refusal
  nanoseconds arrived{};  ///< its last try; the first is in the workload
  std::uint32_t tries = 0;
  bool let_in = false;  ///< it was to be refused, and was let in to see whether that would have been right
  std::optional<nanoseconds> admitted = {};
  std::optional<nanoseconds> first_token = {};
  std::uint64_t computed_tokens = 0;    ///< of its prompt, when it was computed first
  std::uint64_t recomputed_tokens = 0;  ///< after preemptions
  std::uint32_t generated_tokens = 0;

  [[nodiscard]] bool had_token_within(nanoseconds wait) const noexcept {
    return first_token && *first_token - arrived <= wait;
  }
  /// It was served as its client wished.
  [[nodiscard]] bool good(nanoseconds wait) const noexcept {
    return end == ending::completed && had_token_within(wait);
  }
};

}  // namespace replay
