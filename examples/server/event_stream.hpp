#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/post.hpp>
#include <restinio/all.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace server {

/// A stream over a RESTinio connection that has at most one piece of it to write: what comes meanwhile is put together and
/// follows as the next. RESTinio itself would keep each piece and copy the list of them for each further one, so a client
/// that does not read would cost time with the square of its reply.
///
/// Thread safety: safe. Lifetime: owned by a shared_ptr; keeps itself alive until all is written.
class event_stream : public std::enable_shared_from_this<event_stream> {
 public:
  using response = restinio::response_builder_t<restinio::chunked_output_t>;

  /// `executor` is where it goes on after a write.
  event_stream(response r, asio::any_io_executor executor) : response_{std::move(r)}, executor_{std::move(executor)} {}

  /// Sends the head.
  void begin() {
    std::lock_guard const lock{mutex_};
    write();
  }
  void send(std::string const& events) {
    std::lock_guard const lock{mutex_};
    pending_ += events;
    if (!writing_) write();
  }
  /// Lets go of `busy` when the last byte has been written, or never will be. Nothing may be sent any more.
  void end(std::shared_ptr<void> busy) {
    std::lock_guard const lock{mutex_};
    busy_ = std::move(busy);
    ended_ = true;
    if (!writing_) write();
  }

 private:
  /// Needs the mutex.
  void write() {
    if (!pending_.empty()) response_.append_chunk(std::exchange(pending_, {}));
    if (ended_) {
      response_.done([busy = std::move(busy_)](auto const&) {});
      return;
    }
    writing_ = true;
    // Not inside the call: RESTinio may make it while it writes, or while we hold the mutex. It comes also after a failure.
    response_.flush(
        [self = shared_from_this()](auto const&) { asio::post(self->executor_, [self] { self->written(); }); });
  }
  void written() {
    std::lock_guard const lock{mutex_};
    writing_ = false;
    if (ended_ || !pending_.empty()) write();
  }

  std::mutex mutex_;
  response response_;
  asio::any_io_executor executor_;
  std::string pending_;
  bool writing_ = false;
  bool ended_ = false;
  std::shared_ptr<void> busy_;
};

}  // namespace server
