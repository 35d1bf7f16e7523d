#pragma once

#include "catalog.hpp"

#include <chrono>
#include <cstddef>

namespace kvlane::bench {

/// Adds up the time of stretches of work, less what starting and stopping cost: many short stretches can be measured. A
/// stretch in which this thread had to make way for another is left out, as far as the system tells of it.
class stopwatch {
 public:
  void start() noexcept;
  /// `rounds` operations have been done since `start`.
  void stop(std::size_t rounds) noexcept;
  /// The time of all rounds, at the pace of those that nobody disturbed; not a number when there were none.
  [[nodiscard]] nanoseconds total() const noexcept;

  /// What an empty stretch shows: the median of many.
  [[nodiscard]] static nanoseconds own_cost() noexcept;

 private:
  std::chrono::steady_clock::time_point since_;
  nanoseconds sum_{};
  std::size_t rounds_ = 0;
  std::size_t counted_rounds_ = 0;
  long preempted_before_ = 0;
  bool asks_ = true;
};

/// Times `rounds` calls of `operation` in one stretch.
template <class Operation>
[[nodiscard]] nanoseconds time_of(std::size_t rounds, Operation&& operation) {
  stopwatch watch;
  watch.start();
  for (std::size_t i = 0; i != rounds; ++i) operation();
  watch.stop(rounds);
  return watch.total();
}

}  // namespace kvlane::bench
