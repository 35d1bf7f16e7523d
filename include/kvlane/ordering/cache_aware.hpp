#pragma once

#include <kvlane/detail/score_index.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/ordering_options.hpp>

#include <cstdint>
#include <memory>

namespace kvlane {

/// The default order: by what the prefix cache saves and how long one has waited, waiters with a common prompt prefix one
/// after the other, and families with what the engine computed last. Exactly the order of the design, at every step:
///
/// 1. priority, higher first;
/// 2. grouping score, higher first: saved_cost + ceil(age / band) * band * max(aging, 1), age counted in turns;
/// 3. where prompts differ, their rank in a depth-first walk of the radix tree of all waiting prompts, which goes first
///    where the last admitted prompt went, then where most wait, then to the earliest waiter, then to the smaller symbol;
/// 4. effective score, higher first: saved_cost + age * aging;
/// 5. arrival.
///
/// Visiting heavy subtrees first is SGLang's DFS-weight; staying with the child served last keeps a small cache useful
/// when many families wait. Without `group_prefixes` the order is 1, 4, 5.
///
/// The cost of a step does not grow with the line but for its logarithm; detail/score_index.hpp says what it is made of,
/// and ordering/cache_aware_scan.hpp is the same order by sorting. Thread safety: distinct objects are safe, shared objects
/// are not.
class cache_aware {
 public:
  using waiter = detail::indexed_waiter;

  /// \throws std::bad_alloc
  cache_aware() : cache_aware(ordering_options{}) {}
  /// \throws std::invalid_argument for options that make no sense, std::bad_alloc
  explicit cache_aware(ordering_options const& options) : index_{std::make_unique<detail::score_index>(options)} {}

  void insert(waiter& w) { index_->insert(w); }
  void erase(waiter& w, departure why) noexcept { index_->erase(w, why); }
  void rescore(waiter& w) noexcept { index_->rescore(w); }
  [[nodiscard]] waiter* pick(pick_query const& q) noexcept { return index_->pick(q.free_tokens, q.min_priority); }
  void on_cached(prefix_change const& change) noexcept { index_->raise(change.prefix, change.cost()); }
  void on_evicted(prefix_change const& change) noexcept { index_->raise(change.prefix, -change.cost()); }

  template <class F>
  void for_each_in_order(F&& f) noexcept {
    index_->for_each_in_order(f);
  }

 private:
  std::unique_ptr<detail::score_index> index_;  // its parts refer to each other, so it stays where it is
};

static_assert(ordering_policy<cache_aware>);

}  // namespace kvlane
