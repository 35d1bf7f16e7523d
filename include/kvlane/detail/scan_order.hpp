#pragma once

#include <kvlane/config.hpp>
#include <kvlane/detail/order_score.hpp>
#include <kvlane/detail/prefix_walk.hpp>
#include <kvlane/prompt.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace kvlane::detail {

/// What a scan_order needs to know of a waiter.
template <class Handle>
struct scan_entry {
  prompt_view prompt = {};
  std::uint32_t priority = 0;
  std::uint64_t saved_cost = 0;
  std::uint64_t enqueued_turn = 0;
  std::uint64_t arrival = 0;
  Handle handle = {};  ///< handed back: a pointer to the waiter, or its number
};

/// Works out the order of a set of waiters from scratch, for policies that scan and for sets that are seen only once.
///
///     scan_order<waiter*> order;
///     order.reserve(line.size());
///     for (auto& w : line) order.add({.prompt = w.prompt(), .priority = w.priority(), .handle = &w});
///     order.compute(turn, options, {.tokens = served_last});
///     waiter* const next = order.best().value_or(nullptr);
///
/// Thread safety: distinct objects are safe, shared objects are not.
/// Lifetime: keeps the views that were added until `clear`; the symbols must stay until `compute` has returned.
template <class Handle>
  requires std::is_trivially_copyable_v<Handle>
class scan_order {
 public:
  /// Makes room for `n` waiters. Grows geometrically. Throws std::bad_alloc or std::length_error; then the waiters and
  /// their order are as before. The only member that allocates.
  void reserve(std::size_t n) {
    walk_.reserve(n);
    auto const room = walk_.capacity();
    entries_.reserve(room);
    items_.reserve(room);
    keys_.reserve(room);
    handles_.reserve(room);
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// Forgets all waiters and keeps the room.
  void clear() noexcept {
    entries_.clear();
    keys_.clear();
  }

  /// Adds a waiter. Precondition: there is room. Voids the order computed before.
  void add(scan_entry<Handle> const& entry) noexcept {
    KVLANE_ASSERT(entries_.size() < entries_.capacity(), "scan_order::add needs room, call reserve before");
    entries_.push_back(entry);
    keys_.clear();
  }

  /// Computes the order at `turn`, after `last` was admitted (empty: nobody was). Precondition: `options` are valid.
  /// Takes O(n log n) steps with group_prefixes, O(n) without; does not block or allocate.
  void compute(std::uint64_t turn, ordering_options const& options, prompt_view last = {}) noexcept {
    items_.clear();
    keys_.clear();
    for (auto const& e : entries_) items_.push_back({.prompt = e.prompt, .arrival = e.arrival});
    if (options.group_prefixes)
      walk_.rank(items_, last, options.spread_families ? last_prompt::ignore : last_prompt::follow);
    for (std::size_t i = 0; i != entries_.size(); ++i) {
      auto const& e = entries_[i];
      auto const age = age_at(turn, e.enqueued_turn);
      keys_.push_back({.priority = e.priority,
                       .rank = items_[i].rank,
                       .grouping = options.group_prefixes ? grouping_score(e.saved_cost, age, options) : 0,
                       .effective = effective_score(e.saved_cost, age, options),
                       .arrival = e.arrival,
                       .position = static_cast<std::uint32_t>(i)});
    }
  }

  /// The handle of the first waiter in the order computed last; nothing if there is none. O(n), does not allocate.
  [[nodiscard]] std::optional<Handle> best() const noexcept {
    if (keys_.empty()) return std::nullopt;
    return entries_[std::ranges::min_element(keys_, before)->position].handle;
  }

  /// The handles of all waiters in the order computed last, valid until the next call of another member. O(n log n),
  /// does not allocate.
  [[nodiscard]] std::span<Handle const> sorted() noexcept {
    std::ranges::sort(keys_, before);
    handles_.clear();
    for (auto const& key : keys_) handles_.push_back(entries_[key.position].handle);
    return handles_;
  }

 private:
  prefix_walk walk_;
  std::vector<scan_entry<Handle>> entries_;
  std::vector<walk_item> items_;
  std::vector<order_key> keys_;
  std::vector<Handle> handles_;
};

}  // namespace kvlane::detail
