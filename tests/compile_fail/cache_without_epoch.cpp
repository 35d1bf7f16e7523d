// A cache that does not say when it has changed would have to be asked about every waiter at every event.
// expect: prefix_cache
#include <kvlane/admission_queue.hpp>

#include <cstdint>
#include <span>

struct radix_cache {
#ifdef KVLANE_COMPILE_FAIL_OK
  std::uint64_t epoch() noexcept { return 1; }
#endif
  std::uint64_t saved_cost(std::span<kvlane::token_id const>) noexcept { return 0; }
};

void connect(kvlane::admission_queue& queue);

void connect(kvlane::admission_queue& queue) { queue.attach(radix_cache{}); }
