#include "stopwatch.hpp"

#include <algorithm>
#include <array>
#include <limits>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace kvlane::bench {

namespace {

/// How often this thread has had to make way for another. Costs a system call.
long preemptions() noexcept {
#ifdef RUSAGE_THREAD
  rusage use{};
  if (getrusage(RUSAGE_THREAD, &use) == 0) return use.ru_nivcsw;
#endif
  return 0;
}

/// Whoever must make way is away for longer than this, so shorter stretches were not disturbed.
constexpr nanoseconds shortest_absence = std::chrono::microseconds{100};
/// The system is not asked before stretches like the last one when that was this short: the question would cost more.
constexpr nanoseconds short_stretch = std::chrono::microseconds{20};

}  // namespace

void stopwatch::start() noexcept {
  if (asks_) preempted_before_ = preemptions();
  since_ = std::chrono::steady_clock::now();
}

void stopwatch::stop(std::size_t rounds) noexcept {
  auto const passed = nanoseconds{std::chrono::steady_clock::now() - since_};
  auto const asked = asks_;
  asks_ = passed > short_stretch;
  rounds_ += rounds;
  if (passed > shortest_absence && (!asked || preemptions() != preempted_before_)) return;
  counted_rounds_ += rounds;
  sum_ += std::max(nanoseconds{0}, passed - own_cost());
}

nanoseconds stopwatch::total() const noexcept {
  if (counted_rounds_ == 0) return nanoseconds{std::numeric_limits<double>::quiet_NaN()};
  return sum_ * (static_cast<double>(rounds_) / static_cast<double>(counted_rounds_));
}

nanoseconds stopwatch::own_cost() noexcept {
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

}  // namespace kvlane::bench
