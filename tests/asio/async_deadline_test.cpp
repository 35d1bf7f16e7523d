// Deadlines are kept by the context that waits. Where a test says an hour it would take one, if the timer were not stopped.

#include "support/async_fixture.hpp"
#include "support/calling_observer.hpp"
#include "support/scripted_executor.hpp"

#include <kvlane/error.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::errc;
using kvlane::test::refused;
using namespace std::chrono_literals;

class AsyncDeadline : public kvlane::test::AsyncAdmit {};

TEST_F(AsyncDeadline, NobodyHasToCallExpire) {
  auto const running = take();
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1ms}, keep());
  context.run();
  ASSERT_EQ(refusal(), errc::timed_out);
}

TEST_F(AsyncDeadline, TheQueuesOwnLimitCountsToo) {
  queue.update([](auto& l) { l.max_wait = 1ms; });
  auto const running = take();
  async_admit(context, queue, {.kv_demand = 1}, keep());
  context.run();
  ASSERT_EQ(refusal(), errc::timed_out);
}

TEST_F(AsyncDeadline, AnEarlierOneThatComesLaterIsKeptFirst) {
  auto running = take();
  std::vector<int> order;
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 20ms}, [&](admission const&) { order.push_back(20); });
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1h}, [&](admission const&) { order.push_back(60); });
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1ms}, [&](admission const& a) {
    EXPECT_EQ(refused(a), errc::timed_out);
    order.push_back(1);
  });
  while (order.size() != 2) context.run_one();
  running.release();
  context.run();
  EXPECT_EQ(order, (std::vector{1, 20, 60}));
}

TEST_F(AsyncDeadline, TheContextReturnsAsSoonAsNobodyWaitsAnyMore) {
  auto running = take();
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1h}, keep());
  net::post(context, [&] { running.release(); });
  context.run();
  EXPECT_EQ(refusal(), std::nullopt);
}

TEST_F(AsyncDeadline, AlsoWhenTheLastOneIsCancelled) {
  auto const running = take();
  net::cancellation_signal signal;
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1h}, net::bind_cancellation_slot(signal.slot(), keep()));
  net::post(context, [&] { signal.emit(net::cancellation_type::total); });
  context.run();
  EXPECT_EQ(refusal(), errc::cancelled);
}

TEST_F(AsyncDeadline, AlsoWhenTheLastOneIsExpiredBySomebodyElse) {
  auto const running = take();
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 0s, .deadline = kvlane::time_point::max()}, keep());
  context.run();
  EXPECT_EQ(refusal(), errc::would_wait);
}

TEST_F(AsyncDeadline, ATimerThatHasRunOutStartsAgainForTheNext) {
  auto const running = take();
  for (int i = 0; i != 3; ++i) {
    outcomes.clear();
    context.restart();
    async_admit(context, queue, {.kv_demand = 1, .max_wait = 1ms}, keep());
    context.run();
    ASSERT_EQ(refusal(), errc::timed_out);
  }
}

TEST_F(AsyncDeadline, EachContextKeepsTheDeadlinesOfItsOwn) {
  net::io_context other;
  auto const running = take();
  async_admit(other, queue, {.kv_demand = 1, .max_wait = 1h},
              [](admission const& a) { EXPECT_EQ(refused(a), errc::shutting_down); });
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1ms}, keep());
  context.run();
  EXPECT_EQ(refusal(), errc::timed_out);
  queue.close();
  other.run();
}

TEST_F(AsyncDeadline, OneContextKeepsThemForEveryQueue) {
  kvlane::admission_queue second;
  auto const running = take();
  auto const other = second.try_admit({.kv_demand = 1});
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 2ms}, keep());
  async_admit(context, second, {.kv_demand = 1, .max_wait = 1ms}, keep());
  context.run();
  ASSERT_EQ(outcomes.size(), 2U);
  for (auto const& o : outcomes) EXPECT_EQ(refused(o), errc::timed_out);
}

TEST_F(AsyncDeadline, AQueueThatComesWhereAnotherLayIsServedToo) {
  alignas(kvlane::admission_queue) std::byte place[sizeof(kvlane::admission_queue)];
  for (int i = 0; i != 3; ++i) {
    auto* const brief = ::new (static_cast<void*>(place)) kvlane::admission_queue;
    auto const running = brief->try_admit({.kv_demand = 1});
    outcomes.clear();
    context.restart();
    async_admit(context, *brief, {.kv_demand = 1, .max_wait = 1h}, keep());
    async_admit(context, *brief, {.kv_demand = 1, .max_wait = 1ms}, keep());
    while (outcomes.empty()) context.run_one();
    EXPECT_EQ(refusal(), errc::timed_out);
    brief->~basic_admission_queue();
    context.run();
    EXPECT_EQ(outcomes.size(), 2U);
  }
}

TEST_F(AsyncDeadline, AStrandThatIsBusyDoesNotHoldUpTheTimer) {
  auto const running = take();
  auto const strand = net::make_strand(context);
  std::promise<void> kept;
  async_admit(strand, queue, {.kv_demand = 1, .max_wait = 1ms},
              net::bind_executor(context.get_executor(), [&](admission a) {
                outcomes.push_back(std::move(a));
                kept.set_value();
              }));
  // A handler that goes on until the deadline has been kept, by another thread and outside of the strand.
  net::post(strand, [&] { EXPECT_EQ(kept.get_future().wait_for(10s), std::future_status::ready); });
  std::thread another{[&] { context.run(); }};
  context.run();
  another.join();
  EXPECT_EQ(refusal(), errc::timed_out);
}

TEST_F(AsyncDeadline, TheTimerIsNoWorkWhateverExecutorIsPassed) {
  auto running = take();
  async_admit(net::require(context.get_executor(), net::execution::outstanding_work.tracked), queue,
              {.kv_demand = 1, .max_wait = 1h}, keep());
  running.release();
  context.run_for(10s);
  EXPECT_TRUE(context.stopped());
}

TEST_F(AsyncDeadline, AnOutcomeThatComesWhileTheOperationStartsLeavesNoTimer) {
  kvlane::test::calling_observer observer;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::test::calling_observer> watched{
      {.lanes = 1}, {}, observer};
  auto running = watched.try_admit({.kv_demand = 1});
  observer.when_queued([&] { running->release(); });
  async_admit(context, watched, {.kv_demand = 1, .max_wait = 1h}, [](admission const& a) { EXPECT_TRUE(a); });
  context.run_for(10s);
  EXPECT_TRUE(context.stopped());
}

TEST_F(AsyncDeadline, OneAtTheEndOfTimeDoesNotKeepTheContextRunning) {
  auto running = take();
  async_admit(context, queue, {.kv_demand = 1, .deadline = kvlane::time_point::max() - kvlane::duration{1}}, keep());
  running.release();
  context.run_for(10s);
  EXPECT_TRUE(context.stopped()) << "the timer was not stopped";
}

TEST_F(AsyncDeadline, ACallbackOfOneThatIsOverMayAskAnotherQueue) {
  // The other queue is new to the context, which forgets the one that nobody waits in any more, and is just ringing.
  kvlane::manual_clock clock;
  using slow_queue =
      kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock>;
  slow_queue first{{.lanes = 1}, {}, {}, clock};
  slow_queue second{{.lanes = 1}, {}, {}, clock};
  auto const running = first.try_admit({.kv_demand = 1});
  kvlane::ticket over;
  kvlane::ticket later;
  ASSERT_FALSE(first.enqueue({.kv_demand = 1, .max_wait = 1ms}, over,
                             [&](admission const&) { async_admit(context, second, {.kv_demand = 1}, keep()); }));
  ASSERT_FALSE(first.enqueue({.kv_demand = 1, .max_wait = 1h}, later, [](admission const&) {}));
  async_admit(context, first, {.kv_demand = 1, .max_wait = 1ms}, keep());
  clock.advance(1ms);
  context.run_for(10s);
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(AsyncDeadline, AContextForgetsQueuesThatItIsDoneWithAndNotTooEarly) {
  kvlane::test::scripted_executor const executor{context};
  std::deque<kvlane::admission_queue> queues(100);
  for (auto& q : queues) {
    auto running = q.try_admit({.kv_demand = 1});
    async_admit(executor, q, {.kv_demand = 1, .max_wait = 1h}, keep());
    running->release();
    // The timer has been stopped, and its last call is still to come, when the next queue is asked.
    kvlane::admission_queue next;
    async_admit(executor, next, {.kv_demand = 1}, keep());
    run_ready();
    outcomes.clear();
  }
  EXPECT_LT(executor.copies(), 20) << "there are still timers for queues that nobody waits in";
}

TEST_F(AsyncDeadline, WithAManualClockWaitsAreMeasuredByIt) {
  kvlane::manual_clock clock;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock> slow{
      {.lanes = 1}, {}, {}, clock};
  auto const running = slow.try_admit({.kv_demand = 1});
  async_admit(context, slow, {.kv_demand = 1, .max_wait = 2ms}, keep());
  // Real time alone changes nothing: the timer rings, finds nobody overdue, and is set again.
  context.run_one();
  EXPECT_TRUE(outcomes.empty());
  clock.advance(2ms);
  context.run();
  EXPECT_EQ(refusal(), errc::timed_out);
}

TEST_F(AsyncDeadline, TheTimerExpiresWhoeverIsOverdue) {
  auto const running = take();
  kvlane::ticket place;
  bool told = false;
  auto const now = queue.enqueue({.kv_demand = 1, .max_wait = 1ms}, place, [&](admission const& a) {
    EXPECT_EQ(refused(a), errc::timed_out);
    told = true;
  });
  ASSERT_FALSE(now);
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 2ms}, keep());
  context.run();
  EXPECT_TRUE(told);
}

}  // namespace
