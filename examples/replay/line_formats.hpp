#pragma once

#include "prefix_ids.hpp"
#include "workload.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace replay {

/// Why a line is not a request; the text stands after `file:line: `.
struct malformed_line : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::uint64_t most_tokens = std::numeric_limits<std::uint32_t>::max();

/// The lines of a Mooncake trace: JSON objects with timestamp (ms), input_length, output_length and hash_ids.
class mooncake_lines {
 public:
  /// \throws malformed_line, and then the line has left no trace
  [[nodiscard]] trace_request parse(std::string_view line);

 private:
  prefix_ids known_{prefix_block_tokens, "hash id"};
};

/// The first line of an Azure LLM inference trace.
inline constexpr std::string_view azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// A line of an Azure trace: moment, prompt tokens, reply tokens. Nothing is known about prefixes. The arrival counts from
/// 1970-01-01. \throws malformed_line
[[nodiscard]] trace_request parse_azure_line(std::string_view line);

/// `2023-11-16 18:15:46.6805900`, up to 9 decimals, as the time since 1970-01-01; `+00:00` may follow.
/// \throws malformed_line
[[nodiscard]] nanoseconds parse_moment(std::string_view text);

/// The first line of what S-LoRA measured for each request of a Chatbot Arena trace.
inline constexpr std::string_view slora_header =
    "policy,arrival_s,client,input_tokens,output_tokens,first_token_latency_s,request_latency_s";

/// A request and when its first and its last token came. Only runs with policy FCFS are read. \throws malformed_line
[[nodiscard]] trace_request parse_slora_line(std::string_view line);

/// The first line of what vLLM measured for each request.
inline constexpr std::string_view vllm_header =
    "arrival_s,queued_s,scheduled_s,first_token_s,last_token_s,input_tokens,output_tokens,prompt_blocks16";

/// Tokens of a prefix block of vLLM.
inline constexpr std::uint32_t vllm_block_tokens = 16;

/// The lines of a measured vLLM run: moments in seconds, tokens, and the ids of the prompt's whole 16-token prefix blocks,
/// runs written `0-5 9`.
class vllm_lines {
 public:
  /// \throws malformed_line, and then the line has left no trace
  [[nodiscard]] trace_request parse(std::string_view line);

 private:
  prefix_ids known_{vllm_block_tokens, "block id"};
};

/// The first line of requests that were sampled from the statistics of ServeGen's clients.
inline constexpr std::string_view servegen_header = "arrival_s,client,input_tokens,output_tokens";

/// A sampled request of a client; no real one. \throws malformed_line
[[nodiscard]] trace_request parse_servegen_line(std::string_view line);

}  // namespace replay
