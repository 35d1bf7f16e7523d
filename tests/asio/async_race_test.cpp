// Thousands of operations on several threads, granted, cancelled and expired at about the same moment. Each has exactly one outcome,
// and in the end everything is back. Bounded by count; meant for ThreadSanitizer.

#include "support/async_fixture.hpp"
#include "support/stress_seed.hpp"

#include <kvlane/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::errc;
using namespace std::chrono_literals;

class AsyncRace : public testing::Test {
 protected:
  static constexpr int threads = 4;
  unsigned const seed = kvlane::test::choose_seed();
  kvlane::admission_queue queue{{.lanes = 2, .kv_capacity = 64, .max_waiting = 100'000}};
  std::atomic<int> admitted{0};
  std::atomic<int> timed_out{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> other{0};

  void SetUp() override { std::printf("seed %u\n", seed); }
  void TearDown() override { kvlane::test::expect_nothing_left(queue); }

  void count(admission const& a) {
    if (a)
      ++admitted;
    else if (a.error().code() == errc::timed_out)
      ++timed_out;
    else if (a.error().code() == errc::cancelled)
      ++cancelled;
    else
      ++other;
  }
  [[nodiscard]] int outcomes() const { return admitted + timed_out + cancelled + other; }
};

TEST_F(AsyncRace, EveryHandlerRunsOnceWhoeverIsFaster) {
  constexpr int operations = 8'000;
  net::thread_pool pool{threads};
  struct client {
    explicit client(net::thread_pool& p) : strand{net::make_strand(p)} {}
    net::strand<net::thread_pool::executor_type> strand;
    net::cancellation_signal signal;
  };
  std::vector<std::unique_ptr<client>> clients;
  std::mt19937 random{seed};
  for (int i = 0; i != operations; ++i) {
    clients.push_back(std::make_unique<client>(pool));
    auto& c = *clients.back();
    auto const fate = random() % 4;
    kvlane::request const r{.kv_demand = 1 + random() % 40,
                            .priority = static_cast<std::uint32_t>(random() % 3),
                            .max_wait = fate == 0 ? std::chrono::microseconds{random() % 500} : kvlane::duration{1h}};
    async_admit(queue, r, net::bind_cancellation_slot(c.signal.slot(), net::bind_executor(c.strand, [&](admission a) {
                                                        count(a);
                                                        std::this_thread::yield();
                                                      })));
    // The signal is emitted where the handler runs, as Asio asks for; the grant and the deadline come from anywhere.
    if (fate == 1) net::post(c.strand, [&c] { c.signal.emit(net::cancellation_type::total); });
    if (fate == 2) c.signal.emit(net::cancellation_type::total);
  }
  pool.join();
  EXPECT_EQ(outcomes(), operations);
  EXPECT_GT(admitted, 0);
  EXPECT_GT(cancelled, 0);
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)

using namespace net::experimental::awaitable_operators;

TEST_F(AsyncRace, CoroutinesThatRaceTimersLoseNoLease) {
  constexpr int coroutines = 4'000;
  net::thread_pool pool{threads};
  std::atomic<int> finished{0};
  auto client = [&](unsigned number) -> net::awaitable<void> {
    std::minstd_rand random{seed + number};
    net::steady_timer timer{co_await net::this_coro::executor, std::chrono::microseconds{random() % 300}};
    auto outcome = co_await (
        async_admit(queue,
                    {.kv_demand = 1 + random() % 40,
                     .max_wait = random() % 2 == 0 ? std::chrono::microseconds{random() % 300} : kvlane::duration{1h}},
                    net::use_awaitable) ||
        timer.async_wait(net::use_awaitable));
    if (outcome.index() == 0) {
      count(std::get<0>(outcome));
      co_await net::post(net::use_awaitable);  // holds the lease for a round through the pool
    }
    ++finished;
  };
  for (unsigned i = 0; i != coroutines; ++i) net::co_spawn(net::make_strand(pool), client(i), net::detached);
  pool.join();
  EXPECT_EQ(finished, coroutines);
  EXPECT_GT(admitted, 0);
}

#endif

TEST_F(AsyncRace, ContextsAndQueuesComeAndGo) {
  constexpr int rounds = 200;
  std::mt19937 random{seed};
  std::atomic<int> ran{0};
  for (int round = 0; round != rounds; ++round) {
    auto brief = std::make_unique<kvlane::admission_queue>(kvlane::limits{.lanes = 1, .max_waiting = 1'000});
    auto held = brief->try_admit({.kv_demand = 1});
    auto first = std::make_unique<net::io_context>();
    auto second = std::make_unique<net::io_context>();
    for (int i = 0; i != 16; ++i) {
      auto const wait = i % 3 == 0 ? kvlane::duration{std::chrono::microseconds{random() % 100}} : kvlane::duration{1h};
      auto handler = [&ran](admission const&) { ++ran; };
      if (i % 4 == 0)
        async_admit(*first, *brief, {.kv_demand = 1, .max_wait = wait},
                    net::bind_executor(second->get_executor(), handler));
      else
        async_admit(i % 2 == 0 ? *first : *second, *brief, {.kv_demand = 1, .max_wait = wait}, handler);
    }
    // Four threads end four things at once: a lease, a queue, and two contexts.
    std::vector<std::thread> ends;
    ends.emplace_back([&] { held->release(); });
    ends.emplace_back([&] { brief.reset(); });
    ends.emplace_back([&] {
      first->poll();
      first.reset();
    });
    ends.emplace_back([&] {
      second->poll();
      second.reset();
    });
    for (auto& t : ends) t.join();
  }
  EXPECT_GT(ran, 0);
}

}  // namespace
