// Turns, and the bound on overtaking: who is counted as overtaken, who is due, and what a due waiter holds back.

#include "support/instrumented_policy.hpp"
#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using kvlane::blocked_on;
using kvlane::errc;
using kvlane::limits;
using kvlane::test::client;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueOvertaking : public kvlane::test::queue_fixture<kvlane::test::instrumented<kvlane::cache_aware>> {
 protected:
  [[nodiscard]] std::uint64_t turn() { return queue().snapshot().turn; }
  [[nodiscard]] std::uint32_t overtaken(client const& c) { return c.place.info()->overtaken; }
  /// Somebody small comes, is admitted past the line, and goes again.
  void pass(std::uint32_t priority = 0) {
    auto& c = send({.kv_demand = 1, .priority = priority});
    ASSERT_TRUE(c.runs());
    c.finish();
  }
};

// -- turns

TEST_F(QueueOvertaking, TheFastPathOfAnEmptyLineIsNoTurnAndNoBusinessOfThePolicy) {
  open();
  send({.kv_demand = 1}).finish();
  EXPECT_EQ(turn(), 0U);
  EXPECT_EQ(policy.gauges().take_calls(), 0U);
}

TEST_F(QueueOvertaking, AnAdmissionOutOfTheLineIsATurnAlsoWhenItEmptiesTheLine) {
  open();
  auto& running = send({.kv_demand = 1});
  send({.kv_demand = 1});
  running.finish();
  EXPECT_EQ(turn(), 1U);
}

TEST_F(QueueOvertaking, ANewcomerThatPassesWaitersIsATurnAndThePolicySeesItComeAndGo) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  send({.kv_demand = 10});
  (void)policy.gauges().take_calls();
  pass();
  EXPECT_EQ(turn(), 1U);
  EXPECT_EQ(policy.gauges().inserts, 1U);
  EXPECT_EQ(policy.gauges().erases, 1U);
}

TEST_F(QueueOvertaking, ThoseWhoLeaveWithoutALeaseAreNoTurn) {
  open();
  send({.kv_demand = 1});
  send({.kv_demand = 1}).place = {};
  send({.kv_demand = 1, .max_wait = 1s});
  advance(1s);
  queue().expire();
  EXPECT_EQ(turn(), 0U);
}

// -- who is overtaken

TEST_F(QueueOvertaking, OnlyLaterRequestsOfTheSameOrLowerPriorityOvertake) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  auto& low = send({.kv_demand = 10, .priority = 1});
  auto& middle = send({.kv_demand = 10, .priority = 2});
  auto& high = send({.kv_demand = 10, .priority = 3});
  pass(2);
  EXPECT_EQ(overtaken(low), 0U) << "a higher priority goes first by right";
  EXPECT_EQ(overtaken(middle), 1U);
  EXPECT_EQ(overtaken(high), 1U);
  pass(0);
  EXPECT_EQ(overtaken(low), 1U);
  EXPECT_EQ(overtaken(middle), 2U);
  EXPECT_EQ(overtaken(high), 2U);
  pass(15);
  EXPECT_EQ(overtaken(high), 2U);
}

TEST_F(QueueOvertaking, AnOlderRequestThatIsAdmittedFirstOvertakesNobody) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& running = send({.kv_demand = 10});
  send({.kv_demand = 5});
  auto& second = send({.kv_demand = 10});
  running.finish();
  EXPECT_EQ(overtaken(second), 0U);
}

TEST_F(QueueOvertaking, ARequestThatIsAdmittedFromTheMiddleOvertakesTheOlderOnesOnly) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& a = send({.kv_demand = 1});
  auto& b = send({.kv_demand = 1});
  auto& hot = send({.kv_demand = 1, .saved_cost = 1'000'000});
  auto& d = send({.kv_demand = 1});
  running.finish();
  ASSERT_TRUE(hot.runs());
  EXPECT_EQ(overtaken(a), 1U);
  EXPECT_EQ(overtaken(b), 1U);
  EXPECT_EQ(overtaken(d), 0U);
  hot.finish();
  ASSERT_TRUE(a.runs());
  EXPECT_EQ(a.lease().overtaken(), 1U);
  EXPECT_EQ(overtaken(b), 1U);
}

TEST_F(QueueOvertaking, GrowthIsNoOvertaking) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& running = send({.kv_demand = 5});
  auto& waiter = send({.kv_demand = 6});
  EXPECT_TRUE(running.lease().try_grow_to(10));
  EXPECT_EQ(overtaken(waiter), 0U);
}

TEST_F(QueueOvertaking, CountsStayWithTheirOwnersWhenOthersLeave) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  auto& a = send({.kv_demand = 10});
  pass();
  auto& b = send({.kv_demand = 10});
  pass();
  auto& c = send({.kv_demand = 10});
  pass();
  b.place = {};
  EXPECT_EQ(overtaken(a), 3U);
  EXPECT_EQ(overtaken(c), 1U);
  a.place = {};
  EXPECT_EQ(overtaken(c), 1U);
}

// -- who is due

TEST_F(QueueOvertaking, WithABoundOfNothingTheLineIsAQueue) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 5});
  send({.kv_demand = 10});
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
  EXPECT_EQ(try_send({.kv_demand = 1}).refused(), errc::would_wait);
}

TEST_F(QueueOvertaking, WhenAWaiterIsDueNobodyOfItsPriorityOrBelowIsAdmittedAndRunningWorkDrainsTowardsIt) {
  open({.lanes = 4, .kv_capacity = 10, .max_overtakes = 2});
  auto& running = send({.kv_demand = 4, .priority = 5});
  auto& due = send({.kv_demand = 10, .priority = 5});
  pass(5);
  pass(5);
  auto& same = send({.kv_demand = 1, .priority = 5});
  auto& lower = send({.kv_demand = 1, .priority = 1});
  EXPECT_TRUE(same.waits());
  EXPECT_TRUE(lower.waits());
  EXPECT_EQ(same.place.info()->blocked, blocked_on::reservation);
  EXPECT_EQ(due.place.info()->blocked, blocked_on::tokens);
  running.finish();
  EXPECT_TRUE(due.runs());
  due.finish();
  EXPECT_TRUE(same.runs() && lower.runs());
}

TEST_F(QueueOvertaking, HigherPrioritiesGoOnPastADueWaiter) {
  open({.lanes = 4, .kv_capacity = 10, .max_overtakes = 1});
  send({.kv_demand = 4, .priority = 5});
  auto& due = send({.kv_demand = 10, .priority = 5});
  pass(5);
  pass(6);
  auto& high = try_send({.kv_demand = 6, .priority = 6});
  EXPECT_TRUE(high.runs());
  auto& waits_above = send({.kv_demand = 1, .priority = 7});
  EXPECT_TRUE(waits_above.waits()) << "no tokens are left";
  high.finish();
  EXPECT_TRUE(waits_above.runs());
  EXPECT_EQ(overtaken(due), 1U);
}

TEST_F(QueueOvertaking, OlderWaitersOfLowerPriorityWaitForADueOneToo) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 1});
  auto& running = send({.kv_demand = 8});
  auto& older = send({.kv_demand = 3, .priority = 0});
  auto& due = send({.kv_demand = 9, .priority = 1});
  pass(1);
  running.lease().shrink_to(5);
  EXPECT_TRUE(older.waits()) << "it would fit, but 5 tokens drain towards the due one";
  running.lease().shrink_to(1);
  EXPECT_TRUE(due.runs());
  EXPECT_TRUE(older.waits());
}

TEST_F(QueueOvertaking, OfSeveralDueWaitersTheOneOfTheHighestPriorityHoldsBackTheOthers) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 1});
  auto& running = send({.kv_demand = 9});
  auto& low = send({.kv_demand = 4, .priority = 1});
  auto& high = send({.kv_demand = 7, .priority = 4});
  pass(0);
  running.lease().shrink_to(5);
  EXPECT_TRUE(low.waits()) << "it is due and fits, and waits for the one above";
  EXPECT_EQ(low.place.info()->blocked, blocked_on::reservation);
  running.finish();
  EXPECT_TRUE(high.runs());
  EXPECT_TRUE(low.waits());
  high.finish();
  EXPECT_TRUE(low.runs());
}

TEST_F(QueueOvertaking, ADueWaiterGoesBeforeThePolicysFavourite) {
  open({.lanes = 1, .max_overtakes = 1});
  auto& running = send({.kv_demand = 1});
  auto& old = send({.kv_demand = 1});
  auto& hot = send({.kv_demand = 1, .saved_cost = 1'000'000});
  auto& hotter = send({.kv_demand = 1, .saved_cost = 2'000'000});
  running.finish();
  ASSERT_TRUE(hotter.runs());
  hotter.finish();
  EXPECT_TRUE(old.runs());
  EXPECT_TRUE(hot.waits());
}

TEST_F(QueueOvertaking, WhenADueWaiterLeavesThoseItHeldBackAreAdmittedAtOnce) {
  open({.lanes = 4, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 5});
  auto& due = send({.kv_demand = 10});
  auto& b = send({.kv_demand = 2});
  auto& c = send({.kv_demand = 2});
  EXPECT_TRUE(due.place.cancel());
  EXPECT_TRUE(b.runs() && c.runs());
}

TEST_F(QueueOvertaking, ALowerBoundMakesWaitersDueAtOnceAndAHigherOneLetsTheLineMoveAtOnce) {
  open({.lanes = 4, .kv_capacity = 10});
  send({.kv_demand = 5});
  send({.kv_demand = 10});
  pass();
  pass();
  queue().update([](limits& l) { l.max_overtakes = 2; });
  auto& held_back = send({.kv_demand = 1});
  EXPECT_TRUE(held_back.waits());
  queue().update([](limits& l) { l.max_overtakes = 3; });
  EXPECT_TRUE(held_back.runs());
  EXPECT_TRUE(send({.kv_demand = 1}).waits()) << "three are enough";
}

TEST_F(QueueOvertaking, ARefusalBecauseOfAReservationSaysSo) {
  open({.lanes = 2, .kv_capacity = 10, .max_waiting = 1, .max_overtakes = 0});
  send({.kv_demand = 5});
  send({.kv_demand = 10});
  auto& c = send({.kv_demand = 1});
  ASSERT_EQ(c.refused(), errc::queue_full);
  EXPECT_EQ(c.why().blocked(), blocked_on::reservation);
}

// -- the theorem, as numbers

/// Random traffic. Whoever's count has reached the bound in force must never be overtaken again.
class OvertakingBound : public QueueOvertaking, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(OvertakingBound, IsNeverExceededInRandomTraffic) {
  auto const bound = GetParam();
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message{} << "seed " << seed);
    std::mt19937 random{seed};
    auto const below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    open({.lanes = 4, .kv_capacity = 20, .max_waiting = 30, .max_overtakes = bound});
    std::vector<client*> mine;
    std::uint32_t most_seen = 0;
    for (int step = 0; step < 400; ++step) {
      auto const with_lease = [](client const* c) { return c->runs(); };
      auto const with_place = [](client const* c) { return c->waits(); };
      switch (below(4)) {
        case 0:
        case 1:
          mine.push_back(&send({.kv_demand = 1 + below(20), .priority = below(3), .saved_cost = below(3) * 50'000U}));
          break;
        case 2:
          if (auto const running = std::ranges::find_if(mine, with_lease); running != mine.end()) (*running)->finish();
          break;
        default:
          if (auto const waiting = std::ranges::find_if(mine, with_place); waiting != mine.end() && below(4) == 0)
            (*waiting)->place = {};
      }
      std::erase_if(mine, [](client const* c) { return !c->waits() && !c->runs(); });
      auto const line = queue().waiters(100);
      for (auto const& w : line) most_seen = std::max(most_seen, w.overtaken);
    }
    EXPECT_LE(most_seen, bound);
    EXPECT_TRUE(bound > 4 || most_seen == bound) << "the traffic did not even come near the bound";
    for (auto* const c : mine) c->place = {};
    for (auto* const c : mine) {
      if (c->runs()) c->finish();
    }
    auto const overtakes = queue().snapshot().overtakes;
    for (std::size_t bucket = 0; bucket < overtakes.counts().size(); ++bucket)
      EXPECT_TRUE(bucket == 0 || overtakes.upper_bound(bucket - 1) < bound || overtakes.counts()[bucket] == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Bounds, OvertakingBound, testing::Values(0U, 1U, 2U, 4U, 32U));

}  // namespace
