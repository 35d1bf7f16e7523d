#pragma once

#include "load_curve.hpp"
#include "statistics.hpp"

#include <kvlane/snapshot.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace replay {

/// Collects what happens in a run and makes a run_result of it.
class recorder {
 public:
  explicit recorder(std::uint64_t requests) { result_.requests = requests; }

  /// Time passes while the queue is as `now` says.
  void pass(nanoseconds time, kvlane::queue_snapshot const& now) noexcept {
    curve_.pass(time, now);
    auto const ns = static_cast<double>(time.count());
    lane_time_ += ns * now.lanes_busy / std::max(now.lanes, 1U);
    kv_time_ += ns * static_cast<double>(now.kv_tokens_used) / static_cast<double>(now.kv_capacity);
    result_.longest_line = std::max(result_.longest_line, now.waiting);
    result_.run_time += time;
  }

  void refused(kvlane::errc code) noexcept { ++result_.refused[static_cast<std::size_t>(code)]; }
  void overtaken(std::uint32_t times) noexcept { result_.most_overtaken = std::max(result_.most_overtaken, times); }
  void admitted(nanoseconds wait) {
    ++result_.admitted;
    waits_.push_back(wait);
  }
  /// A request was admitted that was let in although it was predicted to wait longer than `limit`.
  void probed(kvlane::fractional_ms predicted, nanoseconds wait, nanoseconds limit) {
    ++result_.probes;
    if (wait <= limit) ++result_.probes_in_time;
    probe_waits_.push_back(wait);
    misses_.push_back(std::chrono::duration_cast<nanoseconds>(predicted) - wait);
  }
  /// A prompt is computed for the first time.
  void prefilled(std::uint64_t prompt_tokens, std::uint64_t hit_tokens) noexcept {
    result_.prompt_tokens += prompt_tokens;
    result_.hit_tokens += hit_tokens;
  }
  void recomputed(std::uint64_t tokens) noexcept { result_.recomputed_tokens += tokens; }
  void first_token(nanoseconds since_arrival) { first_tokens_.push_back(since_arrival); }
  void preempted() noexcept { ++result_.preempted; }
  void completed(std::uint64_t output_tokens) noexcept {
    ++result_.completed;
    result_.output_tokens += output_tokens;
  }
  void cut_off(std::uint64_t output_tokens) noexcept {
    ++result_.cut_off;
    result_.output_tokens += output_tokens;
  }

  [[nodiscard]] std::uint64_t ended() const noexcept {
    auto ended = result_.completed + result_.cut_off;
    for (auto const n : result_.refused) ended += n;
    return ended;
  }

  [[nodiscard]] load_curve const& curve() const noexcept { return curve_; }
  [[nodiscard]] core_effort& core() noexcept { return result_.core; }

  [[nodiscard]] run_result result() && {
    auto const run = std::max(1.0, static_cast<double>(result_.run_time.count()));
    result_.lanes_used = lane_time_ / run;
    result_.kv_used = kv_time_ / run;
    result_.wait = summarise(std::move(waits_));
    result_.first_token = summarise(std::move(first_tokens_));
    result_.probe_wait = summarise(std::move(probe_waits_));
    result_.prediction_miss = summarise(std::move(misses_));
    return result_;
  }

 private:
  run_result result_;
  load_curve curve_;
  double lane_time_ = 0;
  double kv_time_ = 0;
  std::vector<nanoseconds> waits_;
  std::vector<nanoseconds> first_tokens_;
  std::vector<nanoseconds> probe_waits_;
  std::vector<nanoseconds> misses_;
};

}  // namespace replay
