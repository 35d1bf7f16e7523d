#pragma once

#include <kvlane/http.hpp>

#include <functional>
#include <string>

namespace server {

/// One HTTP request that waits for its reply, which is either whole or a stream of server-sent events.
///
/// Thread safety: the reply is given by one thread at a time.
class exchange {
 public:
  exchange() = default;
  exchange(exchange const&) = delete;
  exchange& operator=(exchange const&) = delete;
  virtual ~exchange() = default;

  /// The whole reply, with a JSON body.
  virtual void reply(kvlane::http_reply const& whole) = 0;
  /// The same with a body of some other type.
  virtual void reply_text(std::string body, std::string const& content_type) = 0;

  /// Commits to status 200 and a stream.
  virtual void begin_stream() = 0;
  virtual void send(std::string events) = 0;
  virtual void end_stream() = 0;

  /// `gone` is called once, in any thread, when the client leaves before the reply has ended; at once if it has left.
  virtual void when_gone(std::function<void()> gone) = 0;
};

}  // namespace server
