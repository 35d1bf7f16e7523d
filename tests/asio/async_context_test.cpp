// Contexts that go while somebody waits in them, or while a hand-over is on its way to them.

#include "support/async_fixture.hpp"
#include "support/calling_observer.hpp"
#include "support/scripted_executor.hpp"

#include <kvlane/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::test::scripted_executor;
using namespace std::chrono_literals;

void give_others_time() {
  for (int i = 0; i != 10'000; ++i) std::this_thread::yield();
}

class AsyncContext : public kvlane::test::AsyncAdmit {
 protected:
  std::optional<net::io_context> brief{std::in_place};
  std::shared_ptr<int> life = std::make_shared<int>(0);

  /// A handler that must not run; `life` knows whether it still exists.
  [[nodiscard]] auto unheard() {
    return [life = life](admission const&) { FAIL() << "the handler ran"; };
  }
  [[nodiscard]] bool handlers_are_gone() const { return life.use_count() == 1; }

  /// For a thread in the middle of something that the end of the context has to wait for: had it not waited, the context
  /// would be gone by the time this returns.
  void destroy_it_meanwhile() {
    destroying = std::jthread{[this] {
      destroying_has_begun.count_down();
      brief.reset();
      brief_is_gone = true;
    }};
    destroying_has_begun.wait();
    give_others_time();
    EXPECT_FALSE(brief_is_gone);
  }
  std::latch destroying_has_begun{1};
  std::atomic<bool> brief_is_gone{false};
  std::jthread destroying;
};

TEST_F(AsyncContext, TakesItsWaitersOutOfLineWhenItGoes) {
  auto const running = take();
  async_admit(*brief, queue, {.kv_demand = 1}, unheard());
  async_admit(*brief, queue, {.kv_demand = 1, .max_wait = 1h}, unheard());
  ASSERT_EQ(waiting(), 2U);
  brief.reset();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, ThoseOfOtherContextsMoveUp) {
  auto running = take();
  async_admit(*brief, queue, {.kv_demand = 1}, unheard());
  async_admit(context, queue, {.kv_demand = 1}, keep());
  brief.reset();
  running.release();
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0]);
}

TEST_F(AsyncContext, AHandOverThatNobodyRunsGivesTheLeaseBack) {
  auto running = take();
  async_admit(*brief, queue, {.kv_demand = 1}, unheard());
  async_admit(context, queue, {.kv_demand = 1}, keep());
  running.release();
  EXPECT_EQ(queue.snapshot().lanes_busy, 1U) << "the lease is on its way";
  brief.reset();
  EXPECT_TRUE(handlers_are_gone());
  context.run();
  ASSERT_EQ(outcomes.size(), 1U) << "it did not go on to the next";
}

TEST_F(AsyncContext, SoDoesAnImmediateOutcome) {
  async_admit(*brief, queue, {.kv_demand = 1}, unheard());
  brief.reset();
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, AHandlerThatDiesWithItsContextMayReleaseALease) {
  async_admit(*brief, queue, {.kv_demand = 1},
              [life = life, held = std::make_shared<kvlane::lease>(take())](admission const&) { FAIL(); });
  async_admit(*brief, queue, {.kv_demand = 1}, unheard());
  async_admit(context, queue, {.kv_demand = 1}, keep());
  brief.reset();
  EXPECT_TRUE(handlers_are_gone());
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)
TEST_F(AsyncContext, CoroutinesThatWaitAreDestroyedWithTheirContext) {
  auto const running = take();
  for (int i = 0; i != 3; ++i)
    net::co_spawn(
        *brief,
        [this, life = life]() -> net::awaitable<void> {
          auto const keep_alive = life;
          auto const slot = co_await async_admit(queue, {.kv_demand = 1}, net::use_awaitable);
          ADD_FAILURE() << "the coroutine went on";
        },
        net::detached);
  brief->poll();
  ASSERT_EQ(waiting(), 3U);
  brief.reset();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(handlers_are_gone());
}
#endif

TEST_F(AsyncContext, ACallbackMayDestroyItWhileAnOperationStarts) {
  kvlane::manual_clock clock;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock> slow{
      {.lanes = 1}, {}, {}, clock};
  auto const running = slow.try_admit({.kv_demand = 1});
  kvlane::ticket place;
  ASSERT_FALSE(slow.enqueue({.kv_demand = 1, .max_wait = 1s}, place, [&](admission const&) { brief.reset(); }));
  clock.advance(2s);  // the one who comes next has it told that its time is over
  async_admit(*brief, slow, {.kv_demand = 1}, unheard());
  EXPECT_FALSE(brief);
  EXPECT_TRUE(handlers_are_gone());
  EXPECT_EQ(slow.snapshot().waiting, 0U);
}

TEST_F(AsyncContext, SoMayACallbackOfOneWhoMovesUpWhenAnOperationIsCancelled) {
  kvlane::admission_queue strict{{.lanes = 2, .max_overtakes = 0}};
  auto const running = strict.try_admit({.kv_demand = 1});
  net::cancellation_signal signal;
  auto const all = strict.current_limits().kv_capacity;
  async_admit(*brief, strict, {.kv_demand = all}, net::bind_cancellation_slot(signal.slot(), unheard()));
  kvlane::ticket place;
  ASSERT_FALSE(strict.enqueue({.kv_demand = 1}, place, [&](admission const&) { brief.reset(); }));
  signal.emit(net::cancellation_type::total);
  EXPECT_FALSE(brief);
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, WhatDiesWithItMayStartSomethingNewThere) {
  // Operations in queues of their own, so that the context has to remember each.
  struct starts_more {
    net::io_context* context;
    std::vector<std::unique_ptr<kvlane::admission_queue>>* queues;
    std::shared_ptr<int> life;
    starts_more(net::io_context& c, std::vector<std::unique_ptr<kvlane::admission_queue>>& q, std::shared_ptr<int> l)
        : context{&c}, queues{&q}, life{std::move(l)} {}
    starts_more(starts_more&& other) noexcept
        : context{std::exchange(other.context, nullptr)}, queues{other.queues}, life{std::move(other.life)} {}
    ~starts_more() {
      if (context == nullptr) return;
      for (auto& q : *queues) async_admit(*context, *q, {.kv_demand = 1}, [l = life](admission const&) { FAIL(); });
    }
    void operator()(admission const&) const { FAIL(); }
  };
  std::vector<std::unique_ptr<kvlane::admission_queue>> queues;
  std::vector<admission> held;
  for (int i = 0; i != 20; ++i) {
    queues.push_back(std::make_unique<kvlane::admission_queue>());
    held.push_back(queues.back()->try_admit({.kv_demand = 1}));
  }
  async_admit(*brief, queue, {.kv_demand = 1}, starts_more{*brief, queues, life});  // dies on its way to its handler
  async_admit(*brief, queue, {.kv_demand = 1}, starts_more{*brief, queues, life});  // dies in line
  brief.reset();
  EXPECT_TRUE(handlers_are_gone());
  held.clear();  // nobody is left to be told
}

// -- two contexts: one waits, the handler runs in the other

TEST_F(AsyncContext, TheHandlersContextMayGoFirst) {
  net::io_context io;
  auto const running = take();
  async_admit(io, queue, {.kv_demand = 1, .max_wait = 1h}, net::bind_executor(brief->get_executor(), unheard()));
  brief.reset();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(handlers_are_gone());
  io.run();  // returns: the timer has been stopped, and there is no work left
}

TEST_F(AsyncContext, TheOtherMayGoFirst) {
  auto const running = take();
  async_admit(*brief, queue, {.kv_demand = 1, .max_wait = 1h}, net::bind_executor(context.get_executor(), unheard()));
  brief.reset();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(handlers_are_gone());
  context.run();
}

TEST_F(AsyncContext, AHandOverOutlivesTheContextThatWaited) {
  auto running = take();
  async_admit(*brief, queue, {.kv_demand = 1, .max_wait = 1h}, net::bind_executor(context.get_executor(), keep()));
  async_admit(*brief, queue, {.kv_demand = 1'000'000}, net::bind_executor(context.get_executor(), keep()));
  running.release();
  brief.reset();
  context.run();
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(AsyncContext, AHandlerMayOwnTheContextThatWaited) {
  auto const running = take();
  auto io = std::make_shared<net::io_context>();
  async_admit(*io, queue, {.kv_demand = 1, .max_wait = 1h},
              net::bind_executor(brief->get_executor(), [io, life = life](admission const&) { FAIL(); }));
  std::weak_ptr const waited = io;
  io.reset();
  brief.reset();
  EXPECT_TRUE(waited.expired());
  EXPECT_TRUE(handlers_are_gone());
}

// -- hand-overs in flight

TEST_F(AsyncContext, WaitsForAnOutcomeThatIsKnownWhileTheQueueIsStillAtWork) {
  kvlane::manual_clock clock;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock> slow{
      {.lanes = 1}, {}, {}, clock};
  auto const running = slow.try_admit({.kv_demand = 1});
  async_admit(*brief, slow, {.kv_demand = 1, .max_wait = 1h}, unheard());
  clock.advance(2h);
  // Copied with the queue unlocked, when the other one has been found overdue and not been told yet.
  struct slow_to_copy {
    std::function<void()> meanwhile;
    explicit slow_to_copy(std::function<void()> f) : meanwhile{std::move(f)} {}
    slow_to_copy(slow_to_copy const& other) { other.meanwhile(); }
    void operator()(admission const&) const {}
  };
  slow_to_copy const completion{[this] { destroy_it_meanwhile(); }};
  kvlane::ticket place;
  EXPECT_FALSE(slow.enqueue({.kv_demand = 1}, place, completion));
  destroying.join();
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, WaitsForACancellationThatIsJustTakingPlace) {
  struct calling_clock {
    std::shared_ptr<std::function<void()>> call = std::make_shared<std::function<void()>>();
    kvlane::time_point operator()() const noexcept {
      if (auto const f = std::exchange(*call, nullptr)) f();
      return std::chrono::steady_clock::now();
    }
  };
  calling_clock clock;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, calling_clock> watched{
      {.lanes = 1}, {}, {}, clock};
  auto const running = watched.try_admit({.kv_demand = 1});
  net::cancellation_signal signal;
  async_admit(*brief, watched, {.kv_demand = 1}, net::bind_cancellation_slot(signal.slot(), unheard()));
  // Read by the thread that cancels, when it has the place in hand and the request is still in line.
  *clock.call = [this] { destroy_it_meanwhile(); };
  signal.emit(net::cancellation_type::total);
  destroying.join();
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, WaitsForTheThreadThatStartsAnOperationThoughItsHandlerHasRun) {
  kvlane::test::calling_observer observer;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::test::calling_observer> watched{
      {.lanes = 1}, {}, observer};
  auto running = watched.try_admit({.kv_demand = 1});
  bool ran = false;
  observer.when_queued([&] {
    running->release();
    brief->poll();
    EXPECT_TRUE(ran);
    destroy_it_meanwhile();
  });
  async_admit(*brief, watched, {.kv_demand = 1, .max_wait = 1h}, [&](admission const&) { ran = true; });
  destroying.join();
}

TEST_F(AsyncContext, WaitsForAHandOverThatIsJustTakingPlace) {
  auto running = take();
  scripted_executor const executor{*brief};
  std::latch handing_over{1};
  std::atomic<bool> context_is_gone{false};
  executor.says().before_passing_on = [&] {
    // From here on the context is being destroyed. Had it not waited, it would be gone by the time of the post.
    handing_over.count_down();
    give_others_time();
    EXPECT_FALSE(context_is_gone);
  };
  async_admit(executor, queue, {.kv_demand = 1}, unheard());
  std::thread releasing{[&] { running.release(); }};
  handing_over.wait();
  brief.reset();
  context_is_gone = true;
  releasing.join();
  EXPECT_TRUE(handlers_are_gone());
}

TEST_F(AsyncContext, MayGoAgainAndAgainWhileOthersHandOver) {
  // A lane that goes from hand to hand in one thread, while contexts with waiters come and go in another.
  constexpr int rounds = 300;
  std::atomic<bool> done{false};
  std::thread handing_over{[&] {
    while (!done) {
      auto a = queue.try_admit({.kv_demand = 1});
      std::this_thread::yield();
    }
  }};
  int ran = 0;
  for (int round = 0; round != rounds; ++round) {
    net::io_context io;
    for (int i = 0; i != 8; ++i)
      async_admit(io, queue, {.kv_demand = 1, .max_wait = i % 2 == 0 ? 1h : kvlane::forever},
                  [&](admission const&) { ++ran; });
    io.poll();
  }
  done = true;
  handing_over.join();
  EXPECT_GT(ran, 0);
}

TEST_F(AsyncContext, ItsThreadsMayHandOverToEachOtherWhileItIsStopped) {
  net::thread_pool pool{2};
  std::atomic<int> ran{0};
  for (int i = 0; i != 64; ++i)
    async_admit(pool, queue, {.kv_demand = 1, .max_wait = 1h}, [&](admission const&) {
      if (++ran == 32) pool.stop();
    });
  pool.join();
  EXPECT_GE(ran, 32);
}

}  // namespace
