#include "load_curve.hpp"

#include <algorithm>

namespace replay {

void load_curve::pass(nanoseconds time, kvlane::queue_snapshot const& now) noexcept {
  while (time > nanoseconds::zero()) {
    if (sums_[current_].time == interval_ && ++current_ == most_points) halve();
    auto& s = sums_[current_];
    auto const part = std::min(time, interval_ - s.time);
    auto const weight = static_cast<double>(part.count());
    s.time += part;
    s.waiting += weight * static_cast<double>(now.waiting);
    s.lanes_busy += weight * now.lanes_busy;
    s.kv_tokens += weight * static_cast<double>(now.kv_tokens_used);
    time -= part;
  }
}

/// Two intervals become one.
void load_curve::halve() noexcept {
  for (std::size_t i = 0; i != most_points / 2; ++i) {
    auto const& a = sums_[2 * i];
    auto const& b = sums_[2 * i + 1];
    sums_[i] = {.time = a.time + b.time,
                .waiting = a.waiting + b.waiting,
                .lanes_busy = a.lanes_busy + b.lanes_busy,
                .kv_tokens = a.kv_tokens + b.kv_tokens};
  }
  std::fill(sums_.begin() + most_points / 2, sums_.end(), sums{});
  current_ = most_points / 2;
  interval_ *= 2;
}

std::vector<load_curve::point> load_curve::points() const {
  std::vector<point> all;
  for (std::size_t i = 0; i <= current_ && i != most_points; ++i) {
    auto const& s = sums_[i];
    if (s.time == nanoseconds::zero()) break;
    auto const time = static_cast<double>(s.time.count());
    all.push_back({.waiting = s.waiting / time, .lanes_busy = s.lanes_busy / time, .kv_tokens = s.kv_tokens / time});
  }
  return all;
}

}  // namespace replay
