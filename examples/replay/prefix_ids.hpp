#pragma once

#include "workload.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace replay {

/// Remembers where each prefix id of a trace stood: an id that follows different ids, or covers different numbers of
/// tokens, names no prefix, and hits counted with it would mean nothing.
class prefix_ids {
 public:
  /// `noun` is what the trace calls an id.
  prefix_ids(std::uint32_t block_tokens, char const* noun) : block_tokens_{block_tokens}, noun_{noun} {}

  /// Checks the ids of a request against all that came before, and remembers them.
  /// \throws malformed_line, and then nothing is remembered
  void check_in(trace_request const& r);

 private:
  struct placement {
    std::uint64_t previous;  ///< meaningless for the first block
    std::uint32_t position;
    std::uint32_t tokens;
    bool operator==(placement const&) const = default;
  };
  [[nodiscard]] placement place_of(trace_request const& r, std::size_t position) const;

  std::uint32_t block_tokens_;
  char const* noun_;
  std::unordered_map<std::uint64_t, placement> placements_;
};

}  // namespace replay
