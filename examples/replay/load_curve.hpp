#pragma once

#include <kvlane/snapshot.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

namespace replay {

using std::chrono::nanoseconds;

/// How long the line was and how busy the engine, over a run of any length, in at most 400 points. A point is the mean over
/// an interval; the intervals are equally long, and twice as long whenever the points would become too many.
class load_curve {
 public:
  static constexpr std::size_t most_points = 400;
  static constexpr nanoseconds shortest_interval = std::chrono::milliseconds{10};

  struct point {
    double waiting = 0;
    double lanes_busy = 0;
    double kv_tokens = 0;  ///< reserved
  };

  /// Time passes while the queue is as `now` says.
  void pass(nanoseconds time, kvlane::queue_snapshot const& now) noexcept;

  [[nodiscard]] nanoseconds interval() const noexcept { return interval_; }
  /// In order; the last interval may have been shorter.
  [[nodiscard]] std::vector<point> points() const;

 private:
  struct sums {
    nanoseconds time{};
    double waiting = 0, lanes_busy = 0, kv_tokens = 0;
  };
  void halve() noexcept;

  std::array<sums, most_points> sums_{};
  std::size_t current_ = 0;
  nanoseconds interval_ = shortest_interval;
};

}  // namespace replay
