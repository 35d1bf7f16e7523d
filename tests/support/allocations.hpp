#pragma once

// Counts and fails the allocations of a program, one file of which includes support/allocation_hooks.hpp.

#include <cstdint>

namespace kvlane::test {

/// What this thread's allocations do.
struct allocation_state {
  std::uint64_t count = 0;                    ///< allocations so far
  std::uint64_t fail_in = ~std::uint64_t{0};  ///< so many more succeed, then one fails
};
inline thread_local allocation_state allocations;

/// The allocations of this thread while `f` runs.
template <class F>
[[nodiscard]] std::uint64_t allocations_of(F&& f) {
  auto const before = allocations.count;
  f();
  return allocations.count - before;
}

/// While it lives, the allocation after the next `succeeding` ones of this thread throws std::bad_alloc.
class failing_allocation {
 public:
  explicit failing_allocation(std::uint64_t succeeding) noexcept { allocations.fail_in = succeeding; }
  failing_allocation(failing_allocation const&) = delete;
  failing_allocation& operator=(failing_allocation const&) = delete;
  ~failing_allocation() { allocations.fail_in = ~std::uint64_t{0}; }
};

}  // namespace kvlane::test
