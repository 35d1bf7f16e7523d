#include "baselines.hpp"

#include <benchmark/benchmark.h>

#include <memory>
#include <mutex>
#include <semaphore>
#if __has_include(<asio/io_context.hpp>)
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#define KVLANE_BENCH_HAS_ASIO 1
#endif

#include "stopwatch.hpp"

namespace kvlane::bench {

side mutex_pair() {
  auto const mutex = std::make_shared<std::mutex>();
  return {.measure = [mutex](std::size_t rounds) {
    return time_of(rounds, [&m = *mutex] {
      m.lock();
      benchmark::ClobberMemory();
      m.unlock();
    });
  }};
}

#ifdef KVLANE_BENCH_HAS_ASIO
side asio_post(armed_timer timer) {
  struct loop {
    asio::io_context context{1};
    asio::steady_timer alarm{context};
  };
  auto const here = std::make_shared<loop>();
  if (timer == armed_timer::one) {
    here->alarm.expires_after(std::chrono::hours{1});
    here->alarm.async_wait([](auto const&) {});
  }
  return {.measure = [here](std::size_t rounds) {
    return time_of(rounds, [&] {
      asio::post(here->context, [] {});
      here->context.run_one();
    });
  }};
}
#else
side asio_post(armed_timer) {
  return {.measure = [](std::size_t) { return nanoseconds{}; }, .most_rounds = 1};
}
#endif

namespace {

side clock_read() {
  return {.measure = [](std::size_t rounds) {
    return time_of(rounds, [] { benchmark::DoNotOptimize(std::chrono::steady_clock::now()); });
  }};
}

side allocation() {
  return {.measure = [](std::size_t rounds) {
    return time_of(rounds, [] {
      auto* memory = ::operator new(512);
      benchmark::DoNotOptimize(memory);
      ::operator delete(memory);
    });
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

row against_mutex(char const* name, side (*make)()) {
  return {name, a_mutex_pair, stated(), [make] { return contest{make(), mutex_pair()}; }};
}

}  // namespace

topic baselines() {
  topic t{
      "Yardsticks",
      "What other rows are compared with, measured in the same run. The process has started a thread before.",
      {against_mutex("std::mutex, lock + unlock", mutex_pair),
       against_mutex("std::counting_semaphore, try_acquire + release (lanes only, no tokens, no line)", semaphore_pair),
       against_mutex("std::chrono::steady_clock::now", clock_read),
       against_mutex("operator new + delete of 512 bytes", allocation)}};
#ifdef KVLANE_BENCH_HAS_ASIO
  t.rows.push_back(against_mutex("asio::post + run_one", [] { return asio_post(armed_timer::none); }));
  t.rows.push_back(
      against_mutex("asio::post + run_one, a timer armed in the context", [] { return asio_post(armed_timer::one); }));
#endif
  return t;
}

}  // namespace kvlane::bench
