#include "step_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace engine_model {

namespace {

/// No step takes longer than a day, so that times stay far from overflow whatever the constants.
constexpr std::chrono::nanoseconds longest_step = std::chrono::hours{24};

std::chrono::nanoseconds from_ms(double ms) noexcept {
  constexpr auto most = std::chrono::duration<double, std::milli>{longest_step}.count();
  return std::chrono::nanoseconds{std::llround(std::min(ms, most) * 1e6)};
}

void check(double value, char const* name) {
  constexpr double most = 1e6;
  if (!(value >= 0.0 && value <= most))
    throw std::invalid_argument{
        fmt::format("the engine constant {} is {}; a number from 0 to {} is needed", name, value, most)};
}

}  // namespace

void validate(engine_constants const& c) {
  check(c.decode_base_ms, "decode-base-ms");
  check(c.decode_per_request_ms, "decode-per-request-ms");
  check(c.decode_per_kv_token_us, "decode-per-kv-token-us");
  check(c.prefill_base_ms, "prefill-base-ms");
  check(c.prefill_per_token_us, "prefill-per-token-us");
}

std::chrono::nanoseconds decode_time(engine_constants const& c, std::uint64_t requests,
                                     std::uint64_t kv_tokens) noexcept {
  return from_ms(c.decode_base_ms + c.decode_per_request_ms * static_cast<double>(requests) +
                 c.decode_per_kv_token_us * static_cast<double>(kv_tokens) / 1000.0);
}

std::chrono::nanoseconds prefill_time(engine_constants const& c, std::uint64_t computed_tokens) noexcept {
  return from_ms(c.prefill_base_ms + c.prefill_per_token_us * static_cast<double>(computed_tokens) / 1000.0);
}

std::chrono::nanoseconds mixed_step_time(engine_constants const& c, std::uint64_t computed_tokens,
                                         std::uint64_t requests, std::uint64_t kv_tokens) noexcept {
  auto const compute_ms = c.prefill_per_token_us * static_cast<double>(computed_tokens) / 1000.0;
  return from_ms(std::max(c.decode_base_ms, compute_ms) + c.decode_per_request_ms * static_cast<double>(requests) +
                 c.decode_per_kv_token_us * static_cast<double>(kv_tokens) / 1000.0);
}

}  // namespace engine_model
