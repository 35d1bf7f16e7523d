#pragma once

#include "workload.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace replay {

/// Why a line is not a request; the text stands after `file:line: `.
struct malformed_line : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::uint64_t most_tokens = std::numeric_limits<std::uint32_t>::max();

/// The lines of a Mooncake trace: JSON objects with timestamp (ms), input_length, output_length and hash_ids.
///
/// It remembers where each hash id stood: an id that follows different ids, or covers different numbers of tokens, names
/// no prefix, and hits counted with it would mean nothing.
class mooncake_lines {
 public:
  /// \throws malformed_line, and then the line has left no trace
  [[nodiscard]] trace_request parse(std::string_view line);

 private:
  struct placement {
    std::uint64_t previous;  ///< meaningless for the first block
    std::uint32_t position;
    std::uint32_t tokens;
    bool operator==(placement const&) const = default;
  };
  [[nodiscard]] static placement place_of(trace_request const& r, std::size_t position);

  std::unordered_map<std::uint64_t, placement> placements_;
};

/// The first line of an Azure LLM inference trace.
inline constexpr std::string_view azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// A line of an Azure trace: moment, prompt tokens, reply tokens. Nothing is known about prefixes. The arrival counts from
/// 1970-01-01. \throws malformed_line
[[nodiscard]] trace_request parse_azure_line(std::string_view line);

/// `2023-11-16 18:15:46.6805900`, up to 9 decimals, as the time since 1970-01-01; `+00:00` may follow.
/// \throws malformed_line
[[nodiscard]] nanoseconds parse_moment(std::string_view text);

}  // namespace replay
