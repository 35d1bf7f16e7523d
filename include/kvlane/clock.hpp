#pragma once

#include <kvlane/fwd.hpp>

#include <atomic>
#include <memory>

namespace kvlane {

/// The clock of production: `std::chrono::steady_clock`.
struct steady {
  time_point operator()() const noexcept { return std::chrono::steady_clock::now(); }
};

/// `at + wait`, or `time_point::max()` where that would overflow: `forever` from any moment is no deadline at all.
/// \param wait may be negative; the result is then clamped at `time_point::min()`.
[[nodiscard]] constexpr time_point saturating_add(time_point at, duration wait) noexcept {
  auto const since = at.time_since_epoch();
  if (wait == forever || (wait > duration::zero() && since > duration::max() - wait)) return time_point::max();
  if (wait < duration::zero() && since < duration::min() - wait) return time_point::min();
  return at + wait;
}

/// `later - earlier`, clamped at both ends of what a duration can hold. `time_point::max()` is no moment: from there to
/// anywhere it is `forever`.
[[nodiscard]] constexpr duration saturating_sub(time_point later, time_point earlier) noexcept {
  if (later == time_point::max()) return forever;
  auto const from = earlier.time_since_epoch();
  auto const to = later.time_since_epoch();
  if (from < duration::zero() && to > duration::max() + from) return duration::max();
  if (from > duration::zero() && to < duration::min() + from) return duration::min();
  return to - from;
}

/// A clock that stands still until it is told to move. Copies share their time, so a test keeps one copy and gives the
/// queue another:
///
///     kvlane::manual_clock clock;
///     kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock>
///         queue{{.lanes = 1}, {}, {}, clock};
///     clock.advance(std::chrono::seconds{5});
///     queue.expire();
///
/// Thread safety: distinct objects and shared objects are safe. It wakes nobody: after `advance` the owner of the time
/// calls `expire()`.
class manual_clock {
 public:
  /// Starts one hour after the clock's epoch, so that moments before it exist. \throws std::bad_alloc
  manual_clock() : manual_clock(time_point{std::chrono::hours{1}}) {}
  /// \throws std::bad_alloc
  explicit manual_clock(time_point start)
      : now_{std::make_shared<std::atomic<duration::rep>>(start.time_since_epoch().count())} {}

  time_point operator()() const noexcept { return time_point{duration{now_->load(std::memory_order_relaxed)}}; }

  /// Moves the clock by `by`, also backwards (which the core answers by standing still).
  void advance(duration by) noexcept { now_->fetch_add(by.count(), std::memory_order_relaxed); }

  /// Sets the clock to `to`.
  void set(time_point to) noexcept { now_->store(to.time_since_epoch().count(), std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<duration::rep>> now_;
};

}  // namespace kvlane
