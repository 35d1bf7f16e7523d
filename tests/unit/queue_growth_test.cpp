// Leases that grow and shrink, and the tokens that are kept free for them.

#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <utility>

namespace {

using kvlane::blocked_on;
using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using namespace std::chrono_literals;

class QueueGrowth : public kvlane::test::queue_fixture<> {};

TEST_F(QueueGrowth, FreeTokensGoToAGrowingLeaseAheadOfEveryWaiter) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  auto& running = send({.kv_demand = 6});
  auto& waiter = send({.kv_demand = 5, .priority = 15});
  EXPECT_TRUE(running.lease().try_grow_to(10));
  EXPECT_EQ(running.lease().tokens(), 10U);
  EXPECT_EQ(tokens_used(), 10U);
  EXPECT_TRUE(waiter.waits());
}

TEST_F(QueueGrowth, WhenTooFewAreFreeItSaysNoAndKeepsWhatItHas) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& a = send({.kv_demand = 6});
  send({.kv_demand = 3});
  EXPECT_FALSE(a.lease().try_grow_to(8));
  EXPECT_EQ(a.lease().tokens(), 6U);
  EXPECT_TRUE(a.lease().try_grow_to(7));
  EXPECT_EQ(queue().snapshot().counters.grown, 1U);
  EXPECT_EQ(queue().snapshot().counters.growth_refused, 1U);
}

TEST_F(QueueGrowth, GoesOnWhileTheQueueDrainsIsHeldOrHasClosed) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& running = send({.kv_demand = 1});
  queue().drain();
  EXPECT_TRUE(running.lease().try_grow_to(2));
  auto const hold = queue().hold_dispatch();
  EXPECT_TRUE(running.lease().try_grow_to(3));
  queue().close();
  EXPECT_TRUE(running.lease().try_grow_to(4));
}

TEST_F(QueueGrowth, TotalsAreRoundedUpToBlocks) {
  open({.lanes = 2, .kv_capacity = 100, .block_tokens = 16});
  auto& running = send({.kv_demand = 1});
  EXPECT_EQ(running.lease().tokens(), 16U);
  EXPECT_TRUE(running.lease().try_grow_to(17));
  EXPECT_EQ(running.lease().tokens(), 32U);
  EXPECT_TRUE(running.lease().try_grow_to(30));
  EXPECT_EQ(running.lease().tokens(), 32U);
  running.lease().shrink_to(17);
  EXPECT_EQ(running.lease().tokens(), 32U);
  running.lease().shrink_to(16);
  EXPECT_EQ(running.lease().tokens(), 16U);
}

TEST_F(QueueGrowth, GrowingToLessAndShrinkingToMoreDoNothingAndSayYes) {
  open({.lanes = 1, .kv_capacity = 10});
  auto& running = send({.kv_demand = 6});
  EXPECT_TRUE(running.lease().try_grow_to(2));
  EXPECT_TRUE(running.lease().try_grow_to(6));
  EXPECT_TRUE(running.lease().shrink_to(9));
  EXPECT_TRUE(running.lease().shrink_to(6));
  EXPECT_EQ(running.lease().tokens(), 6U);
}

TEST_F(QueueGrowth, ALeaseMayShrinkToNothingAndKeepItsLane) {
  open({.lanes = 1, .kv_capacity = 10});
  auto& running = send({.kv_demand = 6});
  EXPECT_TRUE(running.lease().shrink_to(0));
  EXPECT_EQ(tokens_used(), 0U);
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_TRUE(running.lease().try_grow_to(10));
}

TEST_F(QueueGrowth, WhatShrinkingFreesIsHandedOverAtOnce) {
  open({.lanes = 3, .kv_capacity = 10});
  auto& running = send({.kv_demand = 9});
  auto& a = send({.kv_demand = 4});
  auto& b = send({.kv_demand = 4});
  running.lease().shrink_to(2);
  EXPECT_TRUE(a.runs() && b.runs());
}

TEST_F(QueueGrowth, AnEmptyLeaseNeitherGrowsNorShrinks) {
  lease empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.try_grow_to(1));
  EXPECT_FALSE(empty.shrink_to(0));
  EXPECT_EQ(empty.tokens(), 0U);
  empty.release();
  empty.complete({});
  open();
}

TEST_F(QueueGrowth, ReleasingTwiceReleasesOnce) {
  open({.lanes = 2});
  auto& a = send({.kv_demand = 5});
  send({.kv_demand = 5});
  a.finish();
  a.finish();
  a.lease().complete({.prompt_tokens = 1, .prefill = 1ms});
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_EQ(queue().predicted_wait(), std::nullopt) << "nothing was learned from an empty lease";
}

TEST_F(QueueGrowth, ALeaseThatIsAssignedGivesBackWhatItHeld) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& a = send({.kv_demand = 5, .tag = 11});
  auto& b = send({.kv_demand = 5, .tag = 12});
  a.lease() = std::move(b.lease());
  EXPECT_EQ(a.lease().tag(), 12U);
  EXPECT_EQ(tokens_used(), 5U);
  auto& self = a.lease();
  a.lease() = std::move(self);
  EXPECT_TRUE(a.runs());
}

// -- the growth reserve

TEST_F(QueueGrowth, AdmissionsLeaveTheReserveFreeForLeasesThatGrow) {
  open({.lanes = 4, .kv_capacity = 100, .growth_reserve = 20});
  auto& running = send({.kv_demand = 50});
  auto& waiter = send({.kv_demand = 31});
  EXPECT_TRUE(waiter.waits());
  EXPECT_EQ(waiter.place.info()->blocked, blocked_on::tokens);
  EXPECT_TRUE(send({.kv_demand = 30}).runs());
  EXPECT_TRUE(running.lease().try_grow_to(70));
  EXPECT_EQ(tokens_used(), 100U);
}

TEST_F(QueueGrowth, ARefusalNamesWhatIsFreeAndWhatOfItIsReserved) {
  open({.lanes = 4, .kv_capacity = 100, .growth_reserve = 20});
  send({.kv_demand = 50});
  auto& c = try_send({.kv_demand = 31});
  ASSERT_EQ(c.refused(), errc::would_wait);
  EXPECT_EQ(c.why().free_tokens(), 50U);
  EXPECT_THAT(c.why().message(), testing::HasSubstr("asked 31, free 50 (20 of them kept for growth)"));
}

TEST_F(QueueGrowth, ARequestThatNeedsNoTokensIsNotHeldUpByTheReserve) {
  open({.lanes = 4, .kv_capacity = 100, .growth_reserve = 20});
  auto& running = send({.kv_demand = 50});
  EXPECT_TRUE(running.lease().try_grow_to(95));
  EXPECT_TRUE(send({.kv_demand = 0}).runs());
}

TEST_F(QueueGrowth, WithNoLeaseOutTheReserveCountsNothing) {
  open({.lanes = 2, .kv_capacity = 100, .growth_reserve = 99});
  auto& a = send({.kv_demand = 100});
  EXPECT_TRUE(a.runs());
  auto& b = send({.kv_demand = 100});
  a.finish();
  EXPECT_TRUE(b.runs());
}

TEST_F(QueueGrowth, ALowerReserveAdmitsAtOnce) {
  open({.lanes = 2, .kv_capacity = 100, .growth_reserve = 50});
  send({.kv_demand = 50});
  auto& waiter = send({.kv_demand = 10});
  queue().update([](limits& l) { l.growth_reserve = 40; });
  EXPECT_TRUE(waiter.runs());
}

// -- demands

TEST_F(QueueGrowth, ADemandOfNothingTakesALaneOnly) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 10});
  auto& lane_only = send({.kv_demand = 0});
  EXPECT_TRUE(lane_only.runs());
  EXPECT_EQ(lane_only.lease().tokens(), 0U);
  EXPECT_TRUE(send({.kv_demand = 0}).waits()) << "no lane is left";
}

TEST_F(QueueGrowth, TheEnginesOwnFigureReplacesTheSumOfPromptAndReply) {
  open({.lanes = 2});
  EXPECT_EQ(send({.prompt_tokens = 100, .max_tokens = 50}).lease().tokens(), 150U);
  EXPECT_EQ(send({.prompt_tokens = 100, .max_tokens = 50, .kv_demand = 7}).lease().tokens(), 7U);
}

}  // namespace
