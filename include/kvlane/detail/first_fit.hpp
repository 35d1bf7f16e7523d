#pragma once

#include <kvlane/detail/treap.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kvlane::detail {

/// No demand is as large: the least demand of nobody.
inline constexpr auto no_demand = std::numeric_limits<std::uint64_t>::max();

/// A treap whose nodes know the least demand of their subtree, for "the first that fits". `Traits` has, beside `hook` and
/// `before`: `demand(Node const&)`, what a node itself needs, and `least(Node&)`, where the least demand is kept.
template <class Node, class Traits>
struct fitting_traits {
  static treap_hook<Node>& hook(Node& n) noexcept { return Traits::hook(n); }
  static bool before(Node const& a, Node const& b) noexcept { return Traits::before(a, b); }
  static void aggregate(Node& n) noexcept {
    auto least = Traits::demand(n);
    if (auto* const l = Traits::hook(n).left) least = std::min(least, Traits::least(*l));
    if (auto* const r = Traits::hook(n).right) least = std::min(least, Traits::least(*r));
    Traits::least(n) = least;
  }
};

template <class Node, class Traits>
class fitting_treap : public treap<Node, fitting_traits<Node, Traits>> {
  using base = treap<Node, fitting_traits<Node, Traits>>;

 public:
  /// The least demand of all; no_demand when it is empty.
  [[nodiscard]] std::uint64_t least_demand() const noexcept {
    return this->empty() ? no_demand : Traits::least(*this->root());
  }

  /// The first node that needs at most `tokens`, or nullptr. O(log n): it never turns back.
  [[nodiscard]] Node* first_fit(std::uint64_t tokens) const noexcept {
    auto* n = this->root();
    if (n == nullptr || Traits::least(*n) > tokens) return nullptr;
    for (;;) {
      auto* const before = base::left(*n);
      if (before != nullptr && Traits::least(*before) <= tokens)
        n = before;
      else if (Traits::demand(*n) <= tokens)
        return n;
      else
        n = base::right(*n);
    }
  }
};

}  // namespace kvlane::detail
