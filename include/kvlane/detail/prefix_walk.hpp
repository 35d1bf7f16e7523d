#pragma once

#include <kvlane/config.hpp>
#include <kvlane/fwd.hpp>
#include <kvlane/prompt.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kvlane::detail {

/// What a prompt is written in. Prompts of different kinds share nothing; tokens rank first.
enum class prompt_kind : std::uint8_t { tokens, blocks };

/// The kind of a prompt; an empty one counts as tokens.
[[nodiscard]] constexpr prompt_kind kind_of(prompt_view prompt) noexcept {
  return prompt.blocks.empty() ? prompt_kind::tokens : prompt_kind::blocks;
}

/// Length of a prompt in symbols, tokens or hashes.
[[nodiscard]] constexpr std::size_t length_of(prompt_view prompt) noexcept {
  return prompt.tokens.size() + prompt.blocks.size();
}

/// The first `n` symbols of a prompt, or all of them when there are fewer.
[[nodiscard]] constexpr prompt_view head_of(prompt_view prompt, std::size_t n) noexcept {
  return {.tokens = prompt.tokens.first(std::min(n, prompt.tokens.size())),
          .blocks = prompt.blocks.first(std::min(n, prompt.blocks.size()))};
}

/// Length of the common prefix of `a` and `b`, which are known to agree in their first `from` symbols.
template <class Symbol>
[[nodiscard]] std::size_t common_prefix(std::span<Symbol const> a, std::span<Symbol const> b,
                                        std::size_t from) noexcept {
  // Long prompts tend to share thousands of symbols: stride over what is equal, then look closely.
  constexpr auto stride = 256 / sizeof(Symbol);
  auto const end = std::min(a.size(), b.size());
  auto at = from;
  while (end - at >= stride && std::memcmp(a.data() + at, b.data() + at, stride * sizeof(Symbol)) == 0) at += stride;
  while (at != end && a[at] == b[at]) ++at;
  return at;
}

/// The same for prompts of either kind; prompts of different kinds have nothing in common.
[[nodiscard]] inline std::size_t common_prefix(prompt_view a, prompt_view b, std::size_t from = 0) noexcept {
  return kind_of(a) == prompt_kind::tokens ? common_prefix(a.tokens, b.tokens, from)
                                           : common_prefix(a.blocks, b.blocks, from);
}

/// How `a` stands to `b` when their common prefix is known to be `shared` symbols long.
[[nodiscard]] constexpr std::strong_ordering compare_beyond(prompt_view a, prompt_view b, std::size_t shared) noexcept {
  if (kind_of(a) != kind_of(b)) return kind_of(a) <=> kind_of(b);
  if (shared == length_of(a) || shared == length_of(b)) return length_of(a) <=> length_of(b);
  if (kind_of(a) == prompt_kind::tokens) return a.tokens[shared] <=> b.tokens[shared];
  return a.blocks[shared] <=> b.blocks[shared];
}

/// Lexicographic: tokens compare signed, hashes unsigned, a prefix is smaller, all token prompts are smaller than all
/// block prompts.
[[nodiscard]] inline std::strong_ordering compare(prompt_view a, prompt_view b) noexcept {
  return compare_beyond(a, b, common_prefix(a, b));
}

/// A waiter as the walk sees it; `rank` is the result.
struct walk_item {
  prompt_view prompt = {};
  std::uint64_t arrival = 0;  ///< smaller came earlier
  std::uint32_t rank = 0;     ///< place of the prompt among the different prompts, from 0; equal prompts, equal ranks
};

/// Whether the walk first goes where it can continue the prompt that was served last.
enum class last_prompt : std::uint8_t { follow, ignore };

/// Ranks prompts by a depth-first walk of their radix tree, so that prompts with a long common prefix are neighbours.
///
///     std::vector<walk_item> items{{.prompt = {.tokens = a}, .arrival = 7}, {.prompt = {.tokens = b}, .arrival = 8}};
///     prefix_walk walk;
///     walk.reserve(items.size());
///     walk.rank(items, {.tokens = served}, last_prompt::follow);   // items[i].rank
///
/// Of the children of a node comes first the one that continues the last prompt, if the path down to it equals that
/// prompt so far; then the one with the most waiters, then the one with the earliest waiter, then the smaller symbol.
/// Prompts that end at a node come after its children. All token prompts come before all block prompts.
/// (SGLang calls the walk by weight "DFS-weight"; serving the last family on is what keeps a small cache warm.)
///
/// Thread safety: distinct objects are safe, shared objects are not.
/// Lifetime: keeps no view beyond a call.
class prefix_walk {
 public:
  /// Makes room for `n` items. Grows geometrically, so it may be called once for each new waiter.
  /// Throws std::bad_alloc, or std::length_error when `n` exceeds 2^31 - 1; then nothing has changed. The only member
  /// that allocates.
  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    if (n > most_items) throw std::length_error("kvlane: more prompts to rank than 2^31 - 1");
    n = std::min(std::max(n, 2 * capacity_), most_items);
    places_.reserve(n);
    merged_.reserve(n);
    nodes_.reserve(2 * n);  // a node for each prompt that differs, a fork between any two of them, and a root
    stack_.reserve(2 * n);
    capacity_ = n;
  }

  /// Items that there is room for.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Writes the rank of every item, given the prompt served last (an empty one: none was). Precondition: at most
  /// capacity() items. Takes O(n log n) steps and reads each symbol about once for each neighbour that shares it; does
  /// not recurse, block or allocate.
  void rank(std::span<walk_item> items, prompt_view last, last_prompt use) noexcept {
    KVLANE_ASSERT(items.size() <= capacity_, "prefix_walk::rank needs room for all items, call reserve before");
    std::uint32_t next = 0;
    for (auto const kind : {prompt_kind::tokens, prompt_kind::blocks}) {
      collect(items, kind);
      if (places_.empty()) continue;
      sort(items);
      grow(items);
      if (use == last_prompt::follow) mark_continuation(items, last);
      next = number(items, next);
    }
  }

 private:
  using index = std::uint32_t;
  static constexpr std::size_t most_items = (std::size_t{1} << 31) - 1;
  static constexpr index none = std::numeric_limits<index>::max();
  static constexpr index root = 0;

  /// An item in lexicographic order.
  struct place {
    std::size_t shared = 0;  ///< symbols that it shares with the place before it
    index item = 0;
  };

  /// Where prompts part or end. Everything below it starts with the first `depth` symbols of the prompt at `first`.
  struct node {
    std::size_t depth = 0;
    std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();  ///< arrival
    index first = 0;       ///< the first place below it; as places are sorted, this also orders siblings by symbol
    index ending = 0;      ///< so many places, from `first`, end here
    index waiters = 0;     ///< places below it, those that end here included
    index child = none;    ///< the child that was added last
    index sibling = none;  ///< the one added before this
    bool continues = false;
  };

  /// One of two sorted runs that are being merged.
  struct run {
    place const* at;
    place const* end;
    std::size_t shared;  ///< symbols that its head shares with the place written last

    [[nodiscard]] bool empty() const noexcept { return at == end; }
    place take() noexcept {
      place const taken{.shared = shared, .item = at->item};
      ++at;
      shared = empty() ? 0 : at->shared;
      return taken;
    }
  };

  [[nodiscard]] static prompt_view prompt_of(std::span<walk_item const> items, place const& p) noexcept {
    return items[p.item].prompt;
  }

  void collect(std::span<walk_item const> items, prompt_kind kind) noexcept {
    places_.clear();
    for (std::size_t i = 0; i != items.size(); ++i)
      if (kind_of(items[i].prompt) == kind) places_.push_back({.shared = 0, .item = static_cast<index>(i)});
  }

  /// Stable merge sort that carries common prefixes along: a comparison starts where an earlier one has got to, so a
  /// prefix of 30,000 symbols is read once for each prompt and not once for each comparison. Its by-product, what each
  /// prompt shares with the one before, is the shape of the tree. (Ng and Kakehi, "Merging string sequences by longest
  /// common prefixes", 2008.)
  void sort(std::span<walk_item const> items) noexcept {
    auto const n = places_.size();
    merged_.resize(n);
    for (std::size_t width = 1; width < n; width *= 2) {
      for (std::size_t low = 0; low < n; low += 2 * width) {
        auto const* const from = places_.data();
        auto const middle = std::min(low + width, n);
        merge(items, {from + low, from + middle, 0}, {from + middle, from + std::min(middle + width, n), 0},
              merged_.data() + low);
      }
      places_.swap(merged_);
    }
  }

  static void merge(std::span<walk_item const> items, run a, run b, place* out) noexcept {
    while (!a.empty() && !b.empty()) {
      // The head that shares more with what was written last is the smaller one.
      if (a.shared != b.shared) {
        *out++ = a.shared > b.shared ? a.take() : b.take();
        continue;
      }
      auto const x = prompt_of(items, *a.at);
      auto const y = prompt_of(items, *b.at);
      auto const shared = common_prefix(x, y, a.shared);
      auto const a_goes = compare_beyond(x, y, shared) <= 0;
      *out++ = a_goes ? a.take() : b.take();
      (a_goes ? b : a).shared = shared;
    }
    while (!a.empty()) *out++ = a.take();
    while (!b.empty()) *out++ = b.take();
  }

  /// Builds the compressed tree from left to right. The stack is the path to the place added last.
  void grow(std::span<walk_item const> items) noexcept {
    nodes_.assign(1, node{});
    stack_.assign(1, root);
    for (index at = 0; at != places_.size(); ++at) {
      auto const& item = items[places_[at].item];
      auto const depth = length_of(item.prompt);
      if (places_[at].shared < depth) {  // else it equals the place before, or is the empty prompt
        close_below(places_[at].shared);
        open(depth, at);
      }
      auto& end = nodes_[stack_.back()];
      ++end.ending;
      ++end.waiters;
      end.earliest = std::min(end.earliest, item.arrival);
    }
    close_below(0);
  }

  void open(std::size_t depth, index first) noexcept {
    stack_.push_back(static_cast<index>(nodes_.size()));
    nodes_.push_back({.depth = depth, .first = first});
  }

  /// Takes nodes deeper than `depth` off the path and gives them to their parents, so that the path ends at `depth` or
  /// above.
  void close_below(std::size_t depth) noexcept {
    while (nodes_[stack_.back()].depth > depth) {
      auto const closed = stack_.back();
      stack_.pop_back();
      if (nodes_[stack_.back()].depth < depth) open(depth, nodes_[closed].first);
      auto& parent = nodes_[stack_.back()];
      auto& child = nodes_[closed];
      parent.waiters += child.waiters;
      parent.earliest = std::min(parent.earliest, child.earliest);
      child.sibling = std::exchange(parent.child, closed);
    }
  }

  /// Marks the children on the way of the last prompt, as far as it leads: nowhere in the tree of the other kind.
  void mark_continuation(std::span<walk_item const> items, prompt_view last) noexcept {
    for (auto at = root; at != none;) {
      auto const depth = nodes_[at].depth;
      auto next = none;
      for (auto c = nodes_[at].child; c != none; c = nodes_[c].sibling) {
        auto& child = nodes_[c];
        auto const shared = common_prefix(head_of(prompt_of(items, places_[child.first]), child.depth), last, depth);
        if (shared == depth) continue;
        child.continues = true;
        if (shared == child.depth) next = c;
        break;
      }
      at = next;
    }
  }

  /// Whether the walk visits `a` before its sibling `b`.
  [[nodiscard]] static bool visited_before(node const& a, node const& b) noexcept {
    if (a.continues != b.continues) return a.continues;
    if (a.waiters != b.waiters) return a.waiters > b.waiters;
    if (a.earliest != b.earliest) return a.earliest < b.earliest;
    return a.first < b.first;
  }

  /// Numbers the prompts of the tree from `next` on and returns the number after the last. Goes through the walk
  /// backwards: then the prompts that end at a node come before its children, which a plain stack does.
  std::uint32_t number(std::span<walk_item> items, std::uint32_t next) noexcept {
    auto const ends_here = [](node const& n) { return n.ending != 0; };
    auto const after = next + static_cast<std::uint32_t>(std::ranges::count_if(nodes_, ends_here));
    auto rank = after;
    stack_.assign(1, root);
    while (!stack_.empty()) {
      auto const& at = nodes_[stack_.back()];
      stack_.pop_back();
      if (ends_here(at)) --rank;
      for (index i = 0; i != at.ending; ++i) items[places_[at.first + i].item].rank = rank;

      auto const siblings = static_cast<std::ptrdiff_t>(stack_.size());
      for (auto c = at.child; c != none; c = nodes_[c].sibling) stack_.push_back(c);
      std::sort(stack_.begin() + siblings, stack_.end(),
                [this](index a, index b) { return visited_before(nodes_[a], nodes_[b]); });
    }
    return after;
  }

  std::size_t capacity_ = 0;
  std::vector<place> places_;
  std::vector<place> merged_;
  std::vector<node> nodes_;
  std::vector<index> stack_;
};

}  // namespace kvlane::detail
