#pragma once

#include <kvlane/config.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace kvlane::detail {

/// Links of a node in a treap. Embedded in the node, so that putting it in and taking it out never allocates.
template <class Node>
struct treap_hook {
  Node* parent = nullptr;
  Node* left = nullptr;
  Node* right = nullptr;
  std::uint32_t weight = 0;
};

/// Where treaps get their weights: numbers that look random and are the same in every run. One source serves many treaps.
class treap_weights {
 public:
  // A Weyl sequence and a finalizer, the construction of splitmix64 (Steele, Lea and Flood 2014).
  std::uint32_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    auto z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return static_cast<std::uint32_t>((z ^ (z >> 31U)) >> 32U);
  }

 private:
  std::uint64_t state_ = 0;
};

/// An intrusive balanced search tree (a treap) with values aggregated over subtrees: expected O(log n) for insert, erase
/// and refresh. Does not own its nodes; is as large as a pointer.
///
/// `Traits` has `hook(Node&)`, `before(Node const&, Node const&)` (a strict order in which all nodes differ) and
/// `aggregate(Node&)`, which recomputes what the node keeps about its subtree from its children.
///
/// Thread safety: distinct objects are safe, shared objects are not.
template <class Node, class Traits>
class treap {
 public:
  treap() noexcept = default;
  treap(treap&& other) noexcept : root_{std::exchange(other.root_, nullptr)} {}
  /// Precondition: it is empty.
  treap& operator=(treap&& other) noexcept {
    root_ = std::exchange(other.root_, nullptr);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  [[nodiscard]] bool has_one() const noexcept {
    return root_ != nullptr && left(*root_) == nullptr && right(*root_) == nullptr;
  }
  [[nodiscard]] Node* root() const noexcept { return root_; }
  [[nodiscard]] static Node* left(Node const& n) noexcept { return hook(n).left; }
  [[nodiscard]] static Node* right(Node const& n) noexcept { return hook(n).right; }
  [[nodiscard]] static Node* parent(Node const& n) noexcept { return hook(n).parent; }

  [[nodiscard]] Node* first() const noexcept { return root_ == nullptr ? nullptr : leftmost(root_); }
  [[nodiscard]] Node* last() const noexcept { return root_ == nullptr ? nullptr : rightmost(root_); }

  [[nodiscard]] static Node* next(Node const& n) noexcept {
    if (auto* const child = right(n)) return leftmost(child);
    auto const* below = &n;
    auto* above = parent(n);
    while (above != nullptr && right(*above) == below) below = std::exchange(above, parent(*above));
    return above;
  }
  [[nodiscard]] static Node* previous(Node const& n) noexcept {
    if (auto* const child = left(n)) return rightmost(child);
    auto const* below = &n;
    auto* above = parent(n);
    while (above != nullptr && left(*above) == below) below = std::exchange(above, parent(*above));
    return above;
  }

  /// The node that is neither before nor after what `compare(node)` looks for, or nullptr. `compare` returns a negative
  /// number when the wanted one comes before `node`, a positive one when it comes after.
  template <class Compare>
  [[nodiscard]] Node* find(Compare const& compare) const noexcept {
    for (auto* n = root_; n != nullptr;) {
      auto const order = compare(*n);
      if (order == 0) return n;
      n = order < 0 ? left(*n) : right(*n);
    }
    return nullptr;
  }

  void insert(Node& n, treap_weights& weights) noexcept {
    Traits::hook(n) = {.weight = weights.next()};
    Node* above = nullptr;
    auto** link = &root_;
    while (*link != nullptr) {
      above = *link;
      link = Traits::before(n, *above) ? &Traits::hook(*above).left : &Traits::hook(*above).right;
    }
    Traits::hook(n).parent = above;
    *link = &n;
    Traits::aggregate(n);
    while (parent(n) != nullptr && hook(*parent(n)).weight < hook(n).weight) rotate_up(n);
    refresh_above(n);
  }

  void erase(Node& n) noexcept {
    while (left(n) != nullptr && right(n) != nullptr)
      rotate_up(hook(*left(n)).weight > hook(*right(n)).weight ? *left(n) : *right(n));
    auto* const child = left(n) != nullptr ? left(n) : right(n);
    auto* const above = parent(n);
    replace_below(above, n, child);
    if (child != nullptr) Traits::hook(*child).parent = above;
    Traits::hook(n) = {};
    for (auto* p = above; p != nullptr; p = parent(*p)) Traits::aggregate(*p);
  }

  /// To be called after a value of `n` that is aggregated has changed.
  static void refresh(Node& n) noexcept {
    Traits::aggregate(n);
    refresh_above(n);
  }

 private:
  static treap_hook<Node> const& hook(Node const& n) noexcept { return Traits::hook(const_cast<Node&>(n)); }

  static Node* leftmost(Node* n) noexcept {
    while (left(*n) != nullptr) n = left(*n);
    return n;
  }
  static Node* rightmost(Node* n) noexcept {
    while (right(*n) != nullptr) n = right(*n);
    return n;
  }
  static void refresh_above(Node& n) noexcept {
    for (auto* p = parent(n); p != nullptr; p = parent(*p)) Traits::aggregate(*p);
  }

  void replace_below(Node* above, Node& old, Node* with) noexcept {
    if (above == nullptr)
      root_ = with;
    else if (left(*above) == &old)
      Traits::hook(*above).left = with;
    else
      Traits::hook(*above).right = with;
  }

  // Lifts `n` above its parent; the order stays.
  void rotate_up(Node& n) noexcept {
    auto& down = *parent(n);
    auto* const above = parent(down);
    auto& n_links = Traits::hook(n);
    auto& down_links = Traits::hook(down);
    Node* moved = nullptr;
    if (down_links.left == &n) {
      moved = std::exchange(n_links.right, &down);
      down_links.left = moved;
    } else {
      moved = std::exchange(n_links.left, &down);
      down_links.right = moved;
    }
    if (moved != nullptr) Traits::hook(*moved).parent = &down;
    replace_below(above, down, &n);
    n_links.parent = above;
    down_links.parent = &n;
    Traits::aggregate(down);
    Traits::aggregate(n);
  }

  Node* root_ = nullptr;
};

}  // namespace kvlane::detail
