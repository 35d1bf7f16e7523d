#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/lane_pool.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/work.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace kvlane {

inline constexpr std::uint32_t highest_priority = 15;
inline constexpr std::uint64_t highest_saved_cost = (std::uint64_t{1} << 48) - 1;

/// What a queue may hand out and how long its line may get. Plain data; `validate` says what is nonsense.
struct limits {
  std::uint32_t lanes = 1;              ///< requests that may run at once; 0 holds everything and keeps the line
  std::uint32_t engine_lanes = 0;       ///< lanes that the engine has, `lanes` may not exceed them; 0: not told
  std::uint64_t kv_capacity = 4096;     ///< KV cache, in tokens
  std::uint32_t block_tokens = 1;       ///< demands are rounded up to whole blocks of so many tokens
  std::uint32_t decode_headroom = 512;  ///< tokens of max_tokens that are reserved (and predicted) up front
  std::uint64_t growth_reserve = 0;     ///< tokens that admissions leave free for leases that grow
  /// Places in line. Absent: 8 for each lane, at least 16, at most 256, following the lanes. 0: nobody waits.
  std::optional<std::uint32_t> max_waiting = {};
  std::uint64_t max_waiting_tokens = ~std::uint64_t{0};  ///< demands of all waiters together
  std::uint32_t max_overtakes = 32;             ///< how often a waiter may be overtaken before capacity is kept for it
  duration max_wait = forever;                  ///< for requests that name neither max_wait nor deadline
  predictor predict_by = predictor::work_left;  ///< as long as the engine reports progress; otherwise ewma_p95

  /// Places in line, the default worked out.
  [[nodiscard]] constexpr std::uint32_t places() const noexcept {
    if (max_waiting) return *max_waiting;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::uint64_t{8} * lanes, 16, 256));
  }
};

/// One request for a lane and KV tokens. Trivially copyable: views and numbers, which must live until the operation that
/// takes the request has been started.
struct request {
  std::span<token_id const> prompt = {};  ///< either the prompt's tokens
  /// or hashes of its prefix blocks: equal leading entries mean a prefix that can be shared.
  std::span<std::uint64_t const> prefix_blocks = {};
  std::uint64_t prompt_tokens = 0;  ///< length of the prompt; 0: prompt.size(). Must be given with prefix_blocks.
  std::uint32_t max_tokens = 0;     ///< ceiling of the reply, resolved (see token_limit)
  std::optional<std::uint64_t> kv_demand = {};  ///< the engine's own figure instead of ours, in tokens; 0: a lane only
  std::uint32_t priority = 0;                   ///< 0 to 15, higher goes first
  std::uint64_t saved_cost = 0;                 ///< what the prefix cache would save now; at most 2^48 - 1
  std::uint64_t tag = 0;                        ///< echoed everywhere
  std::uint64_t flow = 0;                       ///< the tenant, for metrics; echoed everywhere
  std::optional<lane_id> preferred_lane = {};   ///< given if it is free, else ignored; never a reason to wait
  std::optional<duration> max_wait = {};        ///< how long it may wait
  time_point deadline = time_point::max();      ///< until when it may wait; the earlier of the two counts
};

static_assert(std::is_trivially_copyable_v<request>, "a request is written inline in co_await expressions");

/// `tokens` rounded up to whole blocks; saturates at the highest number.
[[nodiscard]] constexpr std::uint64_t round_up_to_blocks(std::uint64_t tokens, std::uint32_t block_tokens) noexcept {
  if (block_tokens == 1) return tokens;  // spares the division, the dearest step of an admission
  auto const over = tokens % block_tokens;
  if (over == 0) return tokens;
  auto const missing = block_tokens - over;
  return tokens > ~std::uint64_t{0} - missing ? ~std::uint64_t{0} : tokens + missing;
}

/// The length of the prompt, in tokens, as it counts for demand and prediction.
[[nodiscard]] constexpr std::uint64_t prompt_length(request const& r) noexcept {
  return r.prompt_tokens != 0 ? r.prompt_tokens : r.prompt.size();
}

/// Work that is expected of a request: its prompt, and of its reply what is reserved up front.
[[nodiscard]] constexpr work expected_work(request const& r, limits const& l) noexcept {
  return {.prompt_tokens = prompt_length(r), .decode_tokens = std::min(r.max_tokens, l.decode_headroom)};
}

/// KV tokens that a request reserves, in whole blocks: `kv_demand`, or the prompt and the reserved part of the reply.
[[nodiscard]] constexpr std::uint64_t demand_of(request const& r, limits const& l) noexcept {
  if (r.kv_demand) return round_up_to_blocks(*r.kv_demand, l.block_tokens);
  auto const [prompt, decode] = expected_work(r, l);
  auto const sum = prompt > ~std::uint64_t{0} - decode ? ~std::uint64_t{0} : prompt + decode;
  return round_up_to_blocks(sum, l.block_tokens);
}

/// Whether nothing makes a request invalid; find_fault says what does.
[[nodiscard]] constexpr bool is_sound(request const& r) noexcept {
  return r.priority <= highest_priority && r.saved_cost <= highest_saved_cost &&
         (r.prefix_blocks.empty() || (r.prompt.empty() && r.prompt_tokens != 0)) &&
         (r.prompt_tokens >= r.prompt.size() || r.prompt_tokens == 0) &&
         (r.prompt_tokens != 0 || !r.prompt.empty() || r.kv_demand.has_value());
}

/// What makes a request invalid whatever the queue looks like; absent when nothing does. Never allocates.
[[nodiscard]] constexpr std::optional<rejection> find_fault(request const& r) noexcept {
  auto const fault = [&](invalid_field field, std::uint64_t value, std::uint64_t bound) {
    refusal_facts facts;
    facts.field = field;
    facts.field_value = value;
    facts.field_bound = bound;
    facts.tag = r.tag;
    return std::optional<rejection>{rejection{facts}};
  };
  if (r.priority > highest_priority) return fault(invalid_field::priority, r.priority, highest_priority);
  if (!r.prompt.empty() && !r.prefix_blocks.empty())
    return fault(invalid_field::prompt_and_prefix_blocks, r.prompt.size(), r.prefix_blocks.size());
  if (!r.prefix_blocks.empty() && r.prompt_tokens == 0)
    return fault(invalid_field::prefix_blocks_without_length, 0, r.prefix_blocks.size());
  if (r.prompt_tokens != 0 && r.prompt_tokens < r.prompt.size())
    return fault(invalid_field::prompt_tokens_below_prompt, r.prompt_tokens, r.prompt.size());
  if (prompt_length(r) == 0 && !r.kv_demand) return fault(invalid_field::nothing_to_run, 0, 0);
  if (r.saved_cost > highest_saved_cost) return fault(invalid_field::saved_cost, r.saved_cost, highest_saved_cost);
  return std::nullopt;
}

/// Throws std::invalid_argument where limits make no sense, naming the member and its value.
inline void validate(limits const& l) {
  auto const nonsense = [](std::string const& text) { throw std::invalid_argument("kvlane::limits: " + text); };
  if (l.kv_capacity == 0) nonsense("kv_capacity is 0; nothing could ever be admitted");
  if (l.block_tokens == 0) nonsense("block_tokens is 0; a block holds at least 1 token");
  if (l.growth_reserve >= l.kv_capacity)
    nonsense("growth_reserve is " + std::to_string(l.growth_reserve) + ", which leaves nothing of kv_capacity " +
             std::to_string(l.kv_capacity));
  if (l.max_wait < duration::zero())
    // Rounded away from zero: the text does not call a negative wait 0.
    nonsense("max_wait is " + std::to_string(std::chrono::floor<std::chrono::milliseconds>(l.max_wait).count()) +
             " ms; a wait is not negative");
  ensure_lanes_fit(l.lanes, l.engine_lanes, "kvlane::limits: lanes");
}

}  // namespace kvlane
