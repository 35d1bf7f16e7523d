// An observer is told what has happened: there is nobody left to hear that it failed.
// expect: an observer is called with a kvlane::event and does not throw
#include <kvlane/admission_queue.hpp>

struct printer {
#ifdef KVLANE_COMPILE_FAIL_OK
  void operator()(kvlane::event const&) noexcept {}
#else
  void operator()(kvlane::event const&) {}
#endif
};

kvlane::basic_admission_queue<kvlane::cache_aware, printer> queue{{.lanes = 4}};
