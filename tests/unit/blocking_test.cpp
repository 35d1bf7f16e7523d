// Threads that wait for their admission. Nobody sleeps: a test knows that somebody waits by asking the queue.

#include "support/queue_fixture.hpp"

#include <kvlane/blocking.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::admit;
using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using kvlane::pending_admission;
using kvlane::wait_idle;
using kvlane::test::refused;
using namespace std::chrono_literals;

/// A queue with the real clock.
class Blocking : public testing::Test {
 protected:
  kvlane::admission_queue queue{{.lanes = 1, .max_waiting = 100}};

  [[nodiscard]] lease take() { return std::move(*queue.try_admit({.kv_demand = 1})); }
  void until_waiting(std::uint64_t so_many) const {
    while (queue.snapshot().waiting != so_many) std::this_thread::yield();
  }
  void TearDown() override { kvlane::test::expect_nothing_left(queue); }
};

// -- admit with a stop token

TEST_F(Blocking, AFreeLaneIsHandedOutAtOnce) {
  auto const a = admit(queue, {.kv_demand = 1, .tag = 4});
  ASSERT_TRUE(a);
  EXPECT_EQ(a->tag(), 4U);
}

TEST_F(Blocking, ARefusalComesBackAtOnce) {
  EXPECT_EQ(refused(admit(queue, {.kv_demand = 1'000'000})), errc::never_fits);
  auto const running = take();
  EXPECT_EQ(refused(admit(queue, {.kv_demand = 1, .max_wait = 0s})), errc::would_wait);
}

TEST_F(Blocking, AThreadWaitsForALaneAndGetsItFromTheOneThatReleasesIt) {
  auto running = take();
  std::optional<admission> outcome;
  std::thread waiter{[&] { outcome = admit(queue, {.kv_demand = 1}); }};
  until_waiting(1);
  running.release();
  waiter.join();
  EXPECT_TRUE(outcome && *outcome);
}

TEST_F(Blocking, ManyThreadsAreServedOneAfterTheOther) {
  auto running = take();
  std::atomic<int> inside{0};
  std::atomic<int> served{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i)
    waiters.emplace_back([&] {
      auto const slot = admit(queue, {.kv_demand = 1});
      EXPECT_EQ(++inside, 1);
      served += slot ? 1 : 0;
      --inside;
    });
  until_waiting(8);
  running.release();
  for (auto& t : waiters) t.join();
  EXPECT_EQ(served, 8);
}

TEST_F(Blocking, AStopThatWasRequestedBeforeMeansThatNothingIsAsked) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(refused(admit(queue, {.kv_demand = 1, .tag = 9}, stop.get_token())), errc::cancelled);
  EXPECT_EQ(queue.snapshot().counters.admitted, 0U);
}

TEST_F(Blocking, AStopWhileItWaitsTakesItOutOfLine) {
  auto const running = take();
  std::stop_source stop;
  std::optional<admission> outcome;
  std::thread waiter{[&] { outcome = admit(queue, {.kv_demand = 1, .tag = 9}, stop.get_token()); }};
  until_waiting(1);
  stop.request_stop();
  waiter.join();
  ASSERT_EQ(refused(*outcome), errc::cancelled);
  EXPECT_EQ(outcome->error().tag(), 9U);
  EXPECT_EQ(queue.snapshot().counters.cancelled, 1U);
}

TEST_F(Blocking, AStopAfterTheAdmissionChangesNothing) {
  std::stop_source stop;
  auto const slot = admit(queue, {.kv_demand = 1}, stop.get_token());
  stop.request_stop();
  EXPECT_TRUE(slot && *slot);
}

TEST_F(Blocking, AStopThatRacesWithTheLaneHasOneOutcomeAndLosesNoLane) {
  for (int round = 0; round < 300; ++round) {
    auto running = take();
    std::stop_source stop;
    std::optional<admission> outcome;
    std::thread waiter{[&] { outcome = admit(queue, {.kv_demand = 1}, stop.get_token()); }};
    until_waiting(1);
    std::thread stopper{[&] { stop.request_stop(); }};
    running.release();
    stopper.join();
    waiter.join();
    EXPECT_TRUE(*outcome || outcome->error().code() == errc::cancelled);
    outcome.reset();
    ASSERT_EQ(queue.snapshot().lanes_busy, 0U) << round;
  }
}

TEST_F(Blocking, AStopMayAdmitTheNextInLineFromInsideRequestStop) {
  kvlane::admission_queue wide{{.lanes = 3, .kv_capacity = 10, .max_overtakes = 0}};
  auto const running = wide.try_admit({.kv_demand = 6});
  std::stop_source stop;
  std::thread head{[&] { EXPECT_EQ(refused(admit(wide, {.kv_demand = 10}, stop.get_token())), errc::cancelled); }};
  while (wide.snapshot().waiting != 1) std::this_thread::yield();
  kvlane::ticket place;
  std::thread::id told_on;
  ASSERT_FALSE(wide.enqueue({.kv_demand = 4}, place, [&](admission) { told_on = std::this_thread::get_id(); }));
  stop.request_stop();
  head.join();
  EXPECT_EQ(told_on, std::this_thread::get_id());
}

TEST_F(Blocking, ADeadlineEndsTheWaitWithoutAnybodysHelp) {
  auto const running = take();
  auto const start = std::chrono::steady_clock::now();
  auto const a = admit(queue, {.kv_demand = 1, .max_wait = 5ms});
  EXPECT_EQ(refused(a), errc::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
  EXPECT_GE(a.error().waited(), 5ms);
}

TEST_F(Blocking, ClosingAnswersThoseWhoBlock) {
  auto const running = take();
  std::optional<admission> outcome;
  std::thread waiter{[&] { outcome = admit(queue, {.kv_demand = 1}); }};
  until_waiting(1);
  queue.close();
  waiter.join();
  EXPECT_EQ(refused(*outcome), errc::shutting_down);
}

// -- admit for clients that are polled

TEST_F(Blocking, AClientThatHasGoneLeavesTheLine) {
  auto const running = take();
  int asked = 0;
  auto const a = admit(queue, {.kv_demand = 1}, [&] { return ++asked == 3; }, 1ms);
  EXPECT_EQ(refused(a), errc::cancelled);
  EXPECT_EQ(asked, 3);
}

TEST_F(Blocking, AClientIsNotAskedWhenThereIsNothingToWaitFor) {
  auto const never = [] {
    ADD_FAILURE();
    return true;
  };
  EXPECT_TRUE(admit(queue, {.kv_demand = 1}, never, 1ms));
}

TEST_F(Blocking, AClientThatStaysIsServed) {
  auto running = take();
  int asked = 0;
  auto const stays = [&] {
    if (++asked == 2) running.release();
    return false;
  };
  EXPECT_TRUE(admit(queue, {.kv_demand = 1}, stays, 1ms));
}

TEST_F(Blocking, AClientIsNotAskedMoreOftenThanEveryMillisecond) {
  auto const running = take();
  auto const start = std::chrono::steady_clock::now();
  int asked = 0;
  (void)admit(queue, {.kv_demand = 1}, [&] { return ++asked == 4; }, 0ns);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 4ms);
}

TEST_F(Blocking, ADeadlineComesBeforeAClientThatIsPolledSeldom) {
  auto const running = take();
  auto const a = admit(queue, {.kv_demand = 1, .max_wait = 3ms}, [] { return false; }, 1h);
  EXPECT_EQ(refused(a), errc::timed_out);
}

TEST_F(Blocking, AServerThatStopsNeedNotWaitForThePollOfAClient) {
  auto const running = take();
  std::stop_source stop;
  std::thread stopping{[&] {
    until_waiting(1);
    stop.request_stop();
  }};
  EXPECT_EQ(refused(admit(queue, {.kv_demand = 1}, [] { return false; }, 1h, stop.get_token())), errc::cancelled);
  stopping.join();
  EXPECT_EQ(refused(admit(queue, {.kv_demand = 1}, [] { return false; }, 1h, stop.get_token())), errc::cancelled);
}

TEST_F(Blocking, AnExceptionOutOfThePollLeavesTheLine) {
  auto const running = take();
  EXPECT_THROW((void)admit(
                   queue, {.kv_demand = 1}, []() -> bool { throw std::runtime_error{"the socket is gone"}; }, 1ms),
               std::runtime_error);
  EXPECT_EQ(queue.snapshot().waiting, 0U);
}

// -- pending_admission

TEST_F(Blocking, APendingAdmissionStartsWhenItIsMade) {
  auto running = take();
  pending_admission pending{queue, {.kv_demand = 1}};
  EXPECT_EQ(queue.snapshot().waiting, 1U);
  EXPECT_FALSE(pending.wait_for(0ms));
  EXPECT_FALSE(pending.wait_for(-5ms));
  running.release();
  EXPECT_TRUE(pending.wait_for(0ms));
  EXPECT_TRUE(pending.take());
}

TEST_F(Blocking, WhoeverOnlyLooksInTimesOutToo) {
  auto const running = take();
  pending_admission pending{queue, {.kv_demand = 1, .max_wait = 2ms}};
  while (!pending.wait_for(0ms)) std::this_thread::yield();
  EXPECT_EQ(refused(pending.take()), errc::timed_out);
}

TEST_F(Blocking, AnOutcomeIsTakenOnce) {
  pending_admission pending{queue, {.kv_demand = 1}};
  auto const a = pending.take();
  EXPECT_TRUE(a);
  auto const again = pending.take();
  ASSERT_EQ(refused(again), errc::invalid_request);
  EXPECT_EQ(again.error().message(), "no request was made");
}

TEST_F(Blocking, CancellingAPendingAdmissionIsTrueOnceAndThenTheOutcomeIsCancelled) {
  auto const running = take();
  pending_admission pending{queue, {.kv_demand = 1}};
  EXPECT_TRUE(pending.cancel());
  EXPECT_FALSE(pending.cancel());
  EXPECT_EQ(refused(pending.take()), errc::cancelled);
}

TEST_F(Blocking, CancellingAfterAnOutcomeIsFalseAndTheOutcomeStays) {
  pending_admission pending{queue, {.kv_demand = 1}};
  EXPECT_FALSE(pending.cancel());
  EXPECT_TRUE(pending.take());
}

TEST_F(Blocking, APendingAdmissionThatIsDestroyedLeavesTheLine) {
  auto const running = take();
  {
    pending_admission const pending{queue, {.kv_demand = 1}};
  }
  EXPECT_EQ(queue.snapshot().waiting, 0U);
}

TEST_F(Blocking, APendingAdmissionThatIsDestroyedWithItsLeaseInItGivesItBack) {
  auto running = take();
  {
    pending_admission const pending{queue, {.kv_demand = 1}};
    running.release();
    EXPECT_EQ(queue.snapshot().lanes_busy, 1U);
  }
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
}

/// A delivery that takes as long as a test wants, in the place of one that only passes an outcome on.
struct slow_delivery {
  using is_shell_completion = void;
  void operator()(admission) const noexcept {
    begun->count_down();
    go_on->wait();
  }
  std::latch* begun;
  std::latch* go_on;
};

TEST_F(Blocking, APendingAdmissionThatIsDestroyedWaitsForAnOutcomeThatIsOnItsWay) {
  queue.update([](limits& l) { l.lanes = 0; });
  std::latch begun{1};
  std::latch go_on{1};
  kvlane::ticket place;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, place, slow_delivery{&begun, &go_on}));
  auto pending = std::make_unique<pending_admission<kvlane::admission_queue>>(queue, kvlane::request{.kv_demand = 1});
  std::thread granter{[&] { queue.update([](limits& l) { l.lanes = 2; }); }};
  begun.wait();
  EXPECT_FALSE(pending->cancel()) << "it has been admitted, though it has not been told yet";
  std::atomic<bool> destroyed{false};
  std::thread destroyer{[&] {
    pending.reset();
    destroyed = true;
  }};
  for (int i = 0; i < 2'000 && !destroyed; ++i) std::this_thread::yield();
  EXPECT_FALSE(destroyed);
  go_on.count_down();
  destroyer.join();
  granter.join();
}

TEST_F(Blocking, WithAManualClockTheDeadlineIsTheClocks) {
  using queue_type =
      kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock>;
  kvlane::manual_clock clock;
  queue_type manual{{.lanes = 1}, kvlane::cache_aware{}, {}, clock};
  auto const running = manual.try_admit({.kv_demand = 1});
  pending_admission pending{manual, {.kv_demand = 1, .max_wait = 1h}};
  EXPECT_FALSE(pending.wait_for(1ms));
  clock.advance(1h);
  EXPECT_TRUE(pending.wait_for(0ms)) << "it looks at the clock itself";
  EXPECT_EQ(refused(pending.take()), errc::timed_out);
}

// -- wait_idle

TEST_F(Blocking, AnIdleQueueIsIdleAtOnce) {
  EXPECT_TRUE(wait_idle(queue, std::chrono::steady_clock::now()));
  EXPECT_TRUE(wait_idle(queue, kvlane::time_point::max()));
}

TEST_F(Blocking, ABusyQueueIsNotIdleAtTheTimePoint) {
  auto const running = take();
  EXPECT_FALSE(wait_idle(queue, std::chrono::steady_clock::now() + 2ms));
  EXPECT_FALSE(wait_idle(queue, kvlane::time_point::min()));
}

TEST_F(Blocking, TheLastLeaseThatGoesBackEndsTheWaitForIdle) {
  auto running = take();
  kvlane::ticket place;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, place, [](admission) {}));
  queue.drain();
  std::atomic<bool> idle{false};
  std::thread waiter{[&] { idle = wait_idle(queue, kvlane::time_point::max()); }};
  EXPECT_FALSE(idle);
  running.release();
  waiter.join();
  EXPECT_TRUE(idle);
  queue.reopen();
}

TEST_F(Blocking, TheLastWaiterThatLeavesEndsTheWaitForIdle) {
  queue.update([](limits& l) { l.lanes = 0; });
  kvlane::ticket place;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, place, [](admission) {}));
  std::atomic<bool> idle{false};
  std::thread waiter{[&] { idle = wait_idle(queue, kvlane::time_point::max()); }};
  place.cancel();
  waiter.join();
  EXPECT_TRUE(idle);
}

TEST_F(Blocking, SeveralMayWaitForIdle) {
  auto running = take();
  std::atomic<int> told{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&] { told += wait_idle(queue, kvlane::time_point::max()) ? 1 : 0; });
  running.release();
  for (auto& t : waiters) t.join();
  EXPECT_EQ(told, 4);
}

}  // namespace
