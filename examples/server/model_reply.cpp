#include "model_reply.hpp"

#include "hash.hpp"

#include <array>
#include <string_view>

namespace server {

namespace {

// None has more letters than a token.
constexpr std::array<std::string_view, 48> words{
    "a",      "and",   "as",     "at",     "batch",  "block", "budget", "cache", "can",  "comes", "each",    "early",
    "engine", "fair",  "first",  "for",    "fresh",  "from",  "goes",   "has",   "in",   "is",    "it",      "kept",
    "lane",   "late",  "line",   "long",   "moves",  "next",  "no",     "of",    "on",   "order", "prefix",  "prompt",
    "ready",  "reply", "served", "shares", "slower", "so",    "soon",   "the",   "then", "token", "waiting", "with"};
static_assert(
    [] {
      for (auto const w : words)
        if (w.size() > letters_per_token) return false;
      return true;
    }(),
    "a word is one token");

}  // namespace

model_reply::model_reply(std::span<kvlane::token_id const> prompt) noexcept
    : in_chat_{!prompt.empty() && prompt.back() < first_text_token} {
  for (auto const id : prompt) seed_ = extended(seed_, static_cast<std::uint64_t>(id));
}

std::uint32_t model_reply::length() const noexcept { return 24 + static_cast<std::uint32_t>(seed_ % 128); }

token_made model_reply::token(std::uint32_t index) const {
  auto const drawn = extended(seed_, index);
  token_made made;
  if (index == 0 && in_chat_)
    made.text = words[drawn % words.size()];
  else if (index > 2 && drawn % 11 == 0)
    made.text = ".";
  else
    made.text.append(" ").append(words[drawn / 16 % words.size()]);
  made.id = tokenize(made.text).front();
  return made;
}

}  // namespace server
