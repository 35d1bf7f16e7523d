#pragma once

#include <kvlane/fwd.hpp>

#include <algorithm>
#include <cstdint>

namespace kvlane {

/// A budget of KV tokens: what is reserved, and what is free. Holds no lock and hands out no handles; a queue ties each
/// reservation to a lease.
///
///     kvlane::token_budget budget{1024};
///     budget.try_reserve(400 + 128);   // true; 496 are free
///     budget.release(528);
///
/// Capacity may be lowered below what is reserved: then nothing is free until enough has come back.
/// Thread safety: distinct objects are safe, shared objects are not.
class token_budget {
 public:
  constexpr explicit token_budget(std::uint64_t capacity) noexcept : capacity_{capacity} {}

  [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] constexpr std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] constexpr std::uint64_t free() const noexcept { return used_ < capacity_ ? capacity_ - used_ : 0; }
  /// What is free when `reserve` tokens of it are kept back.
  [[nodiscard]] constexpr std::uint64_t free_beyond(std::uint64_t reserve) const noexcept {
    return free() > reserve ? free() - reserve : 0;
  }

  /// Reserves `tokens` if so many are free. Says whether it did.
  [[nodiscard]] constexpr bool try_reserve(std::uint64_t tokens) noexcept {
    if (tokens > free()) return false;
    used_ += tokens;
    return true;
  }

  /// Gives `tokens` back. Precondition: at least so many are reserved.
  constexpr void release(std::uint64_t tokens) noexcept {
    KVLANE_ASSERT(tokens <= used_, "more KV tokens were released than are reserved");
    used_ -= tokens;
  }

  constexpr void resize(std::uint64_t capacity) noexcept { capacity_ = capacity; }

 private:
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
};

}  // namespace kvlane
