// What async_admit promises to every handler: where it runs, when, and what it gets.

#include "support/async_fixture.hpp"
#include "support/calling_observer.hpp"

#include <kvlane/error.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::errc;
using kvlane::test::AsyncAdmit;
using kvlane::test::refused;

// -- when the handler runs

TEST_F(AsyncAdmit, AFreeLaneIsHandedOutButNeverInsideTheInitiatingCall) {
  async_admit(context, queue, {.kv_demand = 1, .tag = 4}, keep());
  EXPECT_TRUE(outcomes.empty()) << "the handler ran inside async_admit";
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  ASSERT_TRUE(outcomes[0]);
  EXPECT_EQ(outcomes[0]->tag(), 4U);
}

TEST_F(AsyncAdmit, NorDoesItWhenTheCallComesFromTheContextItself) {
  net::post(context, [&] {
    async_admit(context, queue, {.kv_demand = 1}, keep());
    EXPECT_TRUE(outcomes.empty());
  });
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, ARefusalIsAnOrdinaryValueThatKeepsItsReasons) {
  async_admit(context, queue, {.kv_demand = 1'000'000, .tag = 9}, keep());
  context.run();
  ASSERT_EQ(refusal(), errc::never_fits);
  EXPECT_EQ(outcomes[0].error().asked_tokens(), 1'000'000U);
  EXPECT_EQ(outcomes[0].error().tag(), 9U);
}

TEST_F(AsyncAdmit, AWaiterGetsTheLaneOfWhoeverReleasesItButNotInsideThatCall) {
  auto running = take();
  async_admit(context, queue, {.kv_demand = 1}, keep());
  run_ready();
  EXPECT_TRUE(outcomes.empty());
  EXPECT_EQ(waiting(), 1U);
  running.release();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(outcomes.empty()) << "the handler ran inside release";
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0]);
}

TEST_F(AsyncAdmit, NotEvenWhenTheLaneIsReleasedInAHandlerOfTheSameContext) {
  net::post(context, [&, running = std::make_shared<kvlane::lease>(take())] {
    async_admit(context, queue, {.kv_demand = 1}, keep());
    running->release();
    EXPECT_TRUE(outcomes.empty());
  });
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, ClosingTheQueueAnswersWithShuttingDown) {
  auto const running = take();
  async_admit(context, queue, {.kv_demand = 1}, keep());
  queue.close();
  context.run();
  EXPECT_EQ(refusal(), errc::shutting_down);
}

TEST_F(AsyncAdmit, SoDoesDestroyingIt) {
  auto brief = std::make_unique<kvlane::admission_queue>();
  auto running = brief->try_admit({.kv_demand = 1});
  async_admit(context, *brief, {.kv_demand = 1, .max_wait = std::chrono::hours{1}}, keep());
  brief.reset();
  context.run();
  EXPECT_EQ(refusal(), errc::shutting_down);
}

TEST_F(AsyncAdmit, TheContextRunsUntilNobodyWaits) {
  auto running = take();
  async_admit(context, queue, {.kv_demand = 1}, keep());
  net::post(context, [&] { running.release(); });
  EXPECT_GT(context.run(), 1U) << "the context had no work although somebody waited";
  EXPECT_EQ(outcomes.size(), 1U);
}

// -- executors

TEST_F(AsyncAdmit, TheHandlerRunsOnItsOwnExecutor) {
  auto const strand = net::make_strand(context);
  bool in_strand = false;
  async_admit(queue, {.kv_demand = 1},
              net::bind_executor(strand, [&](admission const&) { in_strand = strand.running_in_this_thread(); }));
  context.run();
  EXPECT_TRUE(in_strand);
}

TEST_F(AsyncAdmit, ItsOwnExecutorGoesBeforeTheOneThatIsPassed) {
  net::io_context other;
  async_admit(other, queue, {.kv_demand = 1}, net::bind_executor(context.get_executor(), keep()));
  EXPECT_EQ(other.run(), 0U);
  EXPECT_TRUE(outcomes.empty());
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, BothContextsHaveWorkUntilThen) {
  net::io_context io;
  auto running = take();
  async_admit(io, queue, {.kv_demand = 1}, net::bind_executor(context.get_executor(), keep()));
  io.poll();
  context.poll();
  EXPECT_FALSE(io.stopped());
  EXPECT_FALSE(context.stopped());
  running.release();
  io.run();
  EXPECT_TRUE(outcomes.empty());
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, AnExecutorMayBePassedAsWellAsAContext) {
  async_admit(context.get_executor(), queue, {.kv_demand = 1}, keep());
  async_admit(net::any_io_executor{context.get_executor()}, queue, {.kv_demand = 1}, keep());
  auto const strand = net::make_strand(context);
  async_admit(strand, queue, {.kv_demand = 1}, keep());
  for (std::size_t many = 1; many != 4; ++many) {
    context.restart();
    context.poll();
    ASSERT_EQ(outcomes.size(), many);
    outcomes.back() = {};
  }
}

TEST_F(AsyncAdmit, SeveralContextsShareOneQueue) {
  net::io_context other;
  auto running = take();
  std::vector<int> order;
  async_admit(context, queue, {.kv_demand = 1}, [&](admission const&) { order.push_back(1); });
  async_admit(other, queue, {.kv_demand = 1}, [&](admission const&) { order.push_back(2); });
  running.release();
  EXPECT_EQ(other.poll(), 0U) << "the second was not yet its turn";
  context.run();
  other.run();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_F(AsyncAdmit, AThreadPoolIsAContextToo) {
  net::thread_pool pool{2};
  std::promise<std::thread::id> ran_in;
  async_admit(pool, queue, {.kv_demand = 1}, [&](admission const&) { ran_in.set_value(std::this_thread::get_id()); });
  EXPECT_NE(ran_in.get_future().get(), std::this_thread::get_id());
  pool.join();
}

// -- completion tokens

TEST_F(AsyncAdmit, AHandlerMayBeMoveOnly) {
  async_admit(context, queue, {.kv_demand = 1}, [this, only = std::make_unique<int>(7)](admission a) mutable {
    EXPECT_EQ(*only, 7);
    outcomes.push_back(std::move(a));
  });
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, AFutureHoldsTheOutcome) {
  auto outcome = async_admit(context, queue, {.kv_demand = 1}, net::use_future);
  context.run();
  EXPECT_TRUE(outcome.get());
}

TEST_F(AsyncAdmit, AFutureNeedsNoExecutorOfItsOwn) {
  auto const running = take();
  auto outcome = async_admit(queue, {.kv_demand = 1, .max_wait = std::chrono::milliseconds{1}}, net::use_future);
  EXPECT_EQ(refused(outcome.get()), errc::timed_out);
}

TEST_F(AsyncAdmit, ADeferredOperationAsksOnlyWhenItIsStarted) {
  auto operation = async_admit(context, queue, {.kv_demand = 1}, kvlane::test::deferred);
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
  std::move(operation)(keep());
  EXPECT_EQ(queue.snapshot().lanes_busy, 1U);
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)

TEST_F(AsyncAdmit, ACoroutineAwaitsItsLane) {
  auto running = take();
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        auto slot = co_await async_admit(queue, {.kv_demand = 1, .tag = 3}, net::use_awaitable);
        outcomes.push_back(std::move(slot));
      },
      net::detached);
  context.poll();
  EXPECT_EQ(waiting(), 1U);
  running.release();
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0]->tag(), 3U);
}

TEST_F(AsyncAdmit, ACoroutineMayAskForATuple) {
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        auto [slot] = co_await async_admit(queue, {.kv_demand = 1}, kvlane::test::as_tuple(net::use_awaitable));
        outcomes.push_back(std::move(slot));
      },
      net::detached);
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncAdmit, LongChainsOfCoroutinesNeedNoStack) {
  constexpr int many = 20'000;
  kvlane::admission_queue roomy{{.lanes = 1, .max_waiting = many}};
  int served = 0;
  auto serve = [&]() -> net::awaitable<void> {
    auto const slot = co_await async_admit(roomy, {.kv_demand = 1}, net::use_awaitable);
    if (slot) ++served;
  };
  for (int i = 0; i != many; ++i) net::co_spawn(context, serve(), net::detached);
  context.run();
  EXPECT_EQ(served, many);
}

/// Notices when it is copied after its end.
struct tattling_executor {
  net::io_context* context;
  bool volatile alive = true;
  explicit tattling_executor(net::io_context& c) noexcept : context{&c} {}
  tattling_executor(tattling_executor const& other) noexcept : context{other.context} {
    EXPECT_TRUE(other.alive) << "copied after its end";
  }
  tattling_executor& operator=(tattling_executor const&) = delete;
  ~tattling_executor() { alive = false; }
  template <class F>
  void execute(F&& f) const {
    net::post(*context, std::forward<F>(f));
  }
  [[nodiscard]] net::execution_context& query(net::execution::context_t) const noexcept { return *context; }
  [[nodiscard]] static constexpr net::execution::blocking_t::never_t query(net::execution::blocking_t) noexcept {
    return net::execution::blocking.never;
  }
  [[nodiscard]] tattling_executor require(net::execution::blocking_t::never_t) const noexcept { return *this; }
  bool operator==(tattling_executor const& other) const noexcept { return context == other.context; }
};

TEST_F(AsyncAdmit, ACoroutineMayGoOnBeforeTheCallThatStartedTheOperationReturns) {
  // What was passed to async_admit lies in the frame of the coroutine, and is gone then.
  kvlane::test::calling_observer observer;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::test::calling_observer> watched{{}, {}, observer};
  auto running = watched.try_admit({.kv_demand = 1});
  bool went_on = false;
  observer.when_queued([&] {
    running->release();
    context.poll();
    EXPECT_TRUE(went_on);
  });
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        auto const slot = co_await async_admit(tattling_executor{context}, watched,
                                               {.kv_demand = 1, .max_wait = std::chrono::hours{1}}, net::use_awaitable);
        went_on = bool{slot};
      },
      net::detached);
  context.run();
  EXPECT_TRUE(went_on);
}

#endif

// -- when something throws

/// A policy that has no room for anybody.
struct cramped_policy : kvlane::fcfs {
  void insert(waiter& /*w*/) { throw std::runtime_error{"no room"}; }
};

TEST_F(AsyncAdmit, WhatThrowsWhileJoiningLeavesNoTrace) {
  kvlane::basic_admission_queue<cramped_policy> cramped{{.lanes = 1}};
  auto const running = cramped.try_admit({.kv_demand = 1});
  auto const witness = std::make_shared<int>(0);
  EXPECT_THROW(async_admit(context, cramped, {.kv_demand = 1}, [witness](admission const&) {}), std::runtime_error);
  EXPECT_EQ(witness.use_count(), 1) << "the handler was not destroyed";
  EXPECT_EQ(cramped.snapshot().waiting, 0U);
  EXPECT_EQ(context.run(), 0U) << "the context still has work";
}

TEST_F(AsyncAdmit, AHandlerThatThrowsWhileItIsMovedLosesNoLease) {
  struct fragile_handler {
    std::shared_ptr<bool> breaks = std::make_shared<bool>(false);
    fragile_handler() = default;
    fragile_handler(fragile_handler&& other) : breaks{other.breaks} {
      if (*breaks) throw std::runtime_error{"moved"};
    }
    void operator()(admission const&) const { FAIL(); }
  };
  fragile_handler handler;
  auto const breaks = handler.breaks;
  async_admit(context, queue, {.kv_demand = 1}, std::move(handler));
  *breaks = true;
  EXPECT_THROW(context.run(), std::runtime_error);
  EXPECT_EQ(breaks.use_count(), 2) << "the handler was not destroyed";
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
}

TEST_F(AsyncAdmit, WhatTheHandlerThrowsComesOutOfRun) {
  async_admit(context, queue, {.kv_demand = 1}, [](admission const&) { throw std::runtime_error{"mine"}; });
  EXPECT_THROW(context.run(), std::runtime_error);
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
}

}  // namespace
