// Leases and tickets point at their queue: it stays where it is.
// expect: use of deleted function|call to deleted constructor
#include <kvlane/admission_queue.hpp>

#include <utility>

void move_away(kvlane::admission_queue& queue);

void move_away(kvlane::admission_queue& queue) {
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::admission_queue& same = queue;
  same.close();
#else
  kvlane::admission_queue other{std::move(queue)};
  other.close();
#endif
}
