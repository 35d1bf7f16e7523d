#pragma once

#include "api_reply.hpp"
#include "api_request.hpp"
#include "engine_run.hpp"
#include "exchange.hpp"
#include "serving.hpp"

#include <kvlane/lease.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/request.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace server {

/// What a debug page shows of a request that runs.
struct running_info {
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint32_t priority = 0;
  kvlane::lane_id lane = 0;
  std::uint64_t kv_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reply_tokens = 0;
  std::uint32_t preempted = 0;
  kvlane::fractional_ms waited{};
  kvlane::fractional_ms age{};  ///< since it arrived
};

/// One request from its arrival to the end of its reply: a coroutine on a strand of its own. It asks the queue for a lane
/// and KV tokens, has the engine run there, and passes on what comes. When its client leaves, or `stop` is called, it gives
/// up its place, its lane and its tokens at once.
///
/// Thread safety: `start`, `stop` and `info` may be called from any thread. Lifetime: it keeps itself alive until it ends.
class completion_task : public std::enable_shared_from_this<completion_task> {
 public:
  completion_task(serving& with, std::uint64_t tag, completion_request request, std::shared_ptr<exchange> client);

  void start();
  /// Ends it with this refusal, in whatever state it is.
  void stop(kvlane::rejection const& why);
  /// Nothing while it does not run.
  [[nodiscard]] std::optional<running_info> info() const;
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_; }

 private:
  enum class run_end : std::uint8_t { done, given_up, out_of_room };

  asio::awaitable<void> run();
  asio::awaitable<void> serve(kvlane::lease slot);
  asio::awaitable<run_end> follow(engine_run& running, kvlane::lease& slot);
  asio::awaitable<bool> come_back(kvlane::lease& slot);
  bool grow(kvlane::lease& slot);
  [[nodiscard]] kvlane::request request_now() const;
  [[nodiscard]] bool given_up() const noexcept { return gone_ || stopped_with_.has_value(); }
  void interrupt();
  void take(token_made const& token);
  void begin_reply();
  void end_reply(ended const& end, kvlane::lease& slot);
  void give_up();
  void refuse(kvlane::http_reply const& reply);
  void fail_with(kvlane::rejection const& why) { refuse(kvlane::to_http(why)); }
  void publish(kvlane::lease const* slot);
  void log(std::string_view how) const;

  serving& with_;
  std::uint64_t tag_;
  completion_request request_;
  std::shared_ptr<exchange> client_;
  reply_writer writer_;
  request_strand strand_;
  asio::cancellation_signal cancel_;
  kvlane::time_point arrived_;

  // What follows is touched on the strand.
  bool gone_ = false;
  std::optional<kvlane::rejection> stopped_with_;
  bool streaming_ = false;
  std::uint32_t max_tokens_ = 0;
  token_ids tokens_;  // prompt and what there is of the reply
  std::string text_;
  token_usage usage_;
  kvlane::fractional_ms waited_{};
  std::uint32_t overtaken_ = 0;
  std::uint32_t preempted_ = 0;

  mutable std::mutex shown_mutex_;
  std::optional<running_info> shown_;
};

}  // namespace server
