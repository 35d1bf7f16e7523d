#pragma once

#include <kvlane/detail/first_fit.hpp>
#include <kvlane/detail/order_score.hpp>
#include <kvlane/detail/pool.hpp>
#include <kvlane/detail/prefix_tree.hpp>
#include <kvlane/detail/score_cells.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kvlane::detail {

/// The order of cache_aware, kept up to date: best that fits, insert, erase, rescore and turn.
///
/// With a band of G turns and an aging cost a, the grouping score of a waiter that joined at turn e with saved cost S is, at
/// turn t, S + a*G*ceil((t - e) / G). It grows by a*G at turns t = e mod G, so for all waiters of a residue class alike: the
/// score is a key that never changes plus what the class has gained. Waiters with equal keys form a bucket for as long as
/// they wait; a class is a search tree of buckets. Ties between waiters of a bucket, and between buckets of different
/// classes, are decided by the walk of all prompts: each bucket keeps a radix tree of its own waiters whose branches are
/// ordered as the walk orders them. Without `group_prefixes` one search tree of waiters is all there is to it.
///
/// pick: O(G log n), and O(log n) for each node on the way down. insert, erase, rescore: O(log n) for each node on the way
/// up, and for each edge on it O(1) for each bucket that parts just there and has waiters below that edge, O(log n) where
/// the order of siblings changes. At worst that is O(n) for one step, when one family holds most of the line and each of
/// its members has a score of its own.
///
/// Thread safety: distinct objects are safe, shared objects are not. Only `insert` allocates.
class score_index {
 public:
  using waiter = indexed_waiter;

  explicit score_index(ordering_options const& options) : options_{options}, prompts_{weights_} {
    validate(options_);
    gain_ = static_cast<std::int64_t>(std::max<std::uint64_t>(options_.aging_cost_per_turn, 1)) * options_.band_turns;
  }

  /// \throws std::bad_alloc, and then nothing has changed
  void insert(waiter& w) {
    reserve(size_ + 1);
    ++size_;
    prompts_.insert(w, [this](prefix_edge const& edge) { cells_.reorder(edge); });
    rescore_to(w, w.saved_cost());
    enter(w);
  }

  void erase(waiter& w, departure why) noexcept {
    leave(w);
    if (why == departure::admitted) {
      ++turn_;
      if (!options_.spread_families) prompts_.serve(w);
    }
    prompts_.erase(w, [this](prefix_edge const& edge) { cells_.reorder(edge); });
    --size_;
  }

  /// After the saved cost of `w` has changed.
  void rescore(waiter& w) noexcept {
    leave(w);
    rescore_to(w, w.saved_cost());
    enter(w);
  }

  /// What the cache saves for a waiter, changes of prefixes included.
  [[nodiscard]] std::uint64_t saved_cost(waiter const& w) const noexcept {
    return static_cast<std::uint64_t>(w.saved + everybody_);
  }

  /// The saved cost of everyone whose prompt begins with `prefix` rises by `by` (or falls), within its bounds. O(1) when
  /// that is everybody, else one rescore for each of those who rise or of those who do not, whoever are fewer.
  void raise(prompt_view prefix, std::int64_t by) noexcept {
    auto* const node = prompts_.find(prefix);
    if (node == nullptr || by == 0) return;
    auto const rising = prompts_.waiters_at(*node);
    if (rising == size_ && all_can_rise(by)) {
      everybody_ += by;
    } else if (rising > size_ / 2 && all_can_rise(by)) {
      everybody_ += by;
      prompts_.for_each_below(prompts_.top(), node, [&](tree_waiter& w) { move(static_cast<waiter&>(w), -by); });
    } else {
      prompts_.for_each_below(*node, nullptr, [&](tree_waiter& w) { move(static_cast<waiter&>(w), by); });
    }
  }

  /// The best waiter of at least `min_priority` that needs at most `tokens`, or nullptr.
  [[nodiscard]] waiter* pick(std::uint64_t tokens, std::uint32_t min_priority) const noexcept {
    if (!options_.group_prefixes) {
      auto* const first = flat_.first_fit(tokens);
      return first != nullptr && first->priority() >= min_priority ? first : nullptr;
    }
    waiter* best = nullptr;
    std::int64_t best_score = 0;
    for (auto const& c : classes_) {
      auto* const b = c.buckets.first_fit(tokens);
      if (b == nullptr || b->priority < min_priority) continue;
      auto const score = b->key + gained(c.residue);
      auto const level = best != nullptr && b->priority == best->priority();
      if (best != nullptr && (level ? score < best_score : b->priority < best->priority())) continue;
      auto* const w = cells_.first_below(*b->root, tokens);
      if (level && score == best_score && cells_.walks_before(*best, *w)) continue;
      best = w;
      best_score = score;
    }
    return best;
  }

  /// Calls `f(waiter&) -> bool` in order until it returns false. O(G) and the way to the next leaf for each.
  template <class F>
  void for_each_in_order(F&& f) noexcept {
    for (auto* w = flat_.first(); w != nullptr; w = peer_tree::next(*w))
      if (!f(*w)) return;
    for (auto& c : classes_) {
      c.at = c.buckets.first();
      c.next = c.at == nullptr ? nullptr : cells_.first_below(*c.at->root);
    }
    while (auto* const c = foremost_class()) {
      auto& w = *c->next;
      c->next = cells_.next_in_bucket(w);
      if (c->next == nullptr) {
        c->at = bucket_tree::next(*c->at);
        c->next = c->at == nullptr ? nullptr : cells_.first_below(*c->at->root);
      }
      if (!f(w)) return;
    }
  }

 private:
  using bucket_tree = fitting_treap<score_bucket, by_score>;
  using peer_tree = fitting_treap<waiter, by_standing>;

  struct residue_class {
    std::uint64_t residue = 0;
    bucket_tree buckets;
    // Where for_each_in_order stands.
    score_bucket* at = nullptr;
    waiter* next = nullptr;
  };

  // -- scores

  /// What the waiters of a class have gained by turn t: one band for each turn before t of their residue.
  [[nodiscard]] std::int64_t gained_at(std::uint64_t turn, std::uint64_t residue) const noexcept {
    auto const bands = turn / options_.band_turns + (residue < turn % options_.band_turns ? 1 : 0);
    return static_cast<std::int64_t>(bands) * gain_;
  }
  [[nodiscard]] std::int64_t gained(std::uint64_t residue) const noexcept { return gained_at(turn_, residue); }
  [[nodiscard]] std::uint64_t residue_of(waiter const& w) const noexcept {
    return w.enqueued_turn() % options_.band_turns;
  }

  // -- walking the whole order

  [[nodiscard]] residue_class* foremost_class() noexcept {
    residue_class* best = nullptr;
    for (auto& c : classes_)
      if (c.next != nullptr && (best == nullptr || stands_before(c, *best))) best = &c;
    return best;
  }
  [[nodiscard]] bool stands_before(residue_class const& a, residue_class const& b) const noexcept {
    if (a.at->priority != b.at->priority) return a.at->priority > b.at->priority;
    auto const score_a = a.at->key + gained(a.residue);
    auto const score_b = b.at->key + gained(b.residue);
    return score_a != score_b ? score_a > score_b : cells_.walks_before(*a.next, *b.next);
  }

  // -- entering and leaving

  void reserve(std::size_t n) {
    prompts_.reserve(n);
    buckets_.reserve(n);
    cells_.reserve(n);
    if (classes_.size() == classes_.capacity()) classes_.reserve(std::max<std::size_t>(4, 2 * classes_.size()));
  }

  void rescore_to(waiter& w, std::uint64_t saved_cost) noexcept {
    w.saved = static_cast<std::int64_t>(std::min(saved_cost, highest_saved_cost)) - everybody_;
    if (size_ == 1) least_saved_ = most_saved_ = w.saved;
    least_saved_ = std::min(least_saved_, w.saved);
    most_saved_ = std::max(most_saved_, w.saved);
  }
  void move(waiter& w, std::int64_t by) noexcept {
    auto const saved = std::clamp<std::int64_t>(w.saved + everybody_ + by, 0, highest_saved_cost);
    leave(w);
    rescore_to(w, static_cast<std::uint64_t>(saved));
    enter(w);
  }
  /// Careful: the bounds are those of everyone who stood here since the line was last empty.
  [[nodiscard]] bool all_can_rise(std::int64_t by) const noexcept {
    return least_saved_ + everybody_ + by >= 0 &&
           most_saved_ + everybody_ + by <= static_cast<std::int64_t>(highest_saved_cost);
  }

  void enter(waiter& w) noexcept {
    w.standing = w.saved - static_cast<std::int64_t>(options_.aging_cost_per_turn * w.enqueued_turn());
    if (options_.group_prefixes)
      cells_.enter(bucket_for(w), w);
    else
      flat_.insert(w, weights_);
  }

  void leave(waiter& w) noexcept {
    if (!options_.group_prefixes) return flat_.erase(w);
    auto& b = *w.cell->bucket;
    cells_.leave(w);
    if (b.root == nullptr) drop(b, residue_of(w));
  }

  [[nodiscard]] score_bucket& bucket_for(waiter const& w) noexcept {
    auto& c = class_for(residue_of(w));
    auto const key = w.saved - gained_at(w.enqueued_turn(), c.residue);
    auto* const known = c.buckets.find([&](score_bucket const& b) {
      if (b.priority != w.priority()) return w.priority() > b.priority ? -1 : 1;
      return key == b.key ? 0 : key > b.key ? -1 : 1;
    });
    if (known != nullptr) return *known;
    auto& made = *buckets_.make();
    made.key = key;
    made.priority = w.priority();
    c.buckets.insert(made, weights_);
    return made;
  }
  [[nodiscard]] residue_class& class_for(std::uint64_t residue) noexcept {
    for (auto& c : classes_)
      if (c.residue == residue) return c;
    return classes_.emplace_back(residue_class{residue, {}, nullptr, nullptr});
  }
  void drop(score_bucket& b, std::uint64_t residue) noexcept {
    auto& c = class_for(residue);
    c.buckets.erase(b);
    buckets_.give_back(&b);
    if (!c.buckets.empty()) return;
    if (&c != &classes_.back()) c = std::move(classes_.back());
    classes_.pop_back();
  }

  ordering_options options_;
  std::int64_t gain_ = 0;
  std::int64_t everybody_ = 0;    // by how much the saved costs of all have risen
  std::int64_t least_saved_ = 0;  // bounds of waiter::saved
  std::int64_t most_saved_ = 0;
  std::uint64_t turn_ = 0;
  std::size_t size_ = 0;
  treap_weights weights_;
  prefix_tree prompts_;
  pool<score_bucket> buckets_;
  score_cells cells_{prompts_, weights_};
  std::vector<residue_class> classes_;
  peer_tree flat_;  // everyone, without group_prefixes
};

}  // namespace kvlane::detail
