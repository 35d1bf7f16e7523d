#pragma once

#include <kvlane/ordering/policy.hpp>
#include <kvlane/waiter_base.hpp>

#include <cstdint>
#include <vector>

namespace kvlane::test {

/// More free tokens than anybody in these tests asks for.
inline constexpr std::uint64_t plenty = 1'000'000;

/// The tag of whom the policy picks; 0 for nobody.
template <class Policy>
[[nodiscard]] std::uint64_t picked(Policy& policy, pick_query const& query) {
  auto const* const w = policy.pick(query);
  return w == nullptr ? 0 : w->tag();
}

/// The tags of those in line, as the policy shows them.
template <class Policy>
[[nodiscard]] std::vector<std::uint64_t> tags_in_order(Policy& policy) {
  std::vector<std::uint64_t> tags;
  policy.for_each_in_order([&](waiter_base const& w) {
    tags.push_back(w.tag());
    return true;
  });
  return tags;
}

}  // namespace kvlane::test
