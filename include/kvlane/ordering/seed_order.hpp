#pragma once

#include <kvlane/detail/scored_line.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/ordering_options.hpp>

namespace kvlane {

/// The order of the queue that kvlane succeeds, kept for comparison: like cache_aware, but only waiters that fit count in
/// the walk of prompts, and it does not stay with the family served last, so that equal families take turns.
///
///     kvlane::basic_admission_queue<kvlane::seed_order> queue{{.lanes = 4}};
///
/// Sorts at each pick. Thread safety: distinct objects are safe, shared objects are not.
class seed_order {
 public:
  using waiter = detail::scored_line::waiter;

  seed_order() : seed_order(ordering_options{}) {}
  /// `spread_families` is always on. \throws std::invalid_argument for options that make no sense
  explicit seed_order(ordering_options options) : line_{spread(options)} {}

  void insert(waiter& w) { line_.insert(w); }
  void erase(waiter& w, departure why) noexcept { line_.erase(w, why); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    if (!line_.anyone_fits(q.free_tokens, q.min_priority)) return nullptr;
    // Only tokens decide who counts in the walk; a floor on priority only decides who is taken.
    for (auto* const w : line_.order([&](waiter const& w) { return w.demand() <= q.free_tokens; }).sorted())
      if (detail::scored_line::fits(*w, q.free_tokens, q.min_priority)) return w;
    return nullptr;
  }

  template <class F>
  void for_each_in_order(F&& f) noexcept {
    for (auto* const w : line_.order([](waiter const&) { return true; }).sorted())
      if (!f(*w)) return;
  }

 private:
  static ordering_options const& spread(ordering_options& options) noexcept {
    options.spread_families = true;
    return options;
  }

  detail::scored_line line_;
};

static_assert(ordering_policy<seed_order>);

}  // namespace kvlane
