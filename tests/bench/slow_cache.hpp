#pragma once

#include <kvlane/fwd.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace kvlane::bench {

/// A prefix cache that takes 5 us to say what it would save, by the clock, however fast the machine is.
class slow_cache {
 public:
  explicit slow_cache(std::shared_ptr<std::atomic<std::uint64_t>> epoch) : epoch_{std::move(epoch)} {}

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_->load(std::memory_order_relaxed); }
  [[nodiscard]] std::optional<std::uint64_t> saved_cost(std::span<token_id const> prompt) const noexcept {
    auto const until = std::chrono::steady_clock::now() + std::chrono::microseconds{5};
    while (std::chrono::steady_clock::now() < until) {
    }
    return static_cast<std::uint64_t>(prompt.back()) % 1'000'000;
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> epoch_;
};

}  // namespace kvlane::bench
