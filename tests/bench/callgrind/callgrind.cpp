// kvlane_callgrind: steps of the queue whose instructions valgrind counts. Run as
//
//   valgrind --tool=callgrind --collect-atstart=no build/bench/bin/kvlane_callgrind
//
// it leaves one dump for each step, named after it and after how often the step was done: "try_admit + release/1000".
// Everything that happens is the same in each run, so the counts are too.

#include "standing_line.hpp"

#include <kvlane/kvlane.hpp>

#include <benchmark/benchmark.h>
#include <valgrind/callgrind.h>

#include <mutex>
#include <string>
#include <thread>

namespace kvlane::bench {

namespace {

/// Counts what `steps` calls of `step` take, after one that warms up.
template <class Step>
void count(std::string const& name, int steps, Step const& step) {
  step();
  CALLGRIND_TOGGLE_COLLECT;
  for (int i = 0; i != steps; ++i) step();
  CALLGRIND_TOGGLE_COLLECT;
  auto const label = name + "/" + std::to_string(steps);
  CALLGRIND_DUMP_STATS_AT(label.c_str());
}

void count_mutex() {
  std::mutex mutex;
  count("std::mutex, lock + unlock", 1000, [&] { std::lock_guard const lock{mutex}; });
}

void count_fast_path() {
  admission_queue queue{{.lanes = 8, .kv_capacity = 1 << 20}};
  queue.try_admit({.prompt_tokens = 900})
      ->complete(
          {.prompt_tokens = 900, .decode_tokens = 200, .prefill = fractional_ms{90}, .decode = fractional_ms{900}});
  count("try_admit + release, nobody waiting", 1000,
        [&] { benchmark::DoNotOptimize(queue.try_admit({.prompt_tokens = 900, .max_tokens = 256})); });
  count("predicted_wait()", 1000, [&] { benchmark::DoNotOptimize(queue.predicted_wait()); });
}

void count_line(std::string const& name, crowd const& who) {
  standing_line<> line{who};
  count("admission, " + name, 15, [&] { line.admit_next(); });
  line.refill();
  count("cancel and enqueue, " + name, 15, [&] {
    line.places()[7] = ticket{};
    line.vacated(7);
    line.refill();
  });
}

void count_all() {
  std::thread{[] {}}.join();
  count_mutex();
  count_fast_path();
  count_line("4,096 waiting, all fit, equal scores", {.waiting = 4096});
  count_line("4,096 waiting, all fit, spread scores", {.waiting = 4096, .scored = scores::spread});
  count_line("4,096 waiting, half fit, spread scores", {.waiting = 4096, .fitting_every = 2, .scored = scores::spread});
}

}  // namespace

}  // namespace kvlane::bench

int main() { kvlane::bench::count_all(); }
