#pragma once

#include <kvlane/detail/treap.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kvlane::detail {

/// What a waiter keeps for the arrival list of its priority.
template <class Node>
struct arrival_hook {
  treap_hook<Node> links;
  std::uint64_t delta = 0;      // overtakings counted here, for this waiter and all older ones
  std::uint64_t delta_sum = 0;  // over the subtree
  std::uint64_t least_readmitted_demand = std::numeric_limits<std::uint64_t>::max();  // over the subtree
  bool readmitted = false;
};

/// The waiters of one priority by arrival, oldest first, with the number of times each has been overtaken.
///
/// Whoever is overtaken, everyone older in the list is overtaken too; so one number is added at the youngest of them, and
/// a waiter's count is the sum over itself and all younger ones. Counts therefore never fall with age, and the oldest has
/// the highest one. Everything is O(log n); nothing allocates. Nodes have an `arrival_hook` named `line`, `arrival()` and
/// `demand()`.
template <class Node>
class arrival_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return tree_.empty(); }
  [[nodiscard]] Node* oldest() const noexcept { return tree_.first(); }
  [[nodiscard]] Node* youngest() const noexcept { return tree_.last(); }
  [[nodiscard]] static Node* next(Node const& n) noexcept { return tree::next(n); }

  /// Puts a waiter where its arrival belongs, with the count of the next younger one there.
  void insert(Node& n) noexcept {
    n.line.delta = 0;
    tree_.insert(n, weights_);
  }

  /// Takes a waiter out; everyone else keeps its count.
  void erase(Node& n) noexcept { erase(n, 0); }
  /// Takes out a waiter that was admitted: it has overtaken everyone older.
  void erase_admitted(Node& n) noexcept { erase(n, 1); }

  /// Counts one overtaking for every waiter that arrived before `arrival`.
  void overtake_before(std::uint64_t arrival) noexcept {
    Node* youngest_older = nullptr;
    for (auto* n = tree_.root(); n != nullptr;) {
      auto const older = n->arrival() < arrival;
      if (older) youngest_older = n;
      n = older ? tree::right(*n) : tree::left(*n);
    }
    if (youngest_older == nullptr) return;
    ++youngest_older->line.delta;
    tree::refresh(*youngest_older);
  }

  /// How often `n`, which is in the list, has been overtaken.
  [[nodiscard]] static std::uint64_t overtaken(Node const& n) noexcept {
    auto count = n.line.delta + sum(tree::right(n));
    auto const* below = &n;
    for (auto const* above = tree::parent(n); above != nullptr; below = above, above = tree::parent(*above))
      if (tree::left(*above) == below) count += above->line.delta + sum(tree::right(*above));
    return count;
  }

  /// How often the oldest has been overtaken; 0 when nobody is here.
  [[nodiscard]] std::uint64_t most_overtaken() const noexcept { return sum(tree_.root()); }

  /// The oldest readmitted waiter whose demand is at most `tokens`, or nullptr.
  [[nodiscard]] Node* oldest_readmitted(std::uint64_t tokens) const noexcept {
    tokens = std::min(tokens, most_demand);
    auto* n = tree_.root();
    if (least(n) > tokens) return nullptr;
    for (;;) {
      if (least(tree::left(*n)) <= tokens)
        n = tree::left(*n);
      else if (n->line.readmitted && own_least(*n) <= tokens)
        return n;
      else
        n = tree::right(*n);
    }
  }
  /// The next younger readmitted waiter, or nullptr. O(log n), however many others stand between.
  [[nodiscard]] static Node* next_readmitted(Node const& n) noexcept {
    if (auto* const found = first_readmitted(tree::right(n))) return found;
    auto const* below = &n;
    for (auto* above = tree::parent(n); above != nullptr; below = above, above = tree::parent(*above)) {
      if (tree::left(*above) != below) continue;
      if (above->line.readmitted) return above;
      if (auto* const found = first_readmitted(tree::right(*above))) return found;
    }
    return nullptr;
  }

 private:
  // As the least demand of a subtree the highest number means "nobody", so a demand of just that counts as one less.
  static constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t most_demand = nobody - 1;

  static std::uint64_t own_least(Node const& n) noexcept {
    return n.line.readmitted ? std::min(n.demand(), most_demand) : nobody;
  }
  static Node* first_readmitted(Node* n) noexcept {
    if (least(n) == nobody) return nullptr;
    for (;;) {
      if (least(tree::left(*n)) != nobody)
        n = tree::left(*n);
      else if (n->line.readmitted)
        return n;
      else
        n = tree::right(*n);
    }
  }
  void erase(Node& n, std::uint64_t overtakings) noexcept {
    auto* const older = tree::previous(n);
    auto const handed_on = n.line.delta + overtakings;
    tree_.erase(n);
    if (older == nullptr || handed_on == 0) return;
    older->line.delta += handed_on;
    tree::refresh(*older);
  }

  static std::uint64_t sum(Node const* n) noexcept { return n == nullptr ? 0 : n->line.delta_sum; }
  static std::uint64_t least(Node const* n) noexcept { return n == nullptr ? nobody : n->line.least_readmitted_demand; }

  struct traits {
    static treap_hook<Node>& hook(Node& n) noexcept { return n.line.links; }
    static bool before(Node const& a, Node const& b) noexcept { return a.arrival() < b.arrival(); }
    static void aggregate(Node& n) noexcept {
      auto const* const l = n.line.links.left;
      auto const* const r = n.line.links.right;
      n.line.delta_sum = n.line.delta + sum(l) + sum(r);
      n.line.least_readmitted_demand = std::min({own_least(n), least(l), least(r)});
    }
  };
  using tree = treap<Node, traits>;

  tree tree_;
  treap_weights weights_;
};

}  // namespace kvlane::detail
