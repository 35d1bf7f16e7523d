// A policy must let a waiter go.
// expect: see kvlane/ordering/policy.hpp for what an ordering policy must have
#include <kvlane/admission_queue.hpp>
#include <kvlane/ordering/fcfs.hpp>

class forgetful_order {
 public:
  using waiter = kvlane::fcfs::waiter;
  void insert(waiter& w) noexcept { line_.insert(w); }
#ifdef KVLANE_COMPILE_FAIL_OK
  void erase(waiter& w, kvlane::departure why) noexcept { line_.erase(w, why); }
#endif
  void rescore(waiter&) noexcept {}
  waiter* pick(kvlane::pick_query const& q) noexcept { return line_.pick(q); }

 private:
  kvlane::fcfs line_;
};

kvlane::basic_admission_queue<forgetful_order> queue{{.lanes = 4}};
