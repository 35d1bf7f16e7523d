#pragma once

#include <kvlane/error.hpp>
#include <kvlane/fwd.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kvlane {

/// Counts of whole numbers in buckets whose upper bounds are 0, 1, 2, 4, 8 and so on; the last bucket has no bound.
template <std::size_t Buckets>
class log2_histogram {
 public:
  static_assert(Buckets >= 3);

  constexpr void observe(std::uint64_t value) noexcept {
    auto const bucket = value == 0 ? 0 : static_cast<std::size_t>(std::bit_width(value - 1)) + 1;
    ++counts_[std::min(bucket, Buckets - 1)];
    sum_ = value > ~std::uint64_t{0} - sum_ ? ~std::uint64_t{0} : sum_ + value;
  }

  /// As so many calls of observe(0).
  constexpr void observe_zero(std::uint64_t times) noexcept { counts_[0] += times; }

  /// Values seen in each bucket (not cumulated).
  [[nodiscard]] constexpr std::array<std::uint64_t, Buckets> const& counts() const noexcept { return counts_; }
  /// The largest value that bucket `index` counts; the highest number for the last one.
  [[nodiscard]] static constexpr std::uint64_t upper_bound(std::size_t index) noexcept {
    if (index + 1 >= Buckets) return ~std::uint64_t{0};
    return index == 0 ? 0 : std::uint64_t{1} << (index - 1);
  }
  /// Sum of all values, saturated.
  [[nodiscard]] constexpr std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] constexpr std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (auto const n : counts_) all += n;
    return all;
  }

 private:
  std::array<std::uint64_t, Buckets> counts_{};
  std::uint64_t sum_ = 0;
};

/// How requests ended, counted since the queue was made. Every newcomer and every readmission that is tried gets one outcome
/// or waits: newcomers + readmissions tried = admitted + refused + cancelled + waiting. `readmitted` counts those that gave
/// their lease back; one that is refused keeps it and counts in `refused` alone.
struct outcome_counters {
  std::uint64_t admitted = 0;               ///< leases handed out
  std::uint64_t admitted_from_line = 0;     ///< of these, to requests that had waited
  std::uint64_t readmitted = 0;             ///< preempted work that joined the line again
  std::uint64_t cancelled = 0;              ///< waiters whose owner gave them up
  std::uint64_t released = 0;               ///< leases given back, for good or for readmission
  std::uint64_t grown = 0;                  ///< leases that got more tokens
  std::uint64_t growth_refused = 0;         ///< leases that asked for more tokens and did not get them
  std::uint64_t samples_ignored = 0;        ///< service samples that were NaN, infinite, negative or empty
  std::array<std::uint64_t, 10> refused{};  ///< by errc; see refused_for

  [[nodiscard]] constexpr std::uint64_t refused_for(errc code) const noexcept {
    return refused[static_cast<std::size_t>(code)];
  }
  [[nodiscard]] constexpr std::uint64_t refused_in_all() const noexcept {
    std::uint64_t all = 0;
    for (auto const n : refused) all += n;
    return all;
  }
};

/// The queue at one moment, taken under its lock: all figures belong together.
struct queue_snapshot {
  std::uint32_t lanes = 0;
  std::uint32_t lanes_busy = 0;
  std::uint64_t kv_capacity = 0;     ///< tokens
  std::uint64_t kv_tokens_used = 0;  ///< tokens reserved by leases
  std::uint64_t waiting = 0;         ///< requests in line
  std::uint64_t waiting_tokens = 0;  ///< their demands, saturated
  std::uint64_t max_waiting = 0;     ///< places in line
  std::uint64_t turn = 0;            ///< admissions out of a non-empty line
  bool held = false;                 ///< a dispatch_hold lives
  bool draining = false;
  bool closed = false;
  outcome_counters counters;
  log2_histogram<20> wait_ms;    ///< waits of admitted requests, in milliseconds rounded up
  log2_histogram<14> overtakes;  ///< how often admitted requests had been overtaken
};

/// One waiter, as seen from outside.
struct waiter_info {
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint64_t demand = 0;  ///< KV tokens
  std::uint32_t priority = 0;
  std::size_t place = 0;  ///< how many stand before it in the order, whether or not they fit
  fractional_ms waited{};
  std::uint32_t overtaken = 0;  ///< admissions of later requests of its priority or below, since it joined
  blocked_on blocked = blocked_on::nothing;
};

}  // namespace kvlane
