#pragma once

#include "workload.hpp"

#include <kvlane/snapshot.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace replay {

/// A request inside a server that decides about admission without kvlane.
struct served_request {
  trace_request const* origin = nullptr;
  std::size_t index = 0;        ///< in the workload
  std::uint32_t reply = 1;      ///< tokens that it will get, at least 1
  std::uint32_t generated = 0;  ///< tokens that the steps begun so far yield
  request_times times;          ///< since arrival, as far as it has got

  /// Tokens whose KV it needs for its next step.
  [[nodiscard]] std::uint64_t kv_needed() const noexcept { return std::uint64_t{origin->prompt_tokens} + generated; }
};

/// What an engine does at once.
struct server_step {
  nanoseconds duration{};
  struct admission {
    served_request* who;
    std::uint64_t hit_tokens;  ///< found in a prefix cache
  };
  std::vector<admission> admitted;  ///< now, first time or after a preemption; a prompt may take several steps
  struct token {
    served_request* who;
    std::uint32_t nth;  ///< of its reply, from 1
  };
  std::vector<token> tokens;    ///< that are out when the step ends
  std::uint64_t preempted = 0;  ///< requests that lost their KV before the step
};

/// A server as its clients see it: its line, its admission rule and how its engine forms steps. Measured servers are modelled
/// by it, and yardsticks for kvlane: what happens without admission control, or with a simpler one. A rule that stands in
/// front of another server, such as a bounded semaphore, is a server_model that hands requests on to the one behind it.
///
/// It knows no time: server_run calls it, from one thread, and keeps the clock.
class server_model {
 public:
  server_model() = default;
  server_model(server_model const&) = delete;
  server_model& operator=(server_model const&) = delete;
  virtual ~server_model() = default;

  /// Whether a request could run if it were alone. One that could not must not arrive.
  [[nodiscard]] virtual bool can_ever_run(served_request const& r) const = 0;

  /// A request joins the line. It lives until it has finished.
  virtual void arrive(served_request& r) = 0;

  /// Decides who is admitted and preempted, and what the engine does next. Nothing: there is nothing to do until somebody
  /// arrives or finishes.
  [[nodiscard]] virtual std::optional<server_step> next_step() = 0;

  /// The last token of a request is out: its memory is free again.
  virtual void finish(served_request& r) = 0;

  /// Lanes, KV tokens and the length of the line; the rest stays 0.
  [[nodiscard]] virtual kvlane::queue_snapshot load() const = 0;
};

}  // namespace replay
