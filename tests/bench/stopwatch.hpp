#pragma once

#include "catalog.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace kvlane::bench {

/// Adds up the time between `start` and `stop`, less what the two cost themselves: many short stretches can be measured.
class stopwatch {
 public:
  void start() noexcept { since_ = std::chrono::steady_clock::now(); }
  void stop() noexcept {
    sum_ += nanoseconds{std::chrono::steady_clock::now() - since_};
    ++stretches_;
  }
  [[nodiscard]] nanoseconds total() const noexcept {
    return std::max(nanoseconds{0}, sum_ - static_cast<double>(stretches_) * own_cost());
  }

  /// What an empty stretch shows: the median of many.
  [[nodiscard]] static nanoseconds own_cost() noexcept {
    static nanoseconds const cost = [] {
      std::array<nanoseconds, 4001> seen{};
      for (auto& one : seen) {
        auto const since = std::chrono::steady_clock::now();
        one = std::chrono::steady_clock::now() - since;
      }
      std::ranges::nth_element(seen, seen.begin() + seen.size() / 2);
      return seen[seen.size() / 2];
    }();
    return cost;
  }

 private:
  std::chrono::steady_clock::time_point since_;
  nanoseconds sum_{};
  std::size_t stretches_ = 0;
};

/// Times `rounds` calls of `operation` in one stretch.
template <class Operation>
[[nodiscard]] nanoseconds time_of(std::size_t rounds, Operation&& operation) {
  stopwatch watch;
  watch.start();
  for (std::size_t i = 0; i != rounds; ++i) operation();
  watch.stop();
  return watch.total();
}

}  // namespace kvlane::bench
