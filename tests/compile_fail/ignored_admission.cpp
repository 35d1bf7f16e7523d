// An admission that nobody looks at is a lane that is given back at once.
// expect: (ignoring return.*nodiscard|ignoring returned value.*nodiscard|ignoring return value of function declared with 'nodiscard' attribute)
// expect: unused-result
#include <kvlane/admission_queue.hpp>

void knock(kvlane::admission_queue& queue);

void knock(kvlane::admission_queue& queue) {
#ifdef KVLANE_COMPILE_FAIL_OK
  auto const slot = queue.try_admit({.prompt_tokens = 100});
  if (slot) return;
#else
  queue.try_admit({.prompt_tokens = 100});
#endif
}
