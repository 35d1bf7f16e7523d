#pragma once

#include <kvlane/detail/first_fit.hpp>
#include <kvlane/ordering/policy.hpp>

#include <cstdint>

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

  void insert(waiter& w) noexcept { line_.insert(w, weights_); }
  void erase(waiter& w, departure) noexcept { line_.erase(w); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    auto* const first = line_.first_fit(q.free_tokens);
    return first != nullptr && first->priority() >= q.min_priority ? first : nullptr;
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
    static std::uint64_t demand(waiter const& w) noexcept { return w.demand(); }
    static std::uint64_t& least(waiter& w) noexcept { return w.least_demand_; }
  };
  using tree = detail::fitting_treap<waiter, traits>;

  tree line_;
  detail::treap_weights weights_;
};

static_assert(ordering_policy<fcfs>);

}  // namespace kvlane
