#pragma once

#include "completion_task.hpp"
#include "exchange.hpp"
#include "serving.hpp"
#include "task_list.hpp"

#include <kvlane/admission_queue.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace server {

/// The server without HTTP: answers calls, with one completion_task for each that wants something completed.
///
///     service s{settings, context.get_executor(), engine};
///     s.handle(call, std::move(exchange));
///
/// Thread safety: safe. Lifetime: until its executor runs nothing any more; the engine outlives it.
class service {
 public:
  service(service_settings settings, asio::any_io_executor executor, engine& e);

  void handle(http_call const& call, std::shared_ptr<exchange> client);

  /// Takes nothing new, and lets what waits and runs come to its end.
  void drain() noexcept { queue_.drain(); }
  /// Answers whoever waits or runs with a refusal.
  void close();

  [[nodiscard]] kvlane::admission_queue& queue() noexcept { return queue_; }
  [[nodiscard]] server_counters& counters() noexcept { return counters_; }
  /// Those that run, in order of arrival.
  [[nodiscard]] std::vector<running_info> running() const;

 private:
  void complete(api kind, http_call const& call, std::shared_ptr<exchange> client);
  void answer(exchange& client, kvlane::http_reply const& reply);

  server_counters counters_;
  kvlane::admission_queue queue_;
  serving serving_;
  std::atomic<std::uint64_t> last_tag_ = 0;
  task_list tasks_;
};

}  // namespace server
