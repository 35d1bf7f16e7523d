#pragma once

#include <kvlane/detail/scored_line.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/ordering_options.hpp>

namespace kvlane {

/// The order of cache_aware by sorting everybody at each pick: what its index is compared with. Costs O(n log n) prompt
/// comparisons, so it is for tests and for short lines.
///
/// Thread safety: distinct objects are safe, shared objects are not.
class cache_aware_scan {
 public:
  using waiter = detail::scored_line::waiter;

  cache_aware_scan() : cache_aware_scan(ordering_options{}) {}
  /// \throws std::invalid_argument for options that make no sense
  explicit cache_aware_scan(ordering_options const& options) : line_{options} {}

  void insert(waiter& w) { line_.insert(w); }
  void erase(waiter& w, departure why) noexcept { line_.erase(w, why); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    if (!line_.anyone_fits(q.free_tokens, q.min_priority)) return nullptr;
    // Everyone counts in the walk; fitting only decides who is taken from the order.
    for (auto* const w : line_.order(everyone).sorted())
      if (detail::scored_line::fits(*w, q.free_tokens, q.min_priority)) return w;
    return nullptr;
  }

  template <class F>
  void for_each_in_order(F&& f) noexcept {
    for (auto* const w : line_.order(everyone).sorted())
      if (!f(*w)) return;
  }

 private:
  static constexpr auto everyone = [](waiter const&) { return true; };

  detail::scored_line line_;
};

static_assert(ordering_policy<cache_aware_scan>);

}  // namespace kvlane
