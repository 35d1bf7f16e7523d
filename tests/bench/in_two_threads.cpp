#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "baselines.hpp"

namespace kvlane::bench {

namespace {

/// Left to itself the system may put two threads that wake each other on one processor, in one measurement and not in
/// the next; a hand-over then costs a tenth.
void choose_processor([[maybe_unused]] std::size_t thread) {
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  auto left = thread;
  for (std::size_t cpu = 0; cpu != CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- != 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    pthread_setaffinity_np(pthread_self(), sizeof only, &only);
    return;
  }
#endif
}

}  // namespace

nanoseconds in_two_threads(std::function<void(std::size_t thread)> const& work) {
  using clock = std::chrono::steady_clock;
  std::atomic<std::size_t> ready{0};
  std::array<clock::time_point, 2> starts;
  std::array<clock::time_point, 2> ends;
  auto const run = [&](std::size_t thread) {
    choose_processor(thread);
    ready.fetch_add(1);
    while (ready.load() != 2) std::this_thread::yield();
    starts[thread] = clock::now();
    work(thread);
    ends[thread] = clock::now();
  };
  std::thread first{run, std::size_t{0}};
  std::thread second{run, std::size_t{1}};
  first.join();
  second.join();
  return nanoseconds{std::max(ends[0], ends[1]) - std::min(starts[0], starts[1])};
}

}  // namespace kvlane::bench
