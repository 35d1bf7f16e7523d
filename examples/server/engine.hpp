#pragma once

#include "tokenizer.hpp"

#include <kvlane/fwd.hpp>
#include <kvlane/work.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

namespace server {

/// What an engine is asked to do on a lane.
struct generation {
  kvlane::lane_id lane = 0;
  token_ids prompt;                 ///< with the part of the reply that an earlier, preempted run has made
  std::uint32_t reply_so_far = 0;   ///< how many tokens at the end of `prompt` are that part
  std::uint32_t max_tokens = 0;     ///< of the reply, still to be made
  std::uint64_t room = 0;           ///< KV tokens that it may hold, prompt and all
  bool ends_at_max_tokens = false;  ///< does not end before
};

/// The prompt has been computed.
struct prefilled {
  std::uint64_t cached_tokens = 0;  ///< of the prompt, which were in the prefix cache
};
/// A token of the reply.
struct token_made {
  kvlane::token_id id = 0;
  std::string text;
};
/// The generation stands still until it gets more room by `extend`, or is aborted.
struct room_needed {};

enum class finish_reason : std::uint8_t { stop, length };
/// The generation is over; the engine has forgotten it.
struct ended {
  finish_reason why = finish_reason::stop;
  kvlane::service_sample sample;  ///< of this run
};

using engine_event = std::variant<prefilled, token_made, room_needed, ended>;

/// Hears what becomes of a generation, in order, one call at a time, in any thread. Must not block or throw.
using event_sink = std::function<void(engine_event)>;

/// What the server needs of an engine: it runs one generation on each lane, says when a KV reservation is used up instead
/// of going beyond it, and tells what its prefix cache would save. It has no queue: kvlane decides who gets a lane.
///
/// Thread safety: everything may be called from any thread; for one lane, by whoever holds its lease.
class engine {
 public:
  engine() = default;
  engine(engine const&) = delete;
  engine& operator=(engine const&) = delete;
  virtual ~engine() = default;

  /// Starts a generation on a lane that has none. `sink` is not called inside. \throws std::bad_alloc
  virtual void start(generation g, event_sink sink) = 0;
  /// Lets the generation on `lane` hold `room` KV tokens in all.
  virtual void extend(kvlane::lane_id lane, std::uint64_t room) = 0;
  /// Ends the generation on `lane`, if there is one, at once: its lane may be given to the next one right away. An event
  /// that another thread is about to deliver may still come.
  virtual void abort(kvlane::lane_id lane) noexcept = 0;

  /// Changes whenever an answer of `cached_tokens` may have changed.
  [[nodiscard]] virtual std::uint64_t cache_epoch() const noexcept = 0;
  /// Tokens at the front of a prompt that are in the prefix cache now.
  [[nodiscard]] virtual std::uint64_t cached_tokens(std::span<kvlane::token_id const> prompt) const noexcept = 0;
};

}  // namespace server
