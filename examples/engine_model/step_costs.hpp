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
};

/// A machine for prompts of tens of thousands of tokens. ASSUMED, not measured: about what a 70-billion-parameter model
/// with grouped-query attention does on eight H100: 36,000 prompt tokens a second; 140 GB of weights and 320 KB for a KV
/// token read from memory at each decode step, with overheads.
inline constexpr engine_constants large_engine{.decode_base_ms = 12.0,
                                               .decode_per_request_ms = 0.1,
                                               .decode_per_kv_token_us = 0.02,
                                               .prefill_base_ms = 5.0,
                                               .prefill_per_token_us = 1000.0 / 36.0};

/// Llama-2-7B on one A10G under S-LoRA: fitted to the latencies that were measured there for a Chatbot Arena trace.
inline constexpr engine_constants a10g_engine{.decode_base_ms = 16.30,
                                              .decode_per_request_ms = 0.245,
                                              .decode_per_kv_token_us = 2.018,
                                              .prefill_base_ms = 35.8,
                                              .prefill_per_token_us = 213.1};

/// \throws std::invalid_argument for a constant that is negative, not a number or above a million, naming it
void validate(engine_constants const& c);

/// Duration of one decode step, rounded to nanoseconds.
[[nodiscard]] std::chrono::nanoseconds decode_time(engine_constants const& c, std::uint64_t requests,
                                                   std::uint64_t kv_tokens) noexcept;

/// Duration of one prefill, rounded to nanoseconds.
[[nodiscard]] std::chrono::nanoseconds prefill_time(engine_constants const& c, std::uint64_t computed_tokens) noexcept;

}  // namespace engine_model
