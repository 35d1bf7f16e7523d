#pragma once

#include "random_numbers.hpp"

#include <kvlane/rejection.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace replay {

using std::chrono::nanoseconds;

/// How clients take a no.
struct client_settings {
  bool retry = false;  ///< come back as the openai client does; otherwise a refused one is gone
  std::uint64_t seed = 1;

  bool operator==(client_settings const&) const = default;
};

/// Clients that have been refused, and when they are back. One that is told 429 comes back up to twice: after
/// Retry-After if that is named and at most a minute, otherwise after 0.5 s, then 1 s, less up to a quarter at random.
class client_crowd {
 public:
  static constexpr std::uint32_t most_tries = 3;
  static constexpr nanoseconds longest_honoured = std::chrono::seconds{60};

  explicit client_crowd(client_settings const& s) : settings_{s}, jitter_{s.seed} {}

  /// After which time a client that has been refused at its try number `tries` (from 1) is back; absent: it gives up.
  [[nodiscard]] std::optional<nanoseconds> back_after(std::uint32_t tries, kvlane::errc code,
                                                      std::optional<nanoseconds> retry_after) {
    if (!settings_.retry || tries >= most_tries || !comes_with_429(code)) return std::nullopt;
    if (retry_after && *retry_after > nanoseconds::zero() && *retry_after <= longest_honoured) return retry_after;
    auto const seconds = 0.5 * static_cast<double>(1U << (tries - 1)) * (1 - 0.25 * jitter_.unit());
    return nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
  }

  void comes_back(nanoseconds at, std::size_t who) { returning_.push({at, who}); }
  /// When the next client is back.
  [[nodiscard]] std::optional<nanoseconds> next() const {
    return returning_.empty() ? std::nullopt : std::optional{returning_.top().at};
  }
  /// Who is back at `now`, one after the other: by time, then by place in the workload.
  [[nodiscard]] std::optional<std::size_t> take(nanoseconds now) {
    if (returning_.empty() || returning_.top().at > now) return std::nullopt;
    auto const who = returning_.top().who;
    returning_.pop();
    return who;
  }

 private:
  struct visit {
    nanoseconds at;
    std::size_t who;
    bool operator<(visit const& other) const noexcept { return at != other.at ? at > other.at : who > other.who; }
  };
  static bool comes_with_429(kvlane::errc code) noexcept {
    using enum kvlane::errc;
    return code == would_wait || code == queue_full || code == would_time_out || code == timed_out;
  }

  client_settings settings_;
  random_numbers jitter_;
  std::priority_queue<visit> returning_;
};

}  // namespace replay
