#pragma once

#include <kvlane/ordering/seed_order.hpp>

#include <cstdint>
#include <map>

namespace replay {

/// The order of the queue that kvlane succeeds, with its own bound in place of kvlane's: who has been in line for 32 turns
/// goes first, whether or not anybody has passed it, and keeps the rest waiting until it fits. To be run with
/// limits::max_overtakes out of reach. A line of more than 32 is served as it came.
///
/// (A newcomer that fits is let in by the core without a question to the order, past an aged waiter that does not fit;
/// that queue makes it wait. It takes a free lane to see the difference.)
///
/// Thread safety: distinct objects are safe, shared objects are not.
class seed_order_turn_bound {
 public:
  using waiter = kvlane::seed_order::waiter;
  static constexpr std::uint64_t longest_in_order = 32;

  explicit seed_order_turn_bound(kvlane::ordering_options const& options) : order_{options} {}

  void insert(waiter& w) {
    auto const place = by_arrival_.emplace(w.arrival(), &w).first;
    try {
      order_.insert(w);
    } catch (...) {
      by_arrival_.erase(place);
      throw;
    }
  }
  void erase(waiter& w, kvlane::departure why) noexcept {
    if (why == kvlane::departure::admitted) ++turn_;
    by_arrival_.erase(w.arrival());
    order_.erase(w, why);
  }
  void rescore(waiter& w) noexcept { order_.rescore(w); }

  [[nodiscard]] waiter* pick(kvlane::pick_query const& q) noexcept {
    if (by_arrival_.empty()) return nullptr;
    auto* const oldest = by_arrival_.begin()->second;
    if (turn_ - oldest->enqueued_turn() < longest_in_order) return order_.pick(q);
    return oldest->demand() <= q.free_tokens && oldest->priority() >= q.min_priority ? oldest : nullptr;
  }

 private:
  kvlane::seed_order order_;
  std::map<std::uint64_t, waiter*> by_arrival_;
  std::uint64_t turn_ = 0;
};

static_assert(kvlane::ordering_policy<seed_order_turn_bound>);

}  // namespace replay
