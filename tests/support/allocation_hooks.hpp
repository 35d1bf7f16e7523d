#pragma once

// Replaces the global operator new of a program: to be included by exactly one of its files.

#include "support/allocations.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

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
// Those of arrays, too: where a sanitizer brings its own, they do not go through the ones above.
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
