#pragma once

#include <cstdint>

#include <kvlane/fwd.hpp>

namespace kvlane {

/// Tokens that a request puts through the two phases of service: what is predicted from.
struct work {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t decode_tokens = 0;
};

/// What one request took to serve. Tokens are those computed, not those found in a cache.
struct service_sample {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t decode_tokens = 0;
  fractional_ms prefill{};
  fractional_ms decode{};
};

}  // namespace kvlane
