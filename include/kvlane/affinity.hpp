#pragma once

#include <kvlane/fwd.hpp>

#include <cstdint>
#include <span>

namespace kvlane {

/// How much of a prompt one stage of a pipeline finds in its prefix cache.
struct stage_affinity {
  std::uint32_t stage = 0;
  std::uint64_t matched_tokens = 0;
  std::uint64_t cost_per_token = 0;  ///< of computing a token at this stage, for instance its number of layers
  std::uint64_t restore_cost = 0;    ///< of bringing the match back into the cache
  std::uint64_t cache_epoch = 0;     ///< state of the cache that was looked at
};

/// What the prefix caches of all stages save: for each stage matched tokens times cost per token, less the cost of
/// restoring them and never below 0; the sum is clamped to 2^48 - 1. Never overflows.
[[nodiscard]] constexpr std::uint64_t saved_cost(std::span<stage_affinity const> stages) noexcept {
  constexpr std::uint64_t most = (std::uint64_t{1} << 48) - 1;
  std::uint64_t sum = 0;
  for (auto const& stage : stages) {
    // Saturates at 2^64 - 1 first, so that a large restore cost still takes something off a huge match.
    auto const overflows = stage.cost_per_token != 0 && stage.matched_tokens > ~std::uint64_t{0} / stage.cost_per_token;
    auto const gross = overflows ? ~std::uint64_t{0} : stage.matched_tokens * stage.cost_per_token;
    auto const net = gross > stage.restore_cost ? gross - stage.restore_cost : 0;
    if (net >= most - sum) return most;
    sum += net;
  }
  return sum;
}

}  // namespace kvlane
