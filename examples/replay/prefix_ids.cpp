#include "prefix_ids.hpp"

#include "line_formats.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace replay {

prefix_ids::placement prefix_ids::place_of(trace_request const& r, std::size_t position) const {
  auto const before = position * block_tokens_;
  auto const tokens = std::min<std::uint64_t>(block_tokens_, r.prompt_tokens - before);
  return {.previous = position == 0 ? 0 : r.blocks[position - 1],
          .position = static_cast<std::uint32_t>(position),
          .tokens = static_cast<std::uint32_t>(tokens)};
}

void prefix_ids::check_in(trace_request const& r) {
  for (std::size_t i = 0; i != r.blocks.size(); ++i) {
    auto const known = placements_.find(r.blocks[i]);
    if (known != placements_.end() && known->second != place_of(r, i))
      throw malformed_line{fmt::format("{} {} stands for another prefix in an earlier line", noun_, r.blocks[i])};
  }
  for (std::size_t i = 0; i != r.blocks.size(); ++i) placements_.emplace(r.blocks[i], place_of(r, i));
}

}  // namespace replay
