#pragma once

#include <kvlane/detail/scan_line.hpp>
#include <kvlane/ordering/policy.hpp>

#include <cstddef>
#include <utility>

namespace replay {

/// What a ranking may look at besides a waiter.
struct line_view {
  std::size_t waiting = 0;  ///< length of the line
  kvlane::time_point now{};
};

/// The order of a ranking that changes with time or with the line, which kvlane::order_by has no room for: the lowest
/// `rank(waiter, line_view)` goes first, then the earliest. Looks at every waiter at each pick.
///
/// Thread safety: distinct objects are safe, shared objects are not.
template <class Ranking>
class ranked_scan {
 public:
  class waiter : public kvlane::detail::scanned_waiter {
   protected:
    ~waiter() = default;
  };

  explicit ranked_scan(Ranking rank = {}) : rank_{std::move(rank)} {}

  void insert(waiter& w) { line_.insert(w); }
  void erase(waiter& w, kvlane::departure) noexcept { line_.erase(w); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(kvlane::pick_query const& q) noexcept {
    line_view const view{.waiting = line_.size(), .now = q.now};
    waiter* best = nullptr;
    for (auto* const w : line_.all())
      if (w->demand() <= q.free_tokens && w->priority() >= q.min_priority &&
          (best == nullptr || before(*w, *best, view)))
        best = w;
    return best;
  }

 private:
  bool before(waiter const& a, waiter const& b, line_view const& view) const noexcept {
    if (a.priority() != b.priority()) return a.priority() > b.priority();
    auto const rank_a = rank_(a, view);
    auto const rank_b = rank_(b, view);
    return rank_a != rank_b ? rank_a < rank_b : a.arrival() < b.arrival();
  }

  Ranking rank_;
  kvlane::detail::scan_line<waiter> line_;
};

}  // namespace replay
