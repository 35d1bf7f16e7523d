#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

namespace replay {

/// A member of a batch: the KV tokens that it holds, and how many it will yet add, one in each decode step.
struct kv_course {
  std::uint64_t held = 0;
  std::uint64_t left = 0;
};

/// The most KV tokens that a batch will ever hold together: when each of its members ends, those that go on have added as
/// many tokens as it had left. Sorts the batch by what is left, most first.
[[nodiscard]] inline std::uint64_t projected_peak(std::span<kv_course> batch) {
  std::ranges::sort(batch, std::greater<>{}, &kv_course::left);
  std::uint64_t held = 0;
  std::uint64_t members = 0;
  std::uint64_t peak = 0;
  for (auto const& c : batch) {
    held += c.held;
    ++members;
    peak = std::max(peak, held + c.left * members);
  }
  return peak;
}

}  // namespace replay
