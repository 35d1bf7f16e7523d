#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replay {

using std::chrono::nanoseconds;

/// Tokens of a prefix block, as the Mooncake traces cut prompts; the last block of a prompt may hold fewer.
inline constexpr std::uint32_t prefix_block_tokens = 512;

/// When things happened to a request on the server that it was recorded on, since its arrival there.
struct request_times {
  std::optional<nanoseconds> queued = {};  ///< the engine knew of it; another clock may say: a little before it arrived
  std::optional<nanoseconds> admitted = {};  ///< the engine took it on; absent: not known, or never
  std::optional<nanoseconds> first_token = {};
  std::optional<nanoseconds> last_token = {};
};

/// One request as it was recorded, or made up.
struct trace_request {
  nanoseconds arrival{};  ///< since the first arrival
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reply_tokens = 0;  ///< what the model really generated, not what was allowed
  /// Ids of the prompt's prefix blocks: an id stands for the whole prefix up to and including its block. Empty: unknown.
  std::vector<std::uint64_t> blocks;
  std::optional<std::uint32_t> client = {};    ///< who sent it
  std::optional<request_times> measured = {};  ///< what became of it on a real server
};

/// A stream of requests in order of arrival, and where it comes from.
struct workload {
  std::string title;  ///< says whether the data are real, and what was done to them
  std::vector<trace_request> requests;
  std::uint64_t skipped_lines = 0;                   ///< of the file, because they were malformed
  std::uint32_t block_tokens = prefix_block_tokens;  ///< of a prefix block
};

/// Sorts by arrival; requests of one moment keep their order.
void sort_by_arrival(std::vector<trace_request>& requests);

/// Changes to a workload before it is replayed.
struct reshaping {
  std::uint64_t limit = ~std::uint64_t{0};  ///< only so many requests, the first ones
  nanoseconds spread{};                     ///< each arrival is delayed by a random part of it
  double speed = 1.0;                       ///< arrivals come so many times as fast; finite and positive
  std::uint64_t seed = 1;
};

/// Applies, in this order: the limit, the jitter (arrivals are sorted again), the first arrival as moment 0, the speed.
/// The title tells each change. \throws std::invalid_argument when the last arrival would lie more than 10 years ahead
[[nodiscard]] workload reshape(workload original, reshaping const& how);

}  // namespace replay
