#pragma once

#include <kvlane/detail/first_fit.hpp>
#include <kvlane/detail/pool.hpp>
#include <kvlane/detail/prefix_tree.hpp>
#include <kvlane/detail/treap.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace kvlane::detail {

/// A waiter in a score_index.
class indexed_waiter : public tree_waiter {
 public:
  indexed_waiter() noexcept = default;

  order_cell* cell = nullptr;
  std::int64_t saved = 0;            // what the cache saves, less what everybody's has risen by since
  treap_hook<indexed_waiter> peers;  // with the same prompt and score, or everyone where prompts do not count
  std::int64_t standing = 0;         // orders peers: saved cost less what the turn of joining costs
  std::uint64_t least_demand = 0;    // over the subtree of peers

 protected:
  ~indexed_waiter() = default;
};

/// Priority, then higher standing, then arrival: the order of waiters whose prompts do not count.
struct by_standing {
  static treap_hook<indexed_waiter>& hook(indexed_waiter& w) noexcept { return w.peers; }
  static bool before(indexed_waiter const& a, indexed_waiter const& b) noexcept {
    if (a.priority() != b.priority()) return a.priority() > b.priority();
    return a.standing != b.standing ? a.standing > b.standing : a.arrival() < b.arrival();
  }
  static std::uint64_t demand(indexed_waiter const& w) noexcept { return w.demand(); }
  static std::uint64_t& least(indexed_waiter& w) noexcept { return w.least_demand; }
};

struct score_bucket;

/// A prefix at which waiters of one bucket part or end: a node of the bucket's own radix tree, laid over the tree of all
/// prompts. `edge` is the way by which the walk gets from the parent's prefix to this one; the order of siblings is the
/// order of those edges.
struct order_cell {
  score_bucket* bucket = nullptr;
  prefix_node* node = nullptr;
  order_cell* parent = nullptr;
  prefix_edge* edge = nullptr;  // null for the root of the bucket
  order_cell* next_on_edge = nullptr;
  order_cell** link_on_edge = nullptr;
  treap_hook<order_cell> siblings;
  std::uint64_t least_demand = 0;              // in this cell and below
  std::uint64_t least_demand_of_siblings = 0;  // over the subtree of siblings
  struct by_edge {
    static treap_hook<order_cell>& hook(order_cell& c) noexcept { return c.siblings; }
    static bool before(order_cell const& a, order_cell const& b) noexcept { return goes_before(*a.edge, *b.edge); }
    static std::uint64_t demand(order_cell const& c) noexcept { return c.least_demand; }
    static std::uint64_t& least(order_cell& c) noexcept { return c.least_demand_of_siblings; }
  };
  fitting_treap<order_cell, by_edge> children;
  fitting_treap<indexed_waiter, by_standing> ends;
};

/// Waiters of one priority and residue class whose grouping scores are equal now, and so for ever.
struct score_bucket {
  std::int64_t key = 0;  // the grouping score is this plus what the class has gained
  std::uint32_t priority = 0;
  order_cell* root = nullptr;
  treap_hook<score_bucket> siblings;
  std::uint64_t least_demand_of_siblings = 0;
};

struct by_score {
  static treap_hook<score_bucket>& hook(score_bucket& b) noexcept { return b.siblings; }
  static bool before(score_bucket const& a, score_bucket const& b) noexcept {
    return a.priority != b.priority ? a.priority > b.priority : a.key > b.key;
  }
  static std::uint64_t demand(score_bucket const& b) noexcept {
    return b.root == nullptr ? no_demand : b.root->least_demand;
  }
  static std::uint64_t& least(score_bucket& b) noexcept { return b.least_demand_of_siblings; }
};

/// The radix trees of all buckets, over one tree of prompts: who of a bucket comes first in the walk.
///
/// Entering and leaving a bucket costs O(log n) for each node of the bucket on the way up. Thread safety: distinct objects
/// are safe, shared objects are not. Only `reserve` allocates.
class score_cells {
 public:
  using waiter = indexed_waiter;

  score_cells(prefix_tree const& prompts, treap_weights& weights) noexcept : prompts_{prompts}, weights_{weights} {}

  /// Makes room for `n` waiters in all. \throws std::bad_alloc
  void reserve(std::size_t n) { cells_.reserve(2 * n); }

  /// Puts `w`, which is in the tree of prompts, into a bucket. Precondition: there is room.
  void enter(score_bucket& b, waiter& w) noexcept {
    auto& cell = cell_for(b, w);
    w.cell = &cell;
    cell.ends.insert(w, weights_);
    refresh_demand(cell);
  }

  /// Takes `w` out of its bucket; the bucket has no root any more when it was the last.
  void leave(waiter& w) noexcept {
    auto* cell = std::exchange(w.cell, nullptr);
    cell->ends.erase(w);
    if (auto* const left = prune(*cell)) refresh_demand(*left);
  }

  /// After the figures of an edge have changed: cells that hang on it may have another place among their siblings.
  void reorder(prefix_edge const& edge) noexcept {
    for (auto* cell = edge.cells; cell != nullptr; cell = cell->next_on_edge) {
      auto const* const before = cell_tree::previous(*cell);
      auto const* const after = cell_tree::next(*cell);
      auto const stays = (before == nullptr || goes_before(*before->edge, edge)) &&
                         (after == nullptr || goes_before(edge, *after->edge));
      if (stays) continue;
      cell->parent->children.erase(*cell);
      cell->parent->children.insert(*cell, weights_);
    }
  }

  /// The waiter at or below a cell that the walk meets first among those that fit. Precondition: somebody fits.
  [[nodiscard]] waiter* first_below(order_cell const& cell, std::uint64_t tokens = no_demand) const noexcept {
    auto const* c = &cell;
    while (auto* const below = first_child(*c, tokens)) c = below;
    return c->ends.first_fit(tokens);
  }

  /// The waiter of the same bucket that the walk meets after `w`, or nullptr.
  [[nodiscard]] waiter* next_in_bucket(waiter const& w) const noexcept {
    if (auto* const peer = peer_tree::next(w)) return peer;
    for (auto const* c = w.cell; c->parent != nullptr; c = c->parent) {
      if (auto* const sibling = next_child(*c)) return first_below(*sibling);
      if (!c->parent->ends.empty()) return c->parent->ends.first();
    }
    return nullptr;
  }
  /// Whether the walk meets `a` before `b`; equal prompts go by standing and arrival.
  [[nodiscard]] bool walks_before(waiter const& a, waiter const& b) const noexcept {
    if (a.node == b.node) return by_standing::before(a, b);
    auto const& parting = *prefix_tree::meeting(a.node, b.node);
    if (&parting == a.node) return false;  // whoever ends at a node comes after its children
    if (&parting == b.node) return true;
    auto const* const to_a = prefix_tree::way_down(parting, *a.node);
    auto const* const to_b = prefix_tree::way_down(parting, *b.node);
    auto const* const onward = prompts_.continuation(parting);
    if (onward == to_a) return true;
    return onward != to_b && goes_before(*to_a, *to_b);
  }

 private:
  using cell_tree = fitting_treap<order_cell, order_cell::by_edge>;
  using peer_tree = fitting_treap<waiter, by_standing>;

  /// The child of a cell to which the walk goes first among those with somebody that fits, or nullptr.
  [[nodiscard]] order_cell* first_child(order_cell const& cell, std::uint64_t tokens) const noexcept {
    if (cell.children.least_demand() > tokens) return nullptr;
    if (auto const* const onward = prompts_.continuation(*cell.node))
      if (auto* const continuing = child_on(cell, *onward); continuing != nullptr && continuing->least_demand <= tokens)
        return continuing;
    return cell.children.first_fit(tokens);
  }

  [[nodiscard]] static order_cell* child_on(order_cell const& cell, prefix_edge const& edge) noexcept {
    return cell.children.find([&](order_cell const& c) {
      if (c.edge == &edge) return 0;
      return goes_before(edge, *c.edge) ? -1 : 1;
    });
  }

  /// The sibling to which the walk goes after `cell`, or nullptr.
  [[nodiscard]] order_cell* next_child(order_cell const& cell) const noexcept {
    auto const& above = *cell.parent;
    auto const* const onward = prompts_.continuation(*above.node);
    auto* next = cell.edge == onward ? above.children.first() : cell_tree::next(cell);
    if (next != nullptr && next->edge == onward) next = cell_tree::next(*next);
    return next;
  }

  /// The cell of `b` at which the prompt of `w` ends, made if it is not there.
  [[nodiscard]] order_cell& cell_for(score_bucket& b, waiter& w) noexcept {
    order_cell* above = nullptr;
    auto* at = b.root;
    for (;;) {
      if (at == nullptr) return hang(b, *w.node, above);
      if (at->node == w.node) return *at;
      auto* const parting = prefix_tree::meeting(at->node, w.node);
      if (parting != at->node) {
        auto& between = put_above(*at, *parting);
        return parting == w.node ? between : hang(b, *w.node, &between);
      }
      above = at;
      at = child_on(*at, *prefix_tree::way_down(*parting, *w.node));
    }
  }

  /// A new cell below `above`, or as the root.
  order_cell& hang(score_bucket& b, prefix_node& node, order_cell* above) noexcept {
    auto& cell = *cells_.make();
    cell.bucket = &b;
    cell.node = &node;
    cell.least_demand = no_demand;
    attach(cell, above);
    return cell;
  }
  /// A new cell at `node`, between `at` and what was above it. Its least demand is worked out by whoever enters below.
  order_cell& put_above(order_cell& at, prefix_node& node) noexcept {
    auto* const above = at.parent;
    detach(at);
    auto& cell = hang(*at.bucket, node, above);
    attach(at, &cell);
    return cell;
  }

  void attach(order_cell& cell, order_cell* above) noexcept {
    cell.parent = above;
    if (above == nullptr) {
      cell.bucket->root = &cell;
      return;
    }
    cell.edge = prefix_tree::way_down(*above->node, *cell.node);
    cell.next_on_edge = cell.edge->cells;
    cell.link_on_edge = &cell.edge->cells;
    if (cell.next_on_edge != nullptr) cell.next_on_edge->link_on_edge = &cell.next_on_edge;
    cell.edge->cells = &cell;
    above->children.insert(cell, weights_);
  }
  static void detach(order_cell& cell) noexcept {
    if (cell.parent == nullptr) {
      cell.bucket->root = nullptr;
      return;
    }
    cell.parent->children.erase(cell);
    *cell.link_on_edge = cell.next_on_edge;
    if (cell.next_on_edge != nullptr) cell.next_on_edge->link_on_edge = cell.link_on_edge;
    cell.edge = nullptr;
    cell.parent = nullptr;
  }

  /// Removes cells from `cell` upwards at which nobody parts or ends any more. Returns the lowest that stays, if any.
  order_cell* prune(order_cell& cell) noexcept {
    if (!cell.ends.empty()) return &cell;
    auto* const above = cell.parent;
    auto* const child = cell.children.root();
    if (child != nullptr && !cell.children.has_one()) return &cell;
    if (child != nullptr) {
      detach(*child);
      detach(cell);
      attach(*child, above);
      cells_.give_back(&cell);
      return child;
    }
    detach(cell);
    cells_.give_back(&cell);
    return above == nullptr ? nullptr : prune(*above);  // above had another child, so this ends here
  }

  /// Brings the least demands up to date from `cell` to the class.
  static void refresh_demand(order_cell& cell) noexcept {
    auto* c = &cell;
    for (;; c = c->parent) {
      c->least_demand = std::min(c->ends.least_demand(), c->children.least_demand());
      if (c->parent == nullptr) break;
      cell_tree::refresh(*c);
    }
    fitting_treap<score_bucket, by_score>::refresh(*c->bucket);
  }

  prefix_tree const& prompts_;
  treap_weights& weights_;
  pool<order_cell> cells_;
};

}  // namespace kvlane::detail
