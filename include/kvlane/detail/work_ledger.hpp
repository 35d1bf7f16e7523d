#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <kvlane/request.hpp>
#include <kvlane/work.hpp>

namespace kvlane::detail {

__extension__ typedef unsigned __int128 wide_sum;  // no sum of 64-bit figures that a machine can hold overflows it

[[nodiscard]] constexpr std::uint64_t saturated(wide_sum sum) noexcept {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  return sum > most ? most : static_cast<std::uint64_t>(sum);
}

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
    for (auto p = priority; p <= highest_priority; ++p) {
      sum.prompt += waiting_[p].prompt;
      sum.decode += waiting_[p].decode;
    }
    return {.prompt_tokens = saturated(sum.prompt), .decode_tokens = saturated(sum.decode)};
  }

 private:
  struct wide_work {
    wide_sum prompt = 0;
    wide_sum decode = 0;
    void add(work const& w) noexcept {
      prompt += w.prompt_tokens;
      decode += w.decode_tokens;
    }
    void subtract(work const& w) noexcept {
      prompt -= w.prompt_tokens;
      decode -= w.decode_tokens;
    }
  };

  wide_work running_;
  std::array<wide_work, highest_priority + 1> waiting_{};
};

}  // namespace kvlane::detail
