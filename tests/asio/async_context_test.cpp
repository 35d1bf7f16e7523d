// Contexts that go while somebody waits in them, or while a hand-over is on its way to them.

#include "support/async_fixture.hpp"
#include "support/scripted_executor.hpp"

#include <kvlane/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::test::scripted_executor;
using namespace std::chrono_literals;

class AsyncContext : public kvlane::test::AsyncAdmit {
 protected:
  std::optional<net::io_context> brief{std::in_place};
  std::shared_ptr<int> life = std::make_shared<int>(0);

  /// A handler that must not run; `life` knows whether it still exists.
  [[nodiscard]] auto unheard() {
    return [life = life](admission const&) { FAIL() << "the handler ran"; };
  }
  [[nodiscard]] bool handlers_are_gone() const { return life.use_count() == 1; }
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

// -- hand-overs in flight

TEST_F(AsyncContext, WaitsForAHandOverThatIsJustTakingPlace) {
  auto running = take();
  scripted_executor const executor{*brief};
  std::latch handing_over{1};
  std::atomic<bool> context_is_gone{false};
  executor.says().before_passing_on = [&] {
    // From here on the context is being destroyed. Had it not waited, it would be gone by the time of the post.
    handing_over.count_down();
    for (int i = 0; i != 10'000; ++i) std::this_thread::yield();
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
