#include "baselines.hpp"
#include "catalog.hpp"
#include "stopwatch.hpp"

#include <kvlane/kvlane.hpp>

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <memory>
#include <semaphore>

namespace kvlane::bench {

namespace {

constexpr limits roomy{.lanes = 8, .kv_capacity = 1 << 20};
constexpr request usual{.prompt_tokens = 900, .max_tokens = 256};
constexpr request lane_only{.kv_demand = 0};

/// Several queues that have seen a few completions, so that they can predict; taken in turn, so that the figure is not
/// that of one place in memory.
class warmed_queues {
 public:
  warmed_queues() {
    for (std::size_t i = 0; i != queues_.size(); ++i) {
      paddings_[i] = std::make_unique<std::byte[]>(416 * (i + 1));
      queues_[i] = std::make_unique<admission_queue>(roomy);
      for (int n = 0; n != 64; ++n)
        if (auto slot = queues_[i]->try_admit(usual))
          slot->complete(
              {.prompt_tokens = 900, .decode_tokens = 200, .prefill = fractional_ms{90}, .decode = fractional_ms{900}});
    }
  }
  [[nodiscard]] admission_queue& next() noexcept { return *queues_[at_++ % queues_.size()]; }

 private:
  std::array<std::unique_ptr<std::byte[]>, 8> paddings_;
  std::array<std::unique_ptr<admission_queue>, 8> queues_;
  std::size_t at_ = 0;
};

/// A side that does `operation(queue)` in each round.
template <class Operation>
side on_queues(Operation const& operation) {
  return {.measure = [queues = std::make_shared<warmed_queues>(), operation](std::size_t rounds) {
    return time_of(rounds, [&queue = queues->next(), &operation] { operation(queue); });
  }};
}

/// `r` must stay.
side try_admit_and_release(request const& r) {
  return on_queues([&r](admission_queue& queue) { benchmark::DoNotOptimize(queue.try_admit(r)); });
}

side enqueue_and_release() {
  return on_queues([](admission_queue& queue) {
    ticket place;
    benchmark::DoNotOptimize(queue.enqueue(usual, place, [](admission const&) {}));
  });
}

side prediction() {
  return on_queues([](admission_queue& queue) { benchmark::DoNotOptimize(queue.predicted_wait()); });
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
