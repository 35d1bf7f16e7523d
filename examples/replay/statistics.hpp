#pragma once

#include "core_meter.hpp"

#include <kvlane/error.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace replay {

using std::chrono::nanoseconds;

[[nodiscard]] constexpr double seconds(nanoseconds t) noexcept { return std::chrono::duration<double>{t}.count(); }
/// 0 where there is nothing to be a part of.
[[nodiscard]] constexpr double ratio(double part, double whole) noexcept { return whole > 0 ? part / whole : 0.0; }
[[nodiscard]] constexpr double per_second(std::uint64_t count, nanoseconds time) noexcept {
  return ratio(static_cast<double>(count), seconds(time));
}

/// What a table shows of many times. All 0 when there were none.
struct time_summary {
  nanoseconds mean{}, p50{}, p95{}, p99{}, max{};
};

/// The mean is rounded down to nanoseconds; percentile p of n times is the one at place ceil(p * n) in ascending order.
[[nodiscard]] time_summary summarise(std::vector<nanoseconds> times);

inline constexpr std::size_t error_codes = 10;  // kvlane::errc counts from 1

/// What one run came to.
struct run_result {
  std::uint64_t requests = 0;
  std::uint64_t admitted = 0;   ///< requests that ran, each counted once
  std::uint64_t completed = 0;  ///< of these, those that got their whole reply
  std::uint64_t cut_off = 0;    ///< of these, those that ended early: preempted, and too large to fit ever again
  std::uint64_t preempted = 0;  ///< preemptions after which the request waited again
  std::array<std::uint64_t, error_codes> refused{};  ///< by errc
  std::uint64_t probes = 0;                          ///< let in against the prediction, see refusal_probes
  std::uint64_t probes_in_time = 0;                  ///< of these, waited no longer than the limit all the same
  std::uint64_t longest_line = 0;                    ///< most requests that waited at once
  std::uint32_t most_overtaken = 0;                  ///< most times that an admitted request had been overtaken
  std::uint64_t prompt_tokens = 0;                   ///< of the requests that ran
  std::uint64_t hit_tokens = 0;                      ///< of these, found in the prefix cache at the first prefill
  std::uint64_t recomputed_tokens = 0;               ///< computed again after preemptions
  std::uint64_t output_tokens = 0;
  nanoseconds run_time{};    ///< from the first arrival until the last request has gone
  double lanes_used = 0;     ///< share of the lanes, over the run time
  double kv_used = 0;        ///< share of the KV tokens that was reserved, over the run time
  time_summary wait;         ///< from arrival to admission, of the requests that ran
  time_summary first_token;  ///< from arrival to the first token, of the requests that ran
  time_summary probe_wait;   ///< of the probes, from arrival to admission
  /// Predicted less true wait of the probes.
  time_summary prediction_miss;
  core_effort core;  ///< in real time: this alone differs between equal runs

  [[nodiscard]] std::uint64_t refused_for(kvlane::errc code) const noexcept {
    return refused[static_cast<std::size_t>(code)];
  }
  [[nodiscard]] double hit_share() const noexcept;
  [[nodiscard]] double output_per_second() const noexcept;
  [[nodiscard]] double tokens_per_second() const noexcept;  ///< prompts, cached parts too, and replies
};

}  // namespace replay
