#pragma once

#include <cassert>

/// Version of the library, read by the build from here. Follows semantic versioning.
#define KVLANE_VERSION_MAJOR 0
#define KVLANE_VERSION_MINOR 1
#define KVLANE_VERSION_PATCH 0

/// Checks a precondition. Misuse is a bug in the caller, so it is asserted and not reported as an error.
/// Define it before the first include of kvlane to route failures elsewhere, alike in every translation unit.
#ifndef KVLANE_ASSERT
#define KVLANE_ASSERT(condition, message) assert((condition) && (message))
#endif

/// Keeps the general case out of the function that leads to it, so that the simple one stays small.
#if defined(__GNUC__)
#define KVLANE_NOINLINE __attribute__((noinline))
#else
#define KVLANE_NOINLINE
#endif

/// Marks the few objects whose address matters across shared libraries (an error category is compared by address).
#if defined(__GNUC__)
#define KVLANE_EXPORT __attribute__((visibility("default")))
#else
#define KVLANE_EXPORT
#endif
