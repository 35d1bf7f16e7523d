#pragma once

#include <algorithm>
#include <cstdint>

#include <kvlane/detail/order_score.hpp>
#include <kvlane/detail/scan_line.hpp>
#include <kvlane/detail/scan_order.hpp>
#include <kvlane/ordering/policy.hpp>

namespace kvlane {

namespace detail {

/// The parts that the two policies of scored and grouped waiters share.
class scored_line {
 public:
  class waiter : public scanned_waiter {
   protected:
    ~waiter() = default;
  };

  explicit scored_line(ordering_options const& options) : options_{options} { validate(options_); }

  void insert(waiter& w) {
    scan_.reserve(line_.size() + 1);
    line_.insert(w);
  }
  void erase(waiter& w, departure why) noexcept {
    if (why == departure::admitted) {
      ++turn_;
      last_admitted_ = w.shared();
    }
    line_.erase(w);
  }

  /// Whether anyone fits: cheap, and mostly nobody does.
  [[nodiscard]] bool anyone_fits(pick_query const& q) const noexcept {
    return std::ranges::any_of(line_.all(), [&](waiter const* w) { return fits(*w, q); });
  }
  [[nodiscard]] static bool fits(waiter const& w, pick_query const& q) noexcept {
    return w.demand() <= q.free_tokens && w.priority() >= q.min_priority;
  }

  /// Orders the waiters for which `wanted` is true.
  template <class Wanted>
  scan_order<waiter*>& order(Wanted const& wanted) noexcept {
    scan_.clear();
    for (auto* const w : line_.all())
      if (wanted(*w))
        scan_.add({.prompt = w->prompt(),
                   .priority = w->priority(),
                   .saved_cost = w->saved_cost(),
                   .enqueued_turn = w->enqueued_turn(),
                   .arrival = w->arrival(),
                   .handle = w});
    scan_.compute(turn_, options_, last_admitted_.view());
    return scan_;
  }

 private:
  ordering_options options_;
  std::uint64_t turn_ = 0;
  shared_prompt last_admitted_;
  scan_line<waiter> line_;
  scan_order<waiter*> scan_;
};

}  // namespace detail

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
/// This version sorts at each pick: O(n log n) prompt comparisons. Thread safety: distinct objects are safe, shared
/// objects are not.
class cache_aware {
 public:
  using waiter = detail::scored_line::waiter;

  /// \throws std::invalid_argument for options that make no sense
  explicit cache_aware(ordering_options const& options = {}) : line_{options} {}

  void insert(waiter& w) { line_.insert(w); }
  void erase(waiter& w, departure why) noexcept { line_.erase(w, why); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    if (!line_.anyone_fits(q)) return nullptr;
    // Everyone counts in the walk; fitting only decides who is taken from the order.
    for (auto* const w : line_.order(everyone).sorted())
      if (detail::scored_line::fits(*w, q)) return w;
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

static_assert(ordering_policy<cache_aware>);

}  // namespace kvlane
