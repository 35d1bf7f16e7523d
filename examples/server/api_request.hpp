#pragma once

#include "tokenizer.hpp"

#include <kvlane/fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace server {

enum class api : std::uint8_t { chat, text };

/// A request to complete something, understood and checked as far as that goes without a queue.
struct completion_request {
  api kind = api::chat;
  token_ids prompt;
  std::optional<std::uint32_t> max_tokens;
  std::optional<kvlane::duration> max_wait;  ///< how long the client itself waits
  std::uint32_t priority = 0;                ///< higher goes first; the queue knows the highest
  std::uint64_t flow = 0;                    ///< hash of whom the request is for; 0: not told
  bool stream = false;
  bool include_usage = false;
  bool ignore_eos = false;
};

/// Why a request is answered with an error before anything is asked of the queue, in the words of the OpenAI API.
struct api_error {
  int status = 400;
  std::string message;
  std::string param;  ///< the field at fault; empty: none
  std::string code;   ///< empty: none
};

/// The parts of an HTTP request that matter here.
struct http_call {
  std::string method;
  std::string path;
  std::string body;
  std::string authorization;   ///< header Authorization; empty: none
  std::string client_timeout;  ///< header x-stainless-timeout, whole seconds; empty: none
};

/// Reads the body of POST /v1/chat/completions or /v1/completions. `model` is the only model there is. Fields that only
/// change how tokens are drawn (temperature and the like) are ignored; those that would change what comes back and are not
/// known here are refused.
[[nodiscard]] std::variant<completion_request, api_error> read_request(api kind, http_call const& call,
                                                                       std::string_view model);

}  // namespace server
