#include "tokenizer.hpp"

#include "hash.hpp"

#include <algorithm>
#include <cctype>

namespace server {

namespace {

bool is_letter(char c) noexcept {
  auto const byte = static_cast<unsigned char>(c);
  return byte > 127 || std::isalnum(byte) != 0;
}

kvlane::token_id id_of(std::string_view token) noexcept {
  constexpr auto ids = static_cast<std::uint64_t>(token_id_end - first_text_token);
  return first_text_token + static_cast<kvlane::token_id>(hash_of(token) % ids);
}

/// Bytes of the token at the front of `text`, which is not empty.
std::size_t token_length(std::string_view text) noexcept {
  auto const space = text.size() > 1 && text[0] == ' ' && is_letter(text[1]) ? std::size_t{1} : 0;
  auto const letters = text.substr(space, letters_per_token);
  auto const count = static_cast<std::size_t>(std::ranges::find_if_not(letters, is_letter) - letters.begin());
  return count == 0 ? 1 : space + count;
}

}  // namespace

void append_tokens(token_ids& ids, std::string_view text) {
  while (!text.empty()) {
    auto const length = token_length(text);
    ids.push_back(id_of(text.substr(0, length)));
    text.remove_prefix(length);
  }
}

token_ids tokenize(std::string_view text) {
  token_ids ids;
  append_tokens(ids, text);
  return ids;
}

}  // namespace server
