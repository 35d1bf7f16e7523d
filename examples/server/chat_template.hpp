#pragma once

#include "tokenizer.hpp"

#include <span>
#include <string>

namespace server {

enum class role : std::uint8_t { system, user, assistant, tool };

struct chat_message {
  role from = role::user;
  std::string content;
};

/// Ends the words of a message.
inline constexpr kvlane::token_id end_of_message = 1;
/// Begins a message.
[[nodiscard]] constexpr kvlane::token_id marker_of(role r) noexcept { return 2 + static_cast<kvlane::token_id>(r); }

/// A conversation as one prompt: each message between its marker and an end marker, and the marker of the reply at the end.
/// A conversation that goes on from another one begins with the prompt of that one and its reply.
[[nodiscard]] token_ids prompt_of(std::span<chat_message const> messages);

}  // namespace server
