// The clock is read under the mutex, in the middle of a decision.
// expect: a clock returns a kvlane::time_point and does not throw
#include <kvlane/admission_queue.hpp>

struct sundial {
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::time_point operator()() const noexcept { return {}; }
#else
  kvlane::time_point operator()() const { return {}; }
#endif
};

kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, sundial> queue{{.lanes = 4}};
