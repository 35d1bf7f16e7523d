// A lane and its tokens have one owner.
// expect: use of deleted function|call to deleted constructor|call to implicitly-deleted copy constructor
#include <kvlane/lease.hpp>

#include <utility>

kvlane::lease copy(kvlane::lease& held);

kvlane::lease copy(kvlane::lease& held) {
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::lease other = std::move(held);
#else
  kvlane::lease other = held;
#endif
  return other;
}
