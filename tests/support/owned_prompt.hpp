#pragma once

#include <kvlane/prompt.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace kvlane::test {

/// A prompt that owns its symbols, of one kind or the other.
struct owned_prompt {
  std::vector<token_id> t = {};
  std::vector<std::uint64_t> b = {};

  owned_prompt() = default;
  owned_prompt(std::vector<token_id> tokens) : t{std::move(tokens)} {}
  owned_prompt(std::vector<std::uint64_t> blocks) : b{std::move(blocks)} {}

  [[nodiscard]] prompt_view view() const { return {.tokens = t, .blocks = b}; }
};

}  // namespace kvlane::test
