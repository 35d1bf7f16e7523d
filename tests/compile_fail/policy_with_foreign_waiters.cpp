// The nodes of a policy live in its waiters, and those are the library's.
// expect: see kvlane/ordering/policy.hpp for what an ordering policy must have
#include <kvlane/admission_queue.hpp>
#include <kvlane/ordering/fcfs.hpp>

#ifdef KVLANE_COMPILE_FAIL_OK
using order = kvlane::fcfs;
#else
class order {
 public:
  struct waiter {};
  void insert(waiter&) noexcept {}
  void erase(waiter&, kvlane::departure) noexcept {}
  void rescore(waiter&) noexcept {}
  waiter* pick(kvlane::pick_query const&) noexcept { return nullptr; }
};
#endif

kvlane::basic_admission_queue<order> queue{{.lanes = 4}};
