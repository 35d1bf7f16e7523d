#pragma once

#include <kvlane/detail/pool.hpp>
#include <kvlane/detail/prefix_walk.hpp>
#include <kvlane/detail/treap.hpp>
#include <kvlane/prompt.hpp>
#include <kvlane/waiter_base.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace kvlane::detail {

struct prefix_edge;
struct order_cell;

/// A waiter whose prompt stands in a prefix_tree: at `node`, among others with the very same prompt.
class tree_waiter : public waiter_base {
 public:
  tree_waiter() noexcept = default;

  struct prefix_node* node = nullptr;
  treap_hook<tree_waiter> twins;

 protected:
  ~tree_waiter() = default;
};

struct by_arrival {
  static treap_hook<tree_waiter>& hook(tree_waiter& w) noexcept { return w.twins; }
  static bool before(tree_waiter const& a, tree_waiter const& b) noexcept { return a.arrival() < b.arrival(); }
  static void aggregate(tree_waiter&) noexcept {}
};

/// The way from a node to a child: one for each first symbol. It stays what it is when another node is put in its middle,
/// so that whatever refers to "the way down from here with that symbol" stays good.
struct prefix_edge {
  struct prefix_node* from = nullptr;
  struct prefix_node* to = nullptr;
  std::uint64_t symbol = 0;                // mapped so that unsigned comparison is the order of symbols
  std::uint64_t waiters = 0;               // below
  std::uint64_t earliest = 0;              // arrival among them
  std::uint64_t earliest_of_siblings = 0;  // over the subtree of siblings
  tree_waiter const* label = nullptr;      // any waiter below: its prompt spells the edge
  order_cell* cells = nullptr;             // of the score index, that hang on this edge
  treap_hook<prefix_edge> siblings;
  std::uint32_t rank = 0;  // the trees of tokens and of blocks hang on edges of ranks 0 and 1, all others have rank 0
};

struct by_symbol {
  static treap_hook<prefix_edge>& hook(prefix_edge& e) noexcept { return e.siblings; }
  static bool before(prefix_edge const& a, prefix_edge const& b) noexcept {
    return a.rank != b.rank ? a.rank < b.rank : a.symbol < b.symbol;
  }
  static void aggregate(prefix_edge& e) noexcept {
    e.earliest_of_siblings = e.earliest;
    if (auto const* l = e.siblings.left)
      e.earliest_of_siblings = std::min(e.earliest_of_siblings, l->earliest_of_siblings);
    if (auto const* r = e.siblings.right)
      e.earliest_of_siblings = std::min(e.earliest_of_siblings, r->earliest_of_siblings);
  }
};

/// A prefix at which prompts part or end.
struct prefix_node {
  prefix_edge* in = nullptr;  // null at the top
  treap<prefix_edge, by_symbol> children;
  treap<tree_waiter, by_arrival> ends;  // waiters whose prompt ends here
  std::int64_t depth = 0;               // symbols from the root of its kind; -1 at the top
  bool on_last = false;                 // whether the prompt served last begins with this prefix
};

/// Whether the walk goes to `a` before `b`, both leading down from one node and neither continuing the last prompt: the
/// heavier first, then the one with the earliest waiter, then the smaller symbol.
[[nodiscard]] constexpr bool goes_before(prefix_edge const& a, prefix_edge const& b) noexcept {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.waiters != b.waiters) return a.waiters > b.waiters;
  if (a.earliest != b.earliest) return a.earliest < b.earliest;
  return a.symbol < b.symbol;
}

/// The radix tree of all waiting prompts, compressed: a node only where prompts part or end. It knows for each edge how
/// many wait below it and who came first, and which nodes lie on the prompt served last.
///
/// Inserting costs the length of the prompt once, and O(log children) at each node on the way; erasing costs the nodes on
/// the way. Nothing recurses. Prompts are not copied: an edge is spelt by the prompt of some waiter below it.
///
/// Thread safety: distinct objects are safe, shared objects are not.
class prefix_tree {
 public:
  explicit prefix_tree(treap_weights& weights) noexcept : weights_{weights} {
    for (std::uint32_t kind = 0; kind != 2; ++kind) {
      ways_[kind].from = &top_;
      ways_[kind].to = &roots_[kind];
      ways_[kind].rank = kind;
      ways_[kind].earliest = nobody;
      roots_[kind].in = &ways_[kind];
      top_.children.insert(ways_[kind], weights_);
    }
    top_.depth = -1;
  }
  prefix_tree(prefix_tree const&) = delete;
  prefix_tree& operator=(prefix_tree const&) = delete;

  /// Makes room for `n` waiters in all. \throws std::bad_alloc
  void reserve(std::size_t n) {
    nodes_.reserve(2 * n);
    edges_.reserve(2 * n);
  }

  /// Puts `w` where its prompt ends. `changed(edge)` is called for every edge on the way up, after its figures have
  /// changed. Precondition: there is room.
  template <class Changed>
  void insert(tree_waiter& w, Changed const& changed) noexcept {
    w.node = place_for(w);
    w.node->ends.insert(w, weights_);
    for (auto* e = w.node->in; e != nullptr; e = e->from->in) {
      ++e->waiters;
      if (w.arrival() < e->earliest) set_earliest(*e, w.arrival());
      changed(*e);
    }
  }

  /// Takes `w` out. `changed(edge)` as above, for edges that remain. Nothing of the score index may hang on edges below
  /// which nobody else waits.
  template <class Changed>
  void erase(tree_waiter& w, Changed const& changed) noexcept {
    auto* node = std::exchange(w.node, nullptr);
    node->ends.erase(w);
    while (auto* const e = node->in) {
      auto* const above = e->from;
      --e->waiters;
      if (e->waiters == 0 && above != &top_) {
        remove_leaf(*e);
      } else {
        if (e->label == &w) e->label = someone_below(*e->to);
        if (e->earliest == w.arrival()) set_earliest(*e, earliest_at(*e->to));
        changed(*e);
        if (node->ends.empty() && node->children.has_one() && above != &top_) dissolve(*node);
      }
      node = above;
    }
  }

  /// From now on the prompt of `w`, which is in the tree, is the one served last.
  void serve(tree_waiter const& w) noexcept {
    for (auto* n = deepest_on_last_; n != nullptr; n = n->in == nullptr ? nullptr : n->in->from) n->on_last = false;
    last_ = w.shared();
    deepest_on_last_ = nullptr;
    if (w.prompt().empty()) return;
    deepest_on_last_ = w.node;
    for (auto* n = w.node; n != &top_; n = n->in->from) n->on_last = true;
  }

  /// The edge down from `n` that continues the prompt served last, or nullptr.
  [[nodiscard]] prefix_edge* continuation(prefix_node const& n) const noexcept {
    auto const last = last_.view();
    if (!n.on_last || static_cast<std::size_t>(n.depth) == length_of(last)) return nullptr;
    return child(n, symbol_at(last, static_cast<std::size_t>(n.depth)));
  }

  /// The uppermost node whose prefix begins with `prefix`: all prompts that begin so are at or below it. Null when there
  /// are none. Costs the length of `prefix`.
  [[nodiscard]] prefix_node* find(prompt_view prefix) noexcept {
    auto const length = length_of(prefix);
    if (length == 0) return &top_;
    auto* node = &roots_[kind_of(prefix) == prompt_kind::tokens ? 0 : 1];
    while (static_cast<std::size_t>(node->depth) < length) {
      auto const depth = static_cast<std::size_t>(node->depth);
      auto* const e = child(*node, symbol_at(prefix, depth));
      if (e == nullptr) return nullptr;
      auto const end = std::min(static_cast<std::size_t>(e->to->depth), length);
      if (common_prefix(prefix, head_of(e->label->prompt(), end), depth + 1) != end) return nullptr;
      node = e->to;
    }
    return node;
  }

  /// How many wait at or below `n`.
  [[nodiscard]] std::uint64_t waiters_at(prefix_node const& n) const noexcept {
    return n.in == nullptr ? ways_[0].waiters + ways_[1].waiters : n.in->waiters;
  }

  /// Calls `f(tree_waiter&)` for everyone at or below `n`, but for those at or below `but` (which may be null). The tree
  /// must stay as it is.
  template <class F>
  void for_each_below(prefix_node& n, prefix_node const* but, F&& f) noexcept {
    auto* at = &n;
    for (;;) {
      if (at != but) {
        for (auto* w = at->ends.first(); w != nullptr; w = treap<tree_waiter, by_arrival>::next(*w)) f(*w);
        if (auto* const down = at->children.first()) {
          at = down->to;
          continue;
        }
      }
      prefix_edge* onward = nullptr;
      for (; at != &n && onward == nullptr; at = onward == nullptr ? at->in->from : at)
        onward = treap<prefix_edge, by_symbol>::next(*at->in);
      if (onward == nullptr) return;
      at = onward->to;
    }
  }
  [[nodiscard]] prefix_node& top() noexcept { return top_; }

  /// Where two nodes' ways from the top part.
  [[nodiscard]] static prefix_node* meeting(prefix_node* a, prefix_node* b) noexcept {
    while (a != b) {
      if (a->depth >= b->depth && a->in != nullptr)
        a = a->in->from;
      else
        b = b->in->from;
    }
    return a;
  }
  /// The edge from `above` towards `below`, a node under it.
  [[nodiscard]] static prefix_edge* way_down(prefix_node const& above, prefix_node const& below) noexcept {
    auto* e = below.in;
    while (e->from != &above) e = e->from->in;
    return e;
  }

  [[nodiscard]] static std::uint64_t symbol_at(prompt_view prompt, std::size_t at) noexcept {
    // Flipping the sign bit turns the order of signed tokens into that of unsigned numbers.
    return prompt.blocks.empty() ? static_cast<std::uint32_t>(prompt.tokens[at]) ^ 0x8000'0000U : prompt.blocks[at];
  }

 private:
  static constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] static prefix_edge* child(prefix_node const& n, std::uint64_t symbol) noexcept {
    return n.children.find([&](prefix_edge const& e) { return symbol < e.symbol ? -1 : symbol > e.symbol ? 1 : 0; });
  }
  [[nodiscard]] static tree_waiter const* someone_below(prefix_node const& n) noexcept {
    if (auto const* const w = n.ends.root()) return w;
    auto const* const e = n.children.root();
    return e == nullptr ? nullptr : e->label;
  }
  [[nodiscard]] static std::uint64_t earliest_at(prefix_node const& n) noexcept {
    auto const* const w = n.ends.first();
    auto const* const e = n.children.root();
    return std::min(w == nullptr ? nobody : w->arrival(), e == nullptr ? nobody : e->earliest_of_siblings);
  }
  static void set_earliest(prefix_edge& e, std::uint64_t arrival) noexcept {
    e.earliest = arrival;
    treap<prefix_edge, by_symbol>::refresh(e);
  }

  /// The node at which the prompt of `w` ends, made if it is not there.
  prefix_node* place_for(tree_waiter& w) noexcept {
    auto const prompt = w.prompt();
    auto const length = length_of(prompt);
    auto* node = &roots_[kind_of(prompt) == prompt_kind::tokens ? 0 : 1];
    if (node->in->label == nullptr) node->in->label = &w;
    while (static_cast<std::size_t>(node->depth) != length) {
      auto const depth = static_cast<std::size_t>(node->depth);
      auto* const e = child(*node, symbol_at(prompt, depth));
      if (e == nullptr) return add_leaf(*node, w, length);
      auto const end = static_cast<std::size_t>(e->to->depth);
      auto const shared = common_prefix(prompt, head_of(e->label->prompt(), end), depth + 1);
      node = shared == end ? e->to : split(*e, shared);
    }
    return node;
  }

  prefix_node* add_leaf(prefix_node& above, tree_waiter& w, std::size_t length) noexcept {
    auto* const node = nodes_.make();
    auto* const e = edges_.make();
    e->from = &above;
    e->to = node;
    e->symbol = symbol_at(w.prompt(), static_cast<std::size_t>(above.depth));
    e->earliest = nobody;
    e->label = &w;
    node->in = e;
    node->depth = static_cast<std::int64_t>(length);
    above.children.insert(*e, weights_);
    mark_if_on_last(*node, w.prompt());
    return node;
  }

  /// Puts a node into the middle of `e`; the part below it gets an edge of its own.
  prefix_node* split(prefix_edge& e, std::size_t depth) noexcept {
    auto* const node = nodes_.make();
    auto* const below = edges_.make();
    below->from = node;
    below->to = e.to;
    below->symbol = symbol_at(e.label->prompt(), depth);
    below->waiters = e.waiters;
    below->earliest = e.earliest;
    below->label = e.label;
    e.to->in = below;
    e.to = node;
    node->in = &e;
    node->depth = static_cast<std::int64_t>(depth);
    node->children.insert(*below, weights_);
    mark_if_on_last(*node, e.label->prompt());
    return node;
  }

  // The parent is on the last prompt's way or this one is not: only then is there anything to compare.
  void mark_if_on_last(prefix_node& node, prompt_view spelt_by) noexcept {
    auto const& above = *node.in->from;
    if (!above.on_last) return;
    auto const end = static_cast<std::size_t>(node.depth);
    auto const last = last_.view();
    if (length_of(last) < end) return;
    if (common_prefix(head_of(spelt_by, end), last, static_cast<std::size_t>(above.depth)) != end) return;
    node.on_last = true;
    if (deepest_on_last_ == nullptr || deepest_on_last_->depth < node.depth) deepest_on_last_ = &node;
  }

  void remove_leaf(prefix_edge& e) noexcept {
    auto* const node = e.to;
    if (deepest_on_last_ == node) deepest_on_last_ = e.from;
    e.from->children.erase(e);
    nodes_.give_back(node);
    edges_.give_back(&e);
  }

  /// Takes a node out at which prompts neither part nor end any more.
  void dissolve(prefix_node& node) noexcept {
    auto* const below = node.children.root();
    KVLANE_ASSERT(below->cells == nullptr, "something hangs on an edge that goes");
    if (deepest_on_last_ == &node) deepest_on_last_ = node.in->from;
    node.in->to = below->to;
    below->to->in = node.in;
    edges_.give_back(below);
    nodes_.give_back(&node);
  }

  treap_weights& weights_;
  pool<prefix_node> nodes_;
  pool<prefix_edge> edges_;
  prefix_node top_;
  std::array<prefix_node, 2> roots_;  // of token prompts and of block prompts
  std::array<prefix_edge, 2> ways_;   // from the top to them
  shared_prompt last_;
  prefix_node* deepest_on_last_ = nullptr;
};

}  // namespace kvlane::detail
