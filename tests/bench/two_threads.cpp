#include "baselines.hpp"
#include "catalog.hpp"

#include <kvlane/kvlane.hpp>

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

namespace kvlane::bench {

namespace {

constexpr nanoseconds slice = std::chrono::milliseconds{10};  // the start of a thread must not count

constexpr request usual{.prompt_tokens = 900, .max_tokens = 256};

side admissions_in_both() {
  auto const queue = std::make_shared<admission_queue>(limits{.lanes = 8, .kv_capacity = 1 << 20});
  return {.measure =
              [queue](std::size_t rounds) {
                return in_two_threads([&](std::size_t) {
                  for (std::size_t i = 0; i != rounds; ++i) benchmark::DoNotOptimize(queue->try_admit(usual));
                });
              },
          .fewest_rounds = 4096,
          .slice = slice};
}

/// A mutex and what is counted under it.
struct counters {
  std::mutex mutex;
  std::array<std::uint64_t, 8> values{};

  void count() {
    std::lock_guard const lock{mutex};
    for (auto& value : values) benchmark::DoNotOptimize(++value);
  }
};

side counting_in_both(std::size_t sections) {
  return {.measure =
              [shared = std::make_shared<counters>(), sections](std::size_t rounds) {
                return in_two_threads([&](std::size_t) {
                  for (std::size_t i = 0; i != rounds * sections; ++i) shared->count();
                });
              },
          .fewest_rounds = 4096,
          .slice = slice};
}

}  // namespace

topic two_threads() {
  return {"Two threads, nobody waits",
          "Both threads admit and release on one queue. A round locks twice, so the row with the target is held "
          "against two "
          "sections that count eight numbers; against one section it is stated. On a shared machine the threads do not "
          "always run at once, so these rows scatter.",
          {{"try_admit + release in each", "two sections under a bare mutex in each", at_least_share(0.7),
            [] { return contest{admissions_in_both(), counting_in_both(2)}; }},
           {"try_admit + release in each", "one section under a bare mutex in each", stated(),
            [] { return contest{admissions_in_both(), counting_in_both(1)}; }}}};
}

}  // namespace kvlane::bench
