#include "baselines.hpp"
#include "catalog.hpp"
#include "stopwatch.hpp"

#include <kvlane/kvlane.hpp>

#include <benchmark/benchmark.h>

#include <memory>
#include <semaphore>

namespace kvlane::bench {

namespace {

constexpr limits roomy{.lanes = 8, .kv_capacity = 1 << 20};
constexpr request usual{.prompt_tokens = 900, .max_tokens = 256};
constexpr request lane_only{.kv_demand = 0};

/// A queue that has seen a few completions, so that it can predict.
std::shared_ptr<admission_queue> warmed_queue() {
  auto queue = std::make_shared<admission_queue>(roomy);
  for (int i = 0; i != 64; ++i)
    if (auto slot = queue->try_admit(usual))
      slot->complete(
          {.prompt_tokens = 900, .decode_tokens = 200, .prefill = fractional_ms{90}, .decode = fractional_ms{900}});
  return queue;
}

/// `r` must stay.
side try_admit_and_release(request const& r) {
  return {.measure = [queue = warmed_queue(), &r](std::size_t rounds) {
    return time_of(rounds, [&] { benchmark::DoNotOptimize(queue->try_admit(r)); });
  }};
}

side enqueue_and_release() {
  return {.measure = [queue = warmed_queue()](std::size_t rounds) {
    ticket place;
    return time_of(rounds, [&] { benchmark::DoNotOptimize(queue->enqueue(usual, place, [](admission const&) {})); });
  }};
}

side prediction() {
  return {.measure = [queue = warmed_queue()](std::size_t rounds) {
    return time_of(rounds, [&] { benchmark::DoNotOptimize(queue->predicted_wait()); });
  }};
}

side semaphore_pair() {
  auto const lanes = std::make_shared<std::counting_semaphore<>>(8);
  return {.measure = [lanes](std::size_t rounds) {
    return time_of(rounds, [&] {
      benchmark::DoNotOptimize(lanes->try_acquire());
      lanes->release();
    });
  }};
}

}  // namespace

topic fast_path() {
  return {"Nobody waits",
          "8 lanes, one thread. The lease dies at once, so that each round is an admission and a release.",
          {{"try_admit + release", a_mutex_pair, at_most_times(3.0),
            [] { return contest{try_admit_and_release(usual), mutex_pair()}; }},
           {"enqueue + release, admitted at once", a_mutex_pair, stated(),
            [] { return contest{enqueue_and_release(), mutex_pair()}; }},
           {"try_admit + release of a lane without tokens", "std::counting_semaphore", stated(),
            [] { return contest{try_admit_and_release(lane_only), semaphore_pair()}; }},
           {"predicted_wait()", a_mutex_pair, at_most_times(1.5), [] { return contest{prediction(), mutex_pair()}; }}}};
}

}  // namespace kvlane::bench
