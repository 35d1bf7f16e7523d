#pragma once

#include <kvlane/error.hpp>
#include <kvlane/fwd.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

namespace kvlane {

/// The part of a request that makes it invalid.
enum class invalid_field : std::uint8_t {
  none,                          ///< nothing was asked at all (a default-constructed result)
  priority,                      ///< above 15
  prompt_and_prefix_blocks,      ///< both given
  prefix_blocks_without_length,  ///< prompt_tokens is missing
  prompt_tokens_below_prompt,    ///< prompt_tokens is less than the tokens given
  nothing_to_run,                ///< neither prompt, prompt_tokens nor kv_demand
  saved_cost,                    ///< above 2^48 - 1
  lease,                         ///< to be readmitted: empty, or of another queue
};

/// The event that made a request impossible after it had been possible, or that closed the door.
enum class refusal_cause : std::uint8_t { none, draining, closed, kv_capacity, context };

/// The numbers behind a refusal. Members that do not apply to its code keep their defaults.
struct refusal_facts {
  errc code = errc::invalid_request;
  blocked_on blocked = blocked_on::nothing;
  invalid_field field = invalid_field::none;
  refusal_cause cause = refusal_cause::none;
  std::uint32_t free_lanes = 0;
  std::uint64_t field_value = 0;     ///< the value of `field`
  std::uint64_t field_bound = 0;     ///< what it should have kept to
  std::uint64_t asked_tokens = 0;    ///< its demand, in KV tokens
  std::uint64_t free_tokens = 0;     ///< KV tokens that no lease holds
  std::uint64_t growth_reserve = 0;  ///< of these, kept for leases that grow
  std::uint64_t kv_capacity = 0;     ///< in tokens
  std::uint64_t waiting = 0;         ///< requests in line, without those that are refused with it
  std::uint64_t max_waiting = 0;     ///< places in line
  std::uint64_t waiting_tokens = 0;  ///< their demands, saturated
  std::uint64_t max_waiting_tokens = ~std::uint64_t{0};
  std::optional<fractional_ms> predicted_wait = {};
  std::optional<fractional_ms> retry_after = {};  ///< before it is rounded up and clamped
  duration waited = duration::zero();
  duration limit = forever;  ///< how long it might have waited
  std::uint64_t tag = 0;
};

/// Why a request was not admitted: an ordinary value, with the numbers behind it. The text is made on demand.
///
///     if (auto slot = queue.try_admit(r); !slot)
///       log(slot.error().message());   // "the request would have to wait: 3 of 16 requests wait; lanes are short: ..."
///
/// Thread safety: distinct objects are safe, shared objects are safe for reading. Lifetime: owns all it says.
class rejection {
 public:
  /// The refusal of a request that was never made.
  constexpr rejection() noexcept = default;
  constexpr explicit rejection(refusal_facts const& facts) noexcept : facts_{facts} {}

  [[nodiscard]] constexpr errc code() const noexcept { return facts_.code; }
  [[nodiscard]] std::error_code error_code() const noexcept { return make_error_code(facts_.code); }

  /// What happened and which numbers made it so, in one English sentence. Allocates. \throws std::bad_alloc
  [[nodiscard]] std::string message() const;

  /// When to come back: whole seconds, rounded up, 1 to 60. Absent where coming back does not help, or where nothing is
  /// known about the speed of the server.
  [[nodiscard]] std::optional<std::chrono::seconds> retry_after() const noexcept {
    if (!facts_.retry_after) return std::nullopt;
    auto const seconds = std::ceil(facts_.retry_after->count() / 1000.0);
    return std::chrono::seconds{static_cast<std::int64_t>(std::clamp(seconds, 1.0, 60.0))};
  }

  /// The predicted wait of a request of this priority at that moment, without its own work.
  [[nodiscard]] constexpr std::optional<fractional_ms> predicted_wait() const noexcept { return facts_.predicted_wait; }
  [[nodiscard]] constexpr std::uint64_t asked_tokens() const noexcept { return facts_.asked_tokens; }
  /// KV tokens that no lease holds. Admissions may have these less the growth reserve.
  [[nodiscard]] constexpr std::uint64_t free_tokens() const noexcept { return facts_.free_tokens; }
  [[nodiscard]] constexpr std::uint64_t kv_capacity() const noexcept { return facts_.kv_capacity; }
  [[nodiscard]] constexpr std::uint32_t free_lanes() const noexcept { return facts_.free_lanes; }
  /// Requests in line, without this one.
  [[nodiscard]] constexpr std::uint64_t waiting() const noexcept { return facts_.waiting; }
  [[nodiscard]] constexpr std::uint64_t max_waiting() const noexcept { return facts_.max_waiting; }
  [[nodiscard]] constexpr blocked_on blocked() const noexcept { return facts_.blocked; }
  /// How long it stood in line.
  [[nodiscard]] constexpr fractional_ms waited() const noexcept { return facts_.waited; }
  [[nodiscard]] constexpr std::uint64_t tag() const noexcept { return facts_.tag; }
  /// All the numbers at once, for mappings of one's own.
  [[nodiscard]] constexpr refusal_facts const& facts() const noexcept { return facts_; }

 private:
  [[nodiscard]] std::string invalid_text() const;
  [[nodiscard]] std::string line_text() const;
  [[nodiscard]] std::string shortage_text() const;
  [[nodiscard]] static std::string milliseconds(double count);

  refusal_facts facts_;
};

static_assert(std::is_trivially_copyable_v<rejection>);

inline std::string rejection::milliseconds(double count) {
  // Far beyond any wait a person would read: the clamp only keeps the conversion defined.
  return std::to_string(static_cast<std::int64_t>(std::clamp(count, 0.0, 9e15))) + " ms";
}

inline std::string rejection::invalid_text() const {
  auto const value = std::to_string(facts_.field_value);
  auto const bound = std::to_string(facts_.field_bound);
  switch (facts_.field) {
    case invalid_field::none: return "no request was made";
    case invalid_field::priority: return "priority is " + value + "; the highest is " + bound;
    case invalid_field::prompt_and_prefix_blocks:
      return "prompt has " + value + " tokens and prefix_blocks has " + bound + " entries; give one of them";
    case invalid_field::prefix_blocks_without_length:
      return "prompt_tokens is " + value + ", but prefix_blocks has " + bound + " entries; say how long the prompt is";
    case invalid_field::prompt_tokens_below_prompt:
      return "prompt_tokens is " + value + ", but prompt has " + bound + " tokens";
    case invalid_field::nothing_to_run:
      return "prompt_tokens is " + value + ", and neither prompt nor kv_demand is given; give one of them";
    case invalid_field::saved_cost: return "saved_cost is " + value + "; the highest is " + bound;
    case invalid_field::lease: return "the lease is empty or belongs to another queue";
  }
  return "the request is invalid";
}

inline std::string rejection::line_text() const {
  auto text = std::to_string(facts_.waiting) + " of " + std::to_string(facts_.max_waiting) + " requests wait";
  if (facts_.max_waiting_tokens != ~std::uint64_t{0})
    text += " with " + std::to_string(facts_.waiting_tokens) + " of " + std::to_string(facts_.max_waiting_tokens) +
            " tokens";
  return text;
}

inline std::string rejection::shortage_text() const {
  auto tokens = ": asked " + std::to_string(facts_.asked_tokens) + ", free " + std::to_string(facts_.free_tokens);
  if (facts_.growth_reserve != 0) tokens += " (" + std::to_string(facts_.growth_reserve) + " of them kept for growth)";
  switch (facts_.blocked) {
    case blocked_on::nothing: return "nothing is short";
    case blocked_on::hold: return "admissions are on hold, KV tokens" + tokens;
    case blocked_on::lane: return "lanes are short: asked 1, free " + std::to_string(facts_.free_lanes);
    case blocked_on::tokens: return "KV tokens are short" + tokens;
    case blocked_on::reservation: return "capacity is reserved for an overtaken request, KV tokens" + tokens;
  }
  return {};
}

inline std::string rejection::message() const {
  auto const waited = milliseconds(std::floor(fractional_ms{facts_.waited}.count()));
  auto const limit = milliseconds(std::floor(fractional_ms{facts_.limit}.count()));
  switch (facts_.code) {
    case errc::invalid_request: return invalid_text();
    case errc::never_fits:
      if (facts_.cause == refusal_cause::context)
        return "the prompt has " + std::to_string(facts_.asked_tokens) + " tokens; the context holds " +
               std::to_string(facts_.kv_capacity);
      return "the request needs " + std::to_string(facts_.asked_tokens) + " KV tokens; the cache holds " +
             std::to_string(facts_.kv_capacity);
    case errc::shutting_down:
      return facts_.cause == refusal_cause::draining ? "the server is draining and takes no new requests"
                                                     : "the server has closed its queue";
    case errc::would_wait: return "the request would have to wait: " + line_text() + "; " + shortage_text();
    case errc::queue_full: return "the line is full: " + line_text() + "; " + shortage_text();
    case errc::would_time_out:
      // Rounded away from each other, so that the text never says that a wait is above itself.
      return "the predicted wait of " +
             milliseconds(std::ceil(facts_.predicted_wait.value_or(fractional_ms{}).count())) +
             " is above the limit of " + limit;
    case errc::timed_out: {
      auto const what = facts_.blocked == blocked_on::lane          ? "a lane"
                        : facts_.blocked == blocked_on::tokens      ? "KV tokens"
                        : facts_.blocked == blocked_on::reservation ? "a request that was overtaken before"
                        : facts_.blocked == blocked_on::hold        ? "the end of a hold"
                                                                    : "its turn";
      return "timed out after " + waited + " in line (limit " + limit + "), waiting for " + what;
    }
    case errc::cancelled: return "cancelled after " + waited + " in line";
    case errc::no_longer_fits:
      return "the KV cache was lowered to " + std::to_string(facts_.kv_capacity) + " tokens; the request needs " +
             std::to_string(facts_.asked_tokens);
  }
  return make_error_code(facts_.code).message();
}

}  // namespace kvlane
