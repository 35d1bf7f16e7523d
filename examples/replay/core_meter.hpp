#pragma once

#include <chrono>
#include <cstdint>

namespace replay {

/// What the core did in a run, and the real time that its calls took. A decision is whatever somebody is told: admitted,
/// refused, queued or released. Their time is that of all calls that lead to them: advance, dispatch, judge, readmit,
/// completed and release, also of those in which nobody is told anything, and of reading the clock twice for each stretch of
/// calls. Growing leases is neither.
struct core_effort {
  std::uint64_t decisions = 0;
  std::uint64_t stretches = 0;  ///< of calls that were timed together
  std::chrono::nanoseconds deciding{};
  std::uint64_t rescores = 0;
  std::chrono::nanoseconds rescoring{};
};

/// Adds the real time that it lives to a sum.
class stopwatch {
 public:
  explicit stopwatch(std::chrono::nanoseconds& sum) noexcept : sum_{sum}, start_{std::chrono::steady_clock::now()} {}
  /// For calls that decide.
  explicit stopwatch(core_effort& core) noexcept : stopwatch{core.deciding} { ++core.stretches; }
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() { sum_ += std::chrono::steady_clock::now() - start_; }

 private:
  std::chrono::nanoseconds& sum_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace replay
