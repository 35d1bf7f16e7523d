#pragma once

#include <kvlane/fwd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvlane::bench {

/// Prompts as an agent server sees them: a system prompt that all share, a context that a family shares, an own end.
struct prompt_shape {
  std::size_t length = 512;
  std::size_t common = 128;
  std::size_t own = 128;
  std::size_t family = 8;  ///< how many follow each other with one context
};

/// Makes prompts one after the other, each different.
class prompt_source {
 public:
  explicit prompt_source(prompt_shape const& shape) : shape_{shape}, prompt_(shape.length) {
    for (std::size_t i = 0; i != shape_.common; ++i) prompt_[i] = static_cast<token_id>(i);
  }

  /// The next prompt; valid until the next call.
  [[nodiscard]] std::span<token_id const> next() noexcept {
    auto const family = made_ / shape_.family;
    if (made_ % shape_.family == 0) fill(shape_.common, prompt_.size() - shape_.own, family * 2);
    fill(prompt_.size() - shape_.own, prompt_.size(), made_ * 2 + 1);
    ++made_;
    return prompt_;
  }

 private:
  void fill(std::size_t from, std::size_t to, std::uint64_t what) noexcept {
    auto token = static_cast<std::uint32_t>(what);
    for (auto i = from; i != to; ++i, token += 2'654'435'769U) prompt_[i] = static_cast<token_id>(token & 0x7fff'ffffU);
  }

  prompt_shape shape_;
  std::vector<token_id> prompt_;
  std::uint64_t made_ = 0;
};

}  // namespace kvlane::bench
