// A clock counts seconds where the queue needs a moment.
// expect: a clock is a function that returns a kvlane::time_point
#include <kvlane/admission_queue.hpp>

struct sundial {
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::time_point operator()() const noexcept { return {}; }
#else
  int operator()() const noexcept { return 0; }
#endif
};

kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, sundial> queue{{.lanes = 4}};
