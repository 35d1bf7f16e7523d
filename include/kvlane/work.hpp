#pragma once

#include <kvlane/fwd.hpp>

#include <cstdint>
#include <limits>

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

namespace detail {

__extension__ typedef unsigned __int128 wide_sum;  // no sum of 64-bit figures that a machine can hold overflows it

[[nodiscard]] constexpr std::uint64_t saturated(wide_sum sum) noexcept {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  return sum > most ? most : static_cast<std::uint64_t>(sum);
}

/// A sum of works that loses nothing, so that what is added can be taken out again whatever else is in it.
class work_sum {
 public:
  constexpr void add(work const& w) noexcept {
    prompt_ += w.prompt_tokens;
    decode_ += w.decode_tokens;
  }
  constexpr void add(work_sum const& other) noexcept {
    prompt_ += other.prompt_;
    decode_ += other.decode_;
  }
  /// Precondition: it has been added.
  constexpr void subtract(work const& w) noexcept {
    prompt_ -= w.prompt_tokens;
    decode_ -= w.decode_tokens;
  }
  /// What it comes to, saturated.
  [[nodiscard]] constexpr work total() const noexcept {
    return {.prompt_tokens = saturated(prompt_), .decode_tokens = saturated(decode_)};
  }

 private:
  wide_sum prompt_ = 0;
  wide_sum decode_ = 0;
};

}  // namespace detail

}  // namespace kvlane
