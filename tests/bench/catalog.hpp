#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace kvlane::bench {

using nanoseconds = std::chrono::duration<double, std::nano>;

/// One side of a comparison: performs `rounds` operations and says how long their measured part took. What a side needs
/// for them is made before the clock starts and undone after it has stopped.
struct side {
  std::function<nanoseconds(std::size_t rounds)> measure;
  std::size_t fewest_rounds = 1;
  std::size_t most_rounds = std::size_t{1} << 24;
  nanoseconds slice = std::chrono::milliseconds{1};  ///< a measurement takes about so long
};

/// Two sides that are measured in turn, so that what the machine does meanwhile hits both alike.
struct contest {
  side subject;
  side baseline;
};

/// What a row is held to. Bounds are those of the design.
struct goal {
  enum class kind { none, ratio, share, time };
  kind of = kind::none;
  double bound = 0;
};
[[nodiscard]] constexpr goal stated() noexcept { return {}; }
/// The subject takes at most so many times as long as the baseline.
[[nodiscard]] constexpr goal at_most_times(double bound) noexcept { return {goal::kind::ratio, bound}; }
/// The subject has at least that share of the baseline's throughput.
[[nodiscard]] constexpr goal at_least_share(double bound) noexcept { return {goal::kind::share, bound}; }
/// The subject takes at most so long.
[[nodiscard]] constexpr goal at_most(nanoseconds bound) noexcept { return {goal::kind::time, bound.count()}; }

/// One line of the table. The contest is made when its turn comes and dies when it is over.
struct row {
  std::string name;
  std::string baseline;
  goal wanted;
  std::function<contest()> prepare;
};

/// Rows that belong together, and what a reader has to know of how they are measured.
struct topic {
  std::string title;
  std::string text;
  std::vector<row> rows;
};

[[nodiscard]] topic baselines();
[[nodiscard]] topic fast_path();
[[nodiscard]] topic two_threads();
[[nodiscard]] topic line_of_equals();
[[nodiscard]] topic spread_line();
[[nodiscard]] topic entering();
[[nodiscard]] topic leaving();
[[nodiscard]] topic cached_prefix();
[[nodiscard]] topic slow_probe();
[[nodiscard]] topic hand_off();
[[nodiscard]] topic async_hand_off();
[[nodiscard]] topic lock_hold();
[[nodiscard]] topic predecessor();

}  // namespace kvlane::bench
