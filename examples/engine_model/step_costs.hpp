#pragma once

#include <chrono>
#include <cstdint>

namespace engine_model {

/// What the engine's steps cost. A decode step takes
///
///     decode_base + decode_per_request * requests in the batch + decode_per_kv_token * KV tokens they hold
///
/// and the prefill of a request takes prefill_base + prefill_per_token * tokens that are not in the prefix cache.
struct engine_constants {
  double decode_base_ms = 0;
  double decode_per_request_ms = 0;
  double decode_per_kv_token_us = 0;
  double prefill_base_ms = 0;
  double prefill_per_token_us = 0;

  bool operator==(engine_constants const&) const = default;
};

/// A machine for prompts of tens of thousands of tokens. ASSUMED, not measured: about what a 70-billion-parameter model
/// with grouped-query attention does on eight H100: 36,000 prompt tokens a second; 140 GB of weights and 320 KB for a KV
/// token read from memory at each decode step, with overheads.
inline constexpr engine_constants large_engine{.decode_base_ms = 12.0,
                                               .decode_per_request_ms = 0.1,
                                               .decode_per_kv_token_us = 0.02,
                                               .prefill_base_ms = 5.0,
                                               .prefill_per_token_us = 1000.0 / 36.0};

/// Every cost so many times as high.
[[nodiscard]] constexpr engine_constants scaled(engine_constants const& c, double factor) noexcept {
  return {.decode_base_ms = c.decode_base_ms * factor,
          .decode_per_request_ms = c.decode_per_request_ms * factor,
          .decode_per_kv_token_us = c.decode_per_kv_token_us * factor,
          .prefill_base_ms = c.prefill_base_ms * factor,
          .prefill_per_token_us = c.prefill_per_token_us * factor};
}

/// Llama-7B on one A10G, as the authors of VTC profiled it: worked out from the cost function that they published (see
/// docs/calibration.md). Prefills are ASSUMED to read the weights once, like a decode step.
inline constexpr engine_constants a10g_profile{.decode_base_ms = 25.08,
                                               .decode_per_request_ms = 0.1,
                                               .decode_per_kv_token_us = 1.479,
                                               .prefill_base_ms = 25.08,
                                               .prefill_per_token_us = 207.5};
/// FITTED to the run time that was measured under S-LoRA for a Chatbot Arena trace, and to nothing else.
inline constexpr double a10g_fitted = 1.04;
inline constexpr engine_constants a10g_engine = scaled(a10g_profile, a10g_fitted);

/// Llama-3.1-8B in 16 bits on one RTX 4090 at the peaks of its data sheet (see docs/calibration.md): 15.01 GB of weights and
/// 131,072 bytes for a KV token at 1,008 GB/s, 13.96 GFLOP for a token at 165.2 TFLOP/s.
inline constexpr engine_constants rtx4090_peak{.decode_base_ms = 14.89,
                                               .decode_per_request_ms = 0,
                                               .decode_per_kv_token_us = 0.13,
                                               .prefill_base_ms = 14.89,
                                               .prefill_per_token_us = 84.5};
/// FITTED to the run time that was measured under vLLM 0.19, and to nothing else.
inline constexpr double rtx4090_fitted = 1.23;
inline constexpr engine_constants rtx4090_engine = scaled(rtx4090_peak, rtx4090_fitted);

/// \throws std::invalid_argument for a constant that is negative, not a number or above a million, naming it
void validate(engine_constants const& c);

/// Duration of one decode step, rounded to nanoseconds.
[[nodiscard]] std::chrono::nanoseconds decode_time(engine_constants const& c, std::uint64_t requests,
                                                   std::uint64_t kv_tokens) noexcept;

/// Duration of one prefill, rounded to nanoseconds.
[[nodiscard]] std::chrono::nanoseconds prefill_time(engine_constants const& c, std::uint64_t computed_tokens) noexcept;

/// Duration of a step that computes parts of prompts beside decode tokens (chunked prefill), rounded to nanoseconds: that of
/// reading the weights (decode_base) or of computing all these tokens (prefill_per_token), whichever is longer, and what
/// a decode step takes for `requests` that hold `kv_tokens`.
[[nodiscard]] std::chrono::nanoseconds mixed_step_time(engine_constants const& c, std::uint64_t computed_tokens,
                                                       std::uint64_t requests, std::uint64_t kv_tokens) noexcept;

}  // namespace engine_model
