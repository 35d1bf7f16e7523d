// A hold that nobody keeps holds nothing.
// expect: (ignoring return.*nodiscard|ignoring returned value.*nodiscard|ignoring return value of function declared with 'nodiscard' attribute)
// expect: unused-result
#include <kvlane/admission_queue.hpp>

void pause(kvlane::admission_queue& queue);

void pause(kvlane::admission_queue& queue) {
#ifdef KVLANE_COMPILE_FAIL_OK
  auto const hold = queue.hold_dispatch();
#else
  queue.hold_dispatch();
#endif
}
