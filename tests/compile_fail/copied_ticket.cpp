// A place in line has one owner.
// expect: use of deleted function|call to deleted constructor|call to implicitly-deleted copy constructor
#include <kvlane/ticket.hpp>

#include <utility>

kvlane::ticket copy(kvlane::ticket& place);

kvlane::ticket copy(kvlane::ticket& place) {
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::ticket other = std::move(place);
#else
  kvlane::ticket other = place;
#endif
  return other;
}
