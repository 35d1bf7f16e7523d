// order_by takes a strict weak order of waiters.
// expect: (strict_weak_order|constraints not satisfied)
#include <kvlane/ordering/order_by.hpp>

struct smallest_first {
#ifdef KVLANE_COMPILE_FAIL_OK
  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return a.demand() < b.demand();
  }
#else
  bool operator()(kvlane::waiter_base const& a) const noexcept { return a.demand() == 0; }
#endif
};

kvlane::order_by<smallest_first> line;
