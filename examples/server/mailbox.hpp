#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace server {

using request_strand = asio::strand<asio::any_io_executor>;

/// Where one coroutine finds what other threads have to tell it. Messages may be posted from any thread; everything else
/// happens on the strand of the coroutine. Whoever posts holds a share of it, so a mailbox that its coroutine has left
/// takes what still comes, and destroys it.
template <class Message>
class mailbox : public std::enable_shared_from_this<mailbox<Message>> {
 public:
  explicit mailbox(request_strand strand) : strand_{strand}, timer_{std::move(strand)} {}

  void post(Message m) {
    asio::post(strand_, [self = this->shared_from_this(), m = std::move(m)]() mutable {
      self->messages_.push_back(std::move(m));
      self->timer_.cancel();
    });
  }

  /// The next message; nothing after `patience`, or when the wait has been cancelled.
  [[nodiscard]] asio::awaitable<std::optional<Message>> next(std::chrono::steady_clock::duration patience) {
    if (messages_.empty()) {
      asio::error_code ended;
      timer_.expires_after(patience);
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ended));
    }
    if (messages_.empty()) co_return std::nullopt;
    auto m = std::move(messages_.front());
    messages_.pop_front();
    co_return m;
  }

 private:
  request_strand strand_;
  asio::steady_timer timer_;
  std::deque<Message> messages_;
};

}  // namespace server
