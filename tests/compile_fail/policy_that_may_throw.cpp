// Of a policy only `insert` may throw: a lane that was given back must find its next owner.
// expect: see kvlane/ordering/policy.hpp for what an ordering policy must have
#include <kvlane/admission_queue.hpp>
#include <kvlane/ordering/fcfs.hpp>

struct careless_order : kvlane::fcfs {
#ifdef KVLANE_COMPILE_FAIL_OK
  waiter* pick(kvlane::pick_query const& q) noexcept { return fcfs::pick(q); }
#else
  waiter* pick(kvlane::pick_query const& q) { return fcfs::pick(q); }
#endif
};

kvlane::basic_admission_queue<careless_order> queue{{.lanes = 4}};
