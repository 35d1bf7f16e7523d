#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <kvlane/detail/treap.hpp>
#include <kvlane/ordering/policy.hpp>

namespace kvlane {

/// First come, first served within each priority; whoever does not fit is passed over until the overtake bound stops it.
/// (`limits::max_overtakes = 0` makes it a strict queue.)
///
///     kvlane::basic_admission_queue<kvlane::fcfs> queue{{.lanes = 4}};
///
/// Every step is O(log n) and none allocates. Thread safety: distinct objects are safe, shared objects are not.
class fcfs {
 public:
  class waiter : public waiter_base {
   public:
    waiter() noexcept = default;

   protected:
    ~waiter() = default;

   private:
    friend fcfs;
    detail::treap_hook<waiter> links_;
    std::uint64_t least_demand_ = 0;  // over the subtree
  };

  void insert(waiter& w) noexcept { line_.insert(w); }
  void erase(waiter& w, departure) noexcept { line_.erase(w); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    auto* w = line_.root();
    if (w == nullptr || w->least_demand_ > q.free_tokens) return nullptr;
    for (;;) {
      auto* const before = tree::left(*w);
      if (before != nullptr && before->least_demand_ <= q.free_tokens)
        w = before;
      else if (w->demand() <= q.free_tokens)
        return w->priority() >= q.min_priority ? w : nullptr;
      else
        w = tree::right(*w);
    }
  }

  template <class F>
  void for_each_in_order(F&& f) noexcept {
    for (auto* w = line_.first(); w != nullptr && f(*w); w = tree::next(*w)) {
    }
  }

 private:
  struct traits {
    static detail::treap_hook<waiter>& hook(waiter& w) noexcept { return w.links_; }
    static bool before(waiter const& a, waiter const& b) noexcept {
      return a.priority() != b.priority() ? a.priority() > b.priority() : a.arrival() < b.arrival();
    }
    static void aggregate(waiter& w) noexcept {
      w.least_demand_ = w.demand();
      if (w.links_.left != nullptr) w.least_demand_ = std::min(w.least_demand_, w.links_.left->least_demand_);
      if (w.links_.right != nullptr) w.least_demand_ = std::min(w.least_demand_, w.links_.right->least_demand_);
    }
  };
  using tree = detail::treap<waiter, traits>;

  tree line_;
};

static_assert(ordering_policy<fcfs>);

}  // namespace kvlane
