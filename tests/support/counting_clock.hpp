#pragma once

#include <kvlane/clock.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace kvlane::test {

/// A manual clock that counts how often it is read. Copies share their time and their count.
class counting_clock {
 public:
  time_point operator()() const noexcept {
    reads_->fetch_add(1, std::memory_order_relaxed);
    return clock_();
  }

  void advance(duration by) noexcept { clock_.advance(by); }
  /// How often it was read since it was made, or since the last call of this.
  [[nodiscard]] std::uint64_t take_reads() noexcept { return reads_->exchange(0, std::memory_order_relaxed); }

 private:
  manual_clock clock_;
  std::shared_ptr<std::atomic<std::uint64_t>> reads_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace kvlane::test
