#pragma once

#include "api_request.hpp"
#include "engine.hpp"

#include <kvlane/http.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

/// What the reply to one request cost, in tokens.
struct token_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  ///< of the prompt
  std::uint64_t reply_tokens = 0;
};

/// Writes the replies to one request in the shapes of the OpenAI API.
class reply_writer {
 public:
  struct heading {
    api kind = api::chat;
    std::uint64_t number = 0;  ///< the request's, from which its id is made
    std::string model;
    std::int64_t created = 0;  ///< seconds since 1970
    bool with_usage = false;   ///< every chunk has a usage, and the last one is not null
  };

  explicit reply_writer(heading h);

  [[nodiscard]] std::string const& id() const noexcept { return id_; }

  /// The whole reply.
  [[nodiscard]] std::string whole(std::string_view text, finish_reason why, token_usage const& usage) const;

  /// Events of a stream, each with the empty line that ends it. The first one tells the role; nothing for plain texts.
  [[nodiscard]] std::string first_event() const;
  [[nodiscard]] std::string text_event(std::string_view text) const;
  [[nodiscard]] std::string last_event(finish_reason why) const;
  /// Nothing unless the usage was asked for.
  [[nodiscard]] std::string usage_event(token_usage const& usage) const;

 private:
  heading heading_;
  std::string id_;
};

/// Ends a stream that went well.
inline constexpr std::string_view done_event = "data: [DONE]\n\n";
/// Keeps a stream open; clients skip it.
[[nodiscard]] std::string comment_event(std::string_view text);
/// An error in a stream that has begun; its body as in a reply of its own.
[[nodiscard]] std::string error_event(std::string_view body);

[[nodiscard]] kvlane::http_reply to_http(api_error const& error);
[[nodiscard]] kvlane::http_reply ok(std::string body);

}  // namespace server
