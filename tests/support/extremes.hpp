#pragma once

#include <cstdint>
#include <limits>

namespace kvlane::test {

/// The largest amount there is, of tokens, turns or arrivals.
inline constexpr auto most = std::numeric_limits<std::uint64_t>::max();

}  // namespace kvlane::test
