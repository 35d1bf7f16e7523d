#pragma once

#include <kvlane/fwd.hpp>

#include <optional>

namespace kvlane::detail {

/// How fast the line moves, and how many were sent away since it last did: what Retry-After is made of.
///
/// The pace is an average (alpha 0.25) of the gaps between admissions, each gap within one period in which somebody was
/// waiting all the time.
class drain_pace {
 public:
  /// An admission; `from_line` says whether somebody was waiting just before it.
  void admitted(time_point now, bool from_line) noexcept {
    refusals_ = 0;
    if (!from_line) return;
    if (last_) {
      auto const gap = fractional_ms{now - *last_};
      average_ = average_ ? *average_ * (1.0 - alpha) + gap * alpha : gap;
    }
    last_ = now;
  }
  /// An admission while nobody waited. A store that changes nothing still costs, so there is none.
  void admitted_at_once() noexcept {
    if (refusals_ != 0) refusals_ = 0;
  }
  /// Nobody waits any more.
  void line_emptied() noexcept { last_.reset(); }

  /// One more request is sent away with advice to come back.
  void refused() noexcept { ++refusals_; }

  /// `base`, and as many gaps more as refusals since the last admission, so that not all come back together.
  [[nodiscard]] fractional_ms spread(fractional_ms base) const noexcept {
    return base + static_cast<double>(refusals_) * average_.value_or(fractional_ms{});
  }
  [[nodiscard]] std::optional<fractional_ms> average() const noexcept { return average_; }

 private:
  static constexpr double alpha = 0.25;

  std::optional<fractional_ms> average_;
  std::optional<time_point> last_;
  std::uint64_t refusals_ = 0;
};

}  // namespace kvlane::detail
