#include "baselines.hpp"
#include "catalog.hpp"
#include "slow_cache.hpp"
#include "standing_line.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace kvlane::bench {

namespace {

/// A mutex that notes how long it was held each time. For one thread.
class timing_mutex {
 public:
  static inline std::vector<float> holds;
  static inline bool noting = false;

  void lock() {
    mutex_.lock();
    since_ = std::chrono::steady_clock::now();
  }
  void unlock() {
    auto const held = nanoseconds{std::chrono::steady_clock::now() - since_} - stopwatch::own_cost();
    if (noting) holds.push_back(static_cast<float>(std::max(held.count(), 0.0)));
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point since_;
};

using timed_line = standing_line<timing_mutex>;

/// Everything that happens to a line: admissions, arrivals, cancels, new scores, a probe of the cache.
void live(timed_line& line, std::atomic<std::uint64_t>& epoch) {
  for (std::size_t i = 0; i != 1024; ++i) {
    line.admit_next();
    line.refill();
    line.places()[line.random()() % line.places().size()].set_saved_cost(line.random()() % 1'000'000);
    auto const leaving = line.random()() % line.places().size();
    line.places()[leaving] = ticket{};
    line.vacated(leaving);
    line.refill();
    benchmark::DoNotOptimize(line.queue().predicted_wait());
    if (i % 256 == 0) epoch.fetch_add(1);
  }
}

enum class cache { none, attached };

std::vector<float> holds_of_one_life(scores scored, cache asked) {
  timed_line line{{.waiting = 4096, .scored = scored}};
  auto const epoch = std::make_shared<std::atomic<std::uint64_t>>(0);
  if (asked == cache::attached) line.queue().attach(slow_cache{epoch});
  timing_mutex::holds.clear();
  timing_mutex::holds.reserve(1 << 16);
  timing_mutex::noting = true;
  live(line, *epoch);
  timing_mutex::noting = false;
  return timing_mutex::holds;
}

std::vector<float> holds_of_nothing() {
  timing_mutex mutex;
  timing_mutex::holds.clear();
  timing_mutex::noting = true;
  for (std::size_t i = 0; i != 8192; ++i) {
    std::lock_guard const lock{mutex};
    benchmark::ClobberMemory();
  }
  timing_mutex::noting = false;
  return timing_mutex::holds;
}

/// The shortest time that each hold took over several lives that are the same step by step.
std::vector<float> without_noise(std::function<std::vector<float>()> const& life) {
  auto shortest = life();
  for (int again = 0; again != 6; ++again) {
    auto const other = life();
    for (std::size_t i = 0; i != std::min(shortest.size(), other.size()); ++i)
      shortest[i] = std::min(shortest[i], other[i]);
  }
  return shortest;
}

nanoseconds longest(std::vector<float> const& holds) { return nanoseconds{*std::ranges::max_element(holds)}; }
nanoseconds at_999(std::vector<float> const& all) {
  auto holds = all;
  auto const at = holds.begin() + static_cast<std::ptrdiff_t>(holds.size() * 999 / 1000);
  std::ranges::nth_element(holds, at);
  return nanoseconds{*at};
}

side once(std::function<nanoseconds()> measure) {
  return {.measure = [measure = std::move(measure)](std::size_t) { return measure(); }, .most_rounds = 1};
}

/// As it would be on a machine that did nothing else.
row quiet_row(char const* name, scores scored, cache asked) {
  return {name, a_mutex_pair, at_most(std::chrono::microseconds{10}), [=] {
            auto const life = [=] { return holds_of_one_life(scored, asked); };
            return contest{once([life] { return longest(without_noise(life)); }), mutex_pair()};
          }};
}

row noisy_row(char const* name, nanoseconds (*of)(std::vector<float> const&)) {
  return {name, "a lock with nothing under it", stated(), [of] {
            return contest{once([of] { return of(holds_of_one_life(scores::spread, cache::none)); }),
                           once([of] { return of(holds_of_nothing()); })};
          }};
}

}  // namespace

topic lock_hold() {
  return {
      "Longest time under the mutex",
      "4,096 waiting, 512-token prompts; 1,024 times: an admission, an arrival, a new score, a cancel and an arrival, "
      "a "
      "prediction. With an attached cache, every 256th time it has changed and is asked for 64 waiters at 5 us each. "
      "The "
      "mutex times its holds. The same life is lived seven times, step by step, and each hold counts with its shortest "
      "time, since the machine does not interfere with the same step each time. The last two rows are of one life, "
      "with "
      "all that the machine does meanwhile; their baseline shows what that does to a lock with nothing under it.",
      {quiet_row("the longest, equal scores", scores::equal, cache::none),
       quiet_row("the longest, spread scores", scores::spread, cache::none),
       quiet_row("the longest, spread scores, a cache asked now and then", scores::spread, cache::attached),
       noisy_row("99.9 % are shorter than, spread scores, one life", at_999),
       noisy_row("the longest, spread scores, one life", longest)}};
}

}  // namespace kvlane::bench
