#pragma once

#include <kvlane/error.hpp>
#include <kvlane/rejection.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace kvlane {

/// A refusal as an HTTP server answers it. `retry_after` goes into the header Retry-After, `should_retry` into
/// x-should-retry (which the OpenAI clients obey), `body` is JSON in the shape of the OpenAI API.
struct http_reply {
  int status = 500;
  std::optional<std::chrono::seconds> retry_after = {};
  std::optional<bool> should_retry = {};
  std::string body;
};

/// How one kind of refusal is told over HTTP.
struct http_rule {
  int status = 500;
  std::string type;          ///< error.type of the body
  std::string code;          ///< error.code of the body
  bool retry_after = false;  ///< whether to say when to come back
};

/// The rules for all kinds of refusal. Starts as the library's table; any row can be replaced:
///
///     kvlane::http_table table;
///     table[kvlane::errc::queue_full].status = 503;    // for a proxy that moves only those to another server
///
/// Thread safety: distinct objects are safe, shared objects are safe for reading.
class http_table {
 public:
  /// The table of the library. \throws std::bad_alloc
  http_table();
  [[nodiscard]] http_rule& operator[](errc code) noexcept { return rules_[static_cast<std::size_t>(code)]; }
  [[nodiscard]] http_rule const& operator[](errc code) const noexcept { return rules_[static_cast<std::size_t>(code)]; }

 private:
  std::array<http_rule, 10> rules_;
};

/// The reply to a refused request. A wait that is longer than a client can be told to stay away (60 s) comes with
/// should_retry = false, so that clients give up and do not knock in vain. \throws std::bad_alloc
[[nodiscard]] http_reply to_http(rejection const& why);
/// The same by rules of one's own.
[[nodiscard]] http_reply to_http(rejection const& why, http_table const& table);

}  // namespace kvlane
