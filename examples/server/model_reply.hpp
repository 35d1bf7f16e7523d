#pragma once

#include "engine.hpp"

#include <cstdint>
#include <span>

namespace server {

/// What the modelled engine answers to a prompt: words drawn by a hash of it, always the same. One word is one token, and
/// the tokenizer turns the text of a reply back into the tokens it was made of.
class model_reply {
 public:
  explicit model_reply(std::span<kvlane::token_id const> prompt) noexcept;

  /// How many tokens it has: 24 to 151.
  [[nodiscard]] std::uint32_t length() const noexcept;
  /// Its token number `index`, also behind the end.
  [[nodiscard]] token_made token(std::uint32_t index) const;

 private:
  std::uint64_t seed_ = 0;
  bool in_chat_ = false;  // the prompt ends with a marker, so the first word has no space before it
};

}  // namespace server
