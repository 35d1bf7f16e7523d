#pragma once

#include <kvlane/fwd.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace server {

using token_ids = std::vector<kvlane::token_id>;

/// Ids below this one are markers that no text can produce.
inline constexpr kvlane::token_id first_text_token = 16;
/// Ids are below this one.
inline constexpr kvlane::token_id token_id_end = 65'536;
/// Letters of a word that make one token.
inline constexpr std::size_t letters_per_token = 8;

/// A stand-in for a real tokenizer. A word is a run of letters and digits (bytes above 127 count as letters) with the one
/// space before it; every `letters_per_token` letters of it are a token, and so is any other single byte. The id of a token
/// is a hash of its text, so equal texts have equal ids and texts that begin alike have ids that begin alike up to the
/// word in which they part.
///
///     tokenize("Hello, world");   // "Hello" "," " world"
///
/// Ids cannot be turned back into text, and two texts may share one. \throws std::bad_alloc
[[nodiscard]] token_ids tokenize(std::string_view text);

/// The same, put behind what is there already.
void append_tokens(token_ids& ids, std::string_view text);

}  // namespace server
