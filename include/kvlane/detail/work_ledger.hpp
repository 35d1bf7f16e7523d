#pragma once

#include <kvlane/request.hpp>
#include <kvlane/work.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kvlane::detail {

/// The work that lies ahead of a newcomer: of everyone who runs, and of those who wait at its priority or above.
class work_ledger {
 public:
  void start(work const& w) noexcept { running_.add(w); }
  void finish(work const& w) noexcept { running_.subtract(w); }
  void queue(std::uint32_t priority, work const& w) noexcept { waiting_[priority].add(w); }
  void unqueue(std::uint32_t priority, work const& w) noexcept { waiting_[priority].subtract(w); }

  /// Of everyone who runs. Saturated.
  [[nodiscard]] work running() const noexcept { return running_.total(); }
  /// Saturated. `occupied` may leave out priorities (bit p) at which nobody waits, to spare looking at them.
  [[nodiscard]] work ahead_of(std::uint32_t priority, std::uint32_t occupied = ~std::uint32_t{0}) const noexcept {
    auto sum = running_;
    constexpr auto all = (std::uint32_t{2} << highest_priority) - 1;
    for (auto left = (occupied & all) >> priority << priority; left != 0; left &= left - 1)
      sum.add(waiting_[static_cast<std::size_t>(std::countr_zero(left))]);
    return sum.total();
  }

 private:
  work_sum running_;
  std::array<work_sum, highest_priority + 1> waiting_{};
};

}  // namespace kvlane::detail
