// Deadlines, the clock, and what happens when both ends of a wait come together.

#include "support/counting_clock.hpp"
#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <optional>

namespace {

using kvlane::duration;
using kvlane::errc;
using kvlane::limits;
using kvlane::time_point;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueTime : public kvlane::test::queue_fixture<> {};

TEST_F(QueueTime, AWaiterIsRefusedAtItsDeadlineAndNotBefore) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 10ms});
  advance(10ms - 1ns);
  EXPECT_EQ(queue().expire(), 0U);
  EXPECT_TRUE(waiter.waits());
  advance(1ns);
  EXPECT_EQ(queue().expire(), 1U);
  ASSERT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(waiter.why().waited(), 10ms);
  EXPECT_EQ(waiter.why().message(), "timed out after 10 ms in line (limit 10 ms), waiting for a lane");
}

TEST_F(QueueTime, ADeadlineWinsOverALaneThatIsFreedAtTheSameMoment) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 10ms});
  advance(10ms);
  running.finish();
  EXPECT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(QueueTime, TheEarlierOfWaitAndDeadlineCounts) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto const start = clock();
  send({.kv_demand = 1, .max_wait = 7s, .deadline = start + 9s});
  EXPECT_EQ(queue().next_deadline(), start + 7s);
  send({.kv_demand = 1, .max_wait = 8s, .deadline = start + 6s});
  EXPECT_EQ(queue().next_deadline(), start + 6s);
}

TEST_F(QueueTime, TheNextDeadlineIsThatOfWhoeverExpiresFirstAndGoesWithItsOwner) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
  auto const start = clock();
  send({.kv_demand = 1, .max_wait = 3s});
  auto& hasty = send({.kv_demand = 1, .max_wait = 1s});
  send({.kv_demand = 1});
  EXPECT_EQ(queue().next_deadline(), start + 1s);
  hasty.place = {};
  EXPECT_EQ(queue().next_deadline(), start + 3s);
}

TEST_F(QueueTime, ThoseWhoExpireTogetherAreToldByDeadlineAndThenByArrival) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1, .max_wait = 3s});
  send({.kv_demand = 1, .max_wait = 1s});
  send({.kv_demand = 1, .priority = 5, .max_wait = 3s});
  send({.kv_demand = 1, .max_wait = 1s});
  advance(5s);
  EXPECT_EQ(queue().expire(), 4U);
  EXPECT_THAT(told, ElementsAre(3U, 5U, 2U, 4U));
}

TEST_F(QueueTime, ThoseWhoExpireAreToldBeforeThoseWhoAreAdmittedInTheSameEvent) {
  open({.lanes = 2});
  auto& first = send({.kv_demand = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1, .max_wait = 1s});
  advance(1s);
  first.finish();
  EXPECT_THAT(told, ElementsAre(4U, 3U));
}

TEST_F(QueueTime, WhenAnExpiryMakesRoomItsFollowersAreAdmittedAtOnce) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  send({.kv_demand = 10, .max_wait = 1s});
  auto& follower = send({.kv_demand = 4});
  EXPECT_TRUE(follower.waits());
  advance(1s);
  EXPECT_EQ(queue().expire(), 1U);
  EXPECT_TRUE(follower.runs());
}

TEST_F(QueueTime, EveryEventExpiresThoseWhoAreOverdue) {
  auto const overdue_after = [this](auto const& event) {
    open({.lanes = 1, .kv_capacity = 10});
    auto& running = send({.kv_demand = 2});
    auto& waiter = send({.kv_demand = 2, .max_wait = 1s});
    auto& other = send({.kv_demand = 2});
    advance(1s);
    event(running, other);
    EXPECT_EQ(waiter.refused(), errc::timed_out);
    if (running.runs()) running.finish();
    if (other.runs()) other.finish();
  };
  using kvlane::test::client;
  overdue_after([this](client&, client&) { try_send({.kv_demand = 1}); });
  overdue_after([this](client&, client&) { send({.kv_demand = 1}).place = {}; });
  overdue_after([](client& running, client&) { running.finish(); });
  overdue_after([](client& running, client&) { running.lease().shrink_to(1); });
  overdue_after([](client& running, client&) { EXPECT_TRUE(running.lease().try_grow_to(3)); });
  overdue_after([](client&, client& other) { other.place = {}; });
  overdue_after([](client&, client& other) { other.place.set_saved_cost(1); });
  overdue_after([this](client&, client&) { queue().update([](limits&) {}); });
  overdue_after([this](client&, client&) { queue().drain(); });
  overdue_after([this](client&, client&) { queue().close(); });
  overdue_after([this](client&, client&) { queue().hold_dispatch().release(); });
  overdue_after([this](client& running, client&) { readmit(running, {.kv_demand = 2}); });
}

TEST_F(QueueTime, AClockThatGoesBackStandsStill) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 10s});
  advance(4s);
  queue().expire();
  advance(-2h);
  EXPECT_EQ(queue().expire(), 0U);
  auto& later = send({.kv_demand = 1, .max_wait = 10s});
  EXPECT_EQ(later.place.info()->waited, 0ms);
  EXPECT_EQ(waiter.place.info()->waited, 4s);
  running.finish();
  ASSERT_TRUE(waiter.runs());
  EXPECT_EQ(waiter.lease().waited(), 4s);
}

TEST_F(QueueTime, AClockThatJumpsAheadExpiresEverybodyAndLosesNothing) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  for (int i = 1; i < 10; ++i) send({.kv_demand = 1, .max_wait = i * 1h});
  auto& patient = send({.kv_demand = 1});
  advance(100'000h);
  EXPECT_EQ(queue().expire(), 9U);
  running.finish();
  EXPECT_TRUE(patient.runs());
}

TEST_F(QueueTime, AWaitThatReachesBeyondTheEndOfTimeHasNoDeadline) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& a = send({.kv_demand = 1, .max_wait = kvlane::forever});
  auto& b = send({.kv_demand = 1, .max_wait = kvlane::forever - 1ns});
  auto& c = send({.kv_demand = 1, .deadline = time_point::max()});
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
  clock.set(time_point::max() - 1ns);
  EXPECT_EQ(queue().expire(), 0U);
  EXPECT_TRUE(a.waits() && b.waits() && c.waits());
}

TEST_F(QueueTime, AWaitOfLessThanNothingSaturatesToo) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = duration::min()}).refused(), errc::would_wait);
  EXPECT_EQ(send({.kv_demand = 1, .deadline = time_point::min()}).refused(), errc::would_wait);
  clock.set(time_point::min() + 1ns);
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = duration::min()}).refused(), errc::would_wait);
}

TEST_F(QueueTime, AWaiterKeepsItsDeadlineWhenTheDefaultChanges) {
  open({.lanes = 1, .max_wait = 10s});
  send({.kv_demand = 1});
  auto const start = clock();
  send({.kv_demand = 1});
  queue().update([](limits& l) { l.max_wait = 1s; });
  EXPECT_EQ(queue().next_deadline(), start + 10s);
}

// -- how often the clock is read

class QueueClockReads
    : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::null_observer, kvlane::test::counting_clock> {};

TEST_F(QueueClockReads, WithNobodyWaitingNothingReadsTheClock) {
  open({.lanes = 2, .kv_capacity = 100});
  auto& a = send({.kv_demand = 10, .max_wait = 1s});
  auto& b = try_send({.kv_demand = 10, .deadline = time_point{}});
  EXPECT_TRUE(a.runs() && b.runs());
  EXPECT_EQ(try_send({.kv_demand = 1}).refused(), errc::would_wait);
  EXPECT_EQ(send({.kv_demand = 101}).refused(), errc::never_fits);
  EXPECT_TRUE(a.lease().try_grow_to(20));
  a.lease().shrink_to(5);
  queue().hold_dispatch().release();
  queue().update([](limits& l) { l.lanes = 3; });
  queue().drain();
  queue().reopen();
  EXPECT_EQ(queue().expire(), 0U);
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
  a.finish();
  b.lease().complete({.prompt_tokens = 1, .prefill = 1ms});
  EXPECT_EQ(clock.take_reads(), 0U);
}

TEST_F(QueueClockReads, AnEventReadsTheClockOnceHoweverManyAreAdmittedOrExpire) {
  open({.lanes = 1, .max_waiting = 200});
  auto& running = send({.kv_demand = 1});
  for (int i = 0; i < 50; ++i) send({.kv_demand = 1, .max_wait = 1s});
  for (int i = 0; i < 50; ++i) send({.kv_demand = 1});
  (void)clock.take_reads();
  clock.advance(1s);
  queue().expire();
  EXPECT_EQ(clock.take_reads(), 1U);
  queue().update([](limits& l) { l.lanes = 51; });
  EXPECT_EQ(clock.take_reads(), 1U);
  running.finish();
  EXPECT_EQ(admitted.size(), 51U);
}

}  // namespace
