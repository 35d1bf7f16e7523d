#pragma once

#include <kvlane/request.hpp>
#include <kvlane/work.hpp>

#include <array>
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

  /// Saturated.
  [[nodiscard]] work ahead_of(std::uint32_t priority) const noexcept {
    auto sum = running_;
    for (auto p = priority; p <= highest_priority; ++p) sum.add(waiting_[p]);
    return sum.total();
  }

 private:
  work_sum running_;
  std::array<work_sum, highest_priority + 1> waiting_{};
};

}  // namespace kvlane::detail
