#pragma once

#include "service.hpp"

#include <asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace server {

struct listen_settings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one
  std::chrono::seconds longest_exchange = std::chrono::hours{24};
};

/// The HTTP side: takes requests for a service, and tells those whose client has left.
///
/// Thread safety: distinct objects are safe. Lifetime: until the context runs nothing any more.
class http_front {
 public:
  http_front(asio::io_context& context, listen_settings const& s, service& behind);
  ~http_front();

  /// Takes connections from now on. `listening` is told the port, `failed` why there is none; from the context.
  void open(std::function<void(std::uint16_t)> listening, std::function<void(std::string)> failed);

  /// `idle` is called once, in any thread, as soon as no request is without its whole reply, written out.
  void when_idle(std::function<void()> idle);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace server
