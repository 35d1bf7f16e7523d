#include "catalog.hpp"
#include "slow_cache.hpp"
#include "standing_line.hpp"

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvlane::bench {

namespace {

constexpr crowd usual{.waiting = 256, .scored = scores::spread};

using epoch_counter = std::shared_ptr<std::atomic<std::uint64_t>>;

epoch_counter new_epoch() { return std::make_shared<std::atomic<std::uint64_t>>(0); }

/// Admissions while the cache has not changed.
enum class cache { none, attached };
side admissions_with(cache what) {
  auto const line = std::make_shared<standing_line<>>(usual);
  if (what == cache::attached) line->queue().attach(slow_cache{new_epoch()});
  return {.measure = [line](std::size_t rounds) { return line->time_admissions(rounds); }};
}

/// Admissions before each of which the cache has changed.
side admissions_that_ask() {
  auto const line = std::make_shared<standing_line<>>(usual);
  auto const epoch = new_epoch();
  line->queue().attach(slow_cache{epoch});
  return {.measure = [line, epoch](std::size_t rounds) {
    stopwatch watch;
    for (std::size_t i = 0; i != rounds; ++i) {
      line->refill();
      epoch->fetch_add(1);
      watch.start();
      line->admit_next();
      watch.stop(1);
    }
    return watch.total();
  }};
}

side bare_questions() {
  return {.measure = [cache = slow_cache{new_epoch()}](std::size_t rounds) {
    std::vector<token_id> const prompt(512, 7);
    return time_of(rounds * 64, [&] { benchmark::DoNotOptimize(cache.saved_cost(std::span<token_id const>{prompt})); });
  }};
}

}  // namespace

topic slow_probe() {
  return {"An attached cache that takes 5 us to answer",
          "256 waiting. When the cache's epoch has moved, an event asks it for 64 waiters before it decides, without "
          "the lock "
          "(see also the longest time under the mutex).",
          {{"admission, the epoch has moved", "64 questions to the cache", stated(),
            [] { return contest{admissions_that_ask(), bare_questions()}; }},
           {"admission, the epoch stands still", "admission, no cache attached", stated(),
            [] { return contest{admissions_with(cache::attached), admissions_with(cache::none)}; }}}};
}

}  // namespace kvlane::bench
