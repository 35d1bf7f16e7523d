#include "baselines.hpp"
#include "catalog.hpp"

#include <kvlane/kvlane.hpp>

#include <benchmark/benchmark.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace kvlane::bench {

namespace {

constexpr nanoseconds slice = std::chrono::milliseconds{20};

/// Two threads share one lane: whoever has it waits until the other stands in line and gives it back.
side blocking_hand_off(duration max_wait) {
  auto const queue = std::make_shared<admission_queue>(limits{.lanes = 1});
  auto const measure = [=](std::size_t rounds) {
    request const r{.prompt_tokens = 1, .max_wait = max_wait};
    auto first = queue->try_admit(r);
    auto const hand_over = [&](admission held) {
      while (queue->snapshot().waiting == 0) {
      }
      held->release();
    };
    // In each round the lane goes to the second thread and back.
    return in_two_threads([&](std::size_t thread) {
             if (thread == 0)
               for (std::size_t i = 0; i != rounds; ++i) {
                 hand_over(std::move(first));
                 first = admit(*queue, r);
               }
             else
               for (std::size_t i = 0; i != rounds; ++i) hand_over(admit(*queue, r));
           }) /
           2;
  };
  return {.measure = measure, .fewest_rounds = 256, .slice = slice};
}

/// The same with nothing but a flag for each thread, a mutex and a condition variable; told after unlocking.
side bare_hand_off() {
  struct baton {
    std::mutex mutex;
    std::condition_variable told;
    bool here = false;

    void pass() {
      {
        std::lock_guard const lock{mutex};
        here = true;
      }
      told.notify_one();
    }
    void await() {
      std::unique_lock lock{mutex};
      told.wait(lock, [this] { return here; });
      here = false;
    }
  };
  struct pair {
    baton of[2];
  };
  return {.measure =
              [both = std::make_shared<pair>()](std::size_t rounds) {
                return in_two_threads([&](std::size_t thread) {
                         for (std::size_t i = 0; i != rounds; ++i) {
                           if (thread == 0) both->of[1].pass();
                           both->of[thread].await();
                           if (thread == 1) both->of[0].pass();
                         }
                       }) /
                       2;
              },
          .fewest_rounds = 256,
          .slice = slice};
}

}  // namespace

topic hand_off() {
  return {"Hand-off between threads",
          "Two threads and one lane: release in one thread until admit() returns in the other. Mostly the time the "
          "system takes to "
          "wake a thread, which depends on what else runs.",
          {{"blocking hand-off", "a flag, a mutex and a condition variable", at_most_times(1.2),
            [] { return contest{blocking_hand_off(forever), bare_hand_off()}; }},
           {"blocking hand-off, finite waits", "a flag, a mutex and a condition variable", stated(),
            [] { return contest{blocking_hand_off(std::chrono::seconds{60}), bare_hand_off()}; }}}};
}

}  // namespace kvlane::bench
