#pragma once

// Replaces the global operator new of a program: to be included by exactly one of its files.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

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

// Not inlined: GCC would see malloc and free behind new and delete, and warn of the mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  auto& state = kvlane::test::allocations;
  ++state.count;
  if (state.fail_in != ~std::uint64_t{0} && state.fail_in-- == 0) {
    state.fail_in = ~std::uint64_t{0};
    throw std::bad_alloc{};
  }
  if (auto* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
