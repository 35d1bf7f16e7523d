// What the tests of the seed, the queue that kvlane succeeds, assert about admission, with its numbers. Where it allows
// 100 ms for a hand-over, here no time passes at all: the clock stands still unless a test moves it.

#include "support/queue_fixture.hpp"

#include <kvlane/ordering/seed_order.hpp>

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace {

using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::token_id;
using kvlane::test::client;
using kvlane::test::tags;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// -- lanes and tokens together

class SeedQueue : public kvlane::test::queue_fixture<> {};

TEST_F(SeedQueue, AWaiterThatLacksTokensHoldsNeitherLaneNorTokensAndIsPromotedWithTheRelease) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& active = send({.kv_demand = 7});
  auto& waiter = send({.kv_demand = 7});
  EXPECT_TRUE(waiter.waits());
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_EQ(tokens_used(), 7U);

  active.finish();
  ASSERT_TRUE(waiter.runs());
  EXPECT_EQ(waiter.lease().waited(), 0ms);
  EXPECT_EQ(tokens_used(), 7U);

  waiter.finish();
  EXPECT_EQ(lanes_busy(), 0U);
  EXPECT_EQ(tokens_used(), 0U);
}

TEST_F(SeedQueue, FourWaitersThatEachNeedTheWholePoolRunOneByOne) {
  open({.lanes = 2, .kv_capacity = 10});
  auto* running = &send({.kv_demand = 10});
  std::array<client*, 4> const waiters{&send({.kv_demand = 10}), &send({.kv_demand = 10}), &send({.kv_demand = 10}),
                                       &send({.kv_demand = 10})};
  for (auto* const next : waiters) {
    EXPECT_FALSE(next->runs());
    EXPECT_EQ(tokens_used(), 10U);
    running->finish();
    ASSERT_TRUE(next->runs());
    EXPECT_EQ(lanes_busy(), 1U);
    EXPECT_EQ(tokens_used(), 10U);
    running = next;
  }
  EXPECT_EQ(depth(), 0U);
}

TEST_F(SeedQueue, AWaiterIsPassed32TimesAndThenThePoolDrainsForIt) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& first = send({.kv_demand = 5});
  auto& large = send({.kv_demand = 10});
  for (int i = 0; i < 32; ++i) {
    auto& small = send({.kv_demand = 5});
    ASSERT_TRUE(small.runs()) << i;
    small.finish();
  }
  auto& thirty_third = send({.kv_demand = 5});
  EXPECT_TRUE(thirty_third.waits());
  EXPECT_EQ(depth(), 2U);

  first.finish();
  ASSERT_TRUE(large.runs());
  EXPECT_EQ(large.lease().overtaken(), 32U);
  EXPECT_TRUE(thirty_third.waits());
  large.finish();
  EXPECT_TRUE(thirty_third.runs());
}

TEST_F(SeedQueue, ARequestLargerThanThePoolIsToldSoWithThePoolsSizeAndTouchesNothing) {
  open({.lanes = 1, .kv_capacity = 128});
  auto& c = send({.kv_demand = 129});
  ASSERT_EQ(c.refused(), errc::never_fits);
  EXPECT_THAT(c.why().message(), HasSubstr("128"));
  EXPECT_THAT(c.why().message(), HasSubstr("129"));
  EXPECT_EQ(depth(), 0U);
  EXPECT_EQ(lanes_busy(), 0U);
  EXPECT_EQ(tokens_used(), 0U);
}

TEST_F(SeedQueue, ARequestLargerThanThePoolIsToldSoAlsoWhenTheLineIsFull) {
  open({.lanes = 1, .kv_capacity = 128, .max_waiting = 1});
  send({.kv_demand = 128});
  send({.kv_demand = 1});
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
  EXPECT_EQ(send({.kv_demand = 129}).refused(), errc::never_fits);
}

TEST_F(SeedQueue, ACancelledWaiterLeavesAtOnceAndTouchesNothingOfTheRunningOne) {
  open({.lanes = 2, .kv_capacity = 128});
  auto& active = send({.kv_demand = 100});
  auto& waiter = send({.kv_demand = 64});
  ASSERT_TRUE(waiter.waits());

  auto const why = waiter.place.cancel_with_reason();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::cancelled);
  EXPECT_EQ(depth(), 0U);
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_EQ(tokens_used(), 100U);

  active.finish();
  EXPECT_EQ(lanes_busy(), 0U);
  EXPECT_EQ(tokens_used(), 0U);
  EXPECT_EQ(waiter.outcomes, 0U);
}

TEST_F(SeedQueue, WithoutLanesAClaimQueuesAndTheLaneThatAppearsIsHandedToIt) {
  open({.lanes = 0});
  auto& first = send({.kv_demand = 1});
  EXPECT_TRUE(first.waits());
  queue().update([](kvlane::limits& l) { l.lanes = 1; });
  EXPECT_TRUE(first.runs());
  auto& second = send({.kv_demand = 1});
  EXPECT_TRUE(second.waits());
}

TEST_F(SeedQueue, ASecondClaimDoesNotOvertakeTheFirstThoughALaneHasAppeared) {
  open({.lanes = 0});
  auto& first = send({.kv_demand = 1});
  auto const hold = queue().hold_dispatch();
  queue().update([](kvlane::limits& l) { l.lanes = 1; });
  auto& second = send({.kv_demand = 1});
  EXPECT_EQ(depth(), 2U);
  EXPECT_EQ(lanes_busy(), 0U);
  first.place = {};
  second.place = {};
  EXPECT_EQ(depth(), 0U);
}

// -- the order of families

class SeedFamilies : public kvlane::test::queue_fixture<kvlane::seed_order> {};

TEST_F(SeedFamilies, OneLaneAndFourQueuedInTwoFamiliesAdmitsFirstOneOfEach) {
  open({.lanes = 1});
  std::array<token_id, 4> const a1{1, 1, 1, 1};
  std::array<token_id, 4> const a2{1, 1, 1, 2};
  std::array<token_id, 4> const b1{2, 2, 2, 1};
  std::array<token_id, 4> const b2{2, 2, 2, 2};
  auto& active = send({.kv_demand = 1});
  auto& family_a = send({.prompt = a1});
  send({.prompt = a2});
  auto& family_b = send({.prompt = b1});
  send({.prompt = b2});
  EXPECT_EQ(depth(), 4U);

  active.finish();
  ASSERT_TRUE(family_a.runs());
  family_a.finish();
  EXPECT_TRUE(family_b.runs());
}

// -- the older admission by a semaphore

class SeedSemaphore : public kvlane::test::queue_fixture<> {};

TEST_F(SeedSemaphore, AnOpenLaneDoesNotQueue) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 1});
  EXPECT_TRUE(c.at_once);
  EXPECT_TRUE(c.runs());
}

TEST_F(SeedSemaphore, AFullLineOfOneRefusesAndSaysToComeBackAfterASecond) {
  open({.lanes = 1, .max_waiting = 1});
  warm_up();
  send({.prompt_tokens = 100, .max_tokens = 100});
  send({.prompt_tokens = 1});
  auto& third = send({.prompt_tokens = 1});
  ASSERT_EQ(third.refused(), errc::queue_full);
  EXPECT_THAT(third.why().message(), HasSubstr("the line is full"));
  EXPECT_EQ(third.why().retry_after(), 1s);
}

TEST_F(SeedSemaphore, ATimeoutOfFiveMillisecondsFreesThePlace) {
  open({.lanes = 1, .max_waiting = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 5ms});
  advance(5ms);
  EXPECT_EQ(queue().expire(), 1U);
  EXPECT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(depth(), 0U);
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
}

TEST_F(SeedSemaphore, AnAbsoluteDeadlineInFiveMillisecondsBeatsANominalSecond) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 1s, .deadline = clock() + 5ms});
  EXPECT_EQ(queue().next_deadline(), clock() + 5ms);
  advance(5ms);
  EXPECT_EQ(queue().expire(), 1U);
  EXPECT_EQ(waiter.refused(), errc::timed_out);
}

TEST_F(SeedSemaphore, CancellingFreesThePlaceAtOnce) {
  open({.lanes = 1, .max_waiting = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  EXPECT_TRUE(waiter.place.cancel());
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
}

TEST_F(SeedSemaphore, ALaneThatAppearsAfterTenMillisecondsIsTaken) {
  open({.lanes = 1});
  auto& active = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .max_wait = 1s});
  advance(10ms);
  active.finish();
  ASSERT_TRUE(waiter.runs());
  EXPECT_EQ(waiter.lease().waited(), 10ms);
}

TEST_F(SeedSemaphore, ACancelledWorkerKeepsItsLaneUntilItHasReallyStopped) {
  open({.lanes = 1});
  auto& worker = send({.kv_demand = 1});
  auto& next = send({.kv_demand = 1});
  EXPECT_FALSE(worker.place.cancel()) << "it runs: there is no place to give up, only a lease to give back";
  advance(200ms);
  EXPECT_TRUE(next.waits());
  worker.finish();
  EXPECT_TRUE(next.runs());
}

// -- the estimate

class SeedEstimate : public kvlane::test::queue_fixture<> {};

TEST_F(SeedEstimate, WithOneWarmLaneAndAnActiveHundredPlusHundredATimeoutOf199MsIsRefusedAnd200MsIsNot) {
  open({.lanes = 1});
  warm_up();
  auto& active = send({.prompt_tokens = 100, .max_tokens = 100});
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{200});

  auto& hasty = send({.prompt_tokens = 1, .max_wait = 199ms});
  EXPECT_EQ(hasty.refused(), errc::would_time_out);
  EXPECT_EQ(hasty.why().predicted_wait(), fractional_ms{200});
  EXPECT_EQ(depth(), 0U);

  auto& patient = send({.prompt_tokens = 1, .max_wait = 200ms});
  EXPECT_TRUE(patient.waits());
  patient.place = {};
  active.finish();
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(SeedEstimate, TwoLanesAndEightyPlusTwentyPredictFiftyQueuedFiftyRunningAndNothingAfterwards) {
  open({.lanes = 2});
  warm_up();
  auto hold = queue().hold_dispatch();
  auto& c = send({.prompt_tokens = 80, .max_tokens = 20});
  EXPECT_TRUE(c.waits());
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{50});
  hold.release();
  EXPECT_TRUE(c.runs());
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{50});
  c.finish();
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{0});
}

TEST_F(SeedEstimate, OneSlowSampleOfFourRaisesTheRateToItself) {
  open({.lanes = 1});
  for (auto const ms : {1, 1, 1, 10})
    send({.prompt_tokens = 1}).lease().complete({.prompt_tokens = 1, .prefill = fractional_ms{ms}});
  send({.prompt_tokens = 1});
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{10});
}

TEST_F(SeedEstimate, WithoutASampleNobodyIsRefusedByPrediction) {
  open({.lanes = 1});
  send({.prompt_tokens = 4000});
  EXPECT_EQ(queue().predicted_wait(), std::nullopt);
  EXPECT_TRUE(send({.prompt_tokens = 1, .max_wait = 1ms}).waits());
}

// -- the budget

class SeedBudget : public kvlane::test::queue_fixture<> {};

TEST_F(SeedBudget, APromptOf400And128TokensOf1024ReservesTheirSumAndGivesItBack) {
  open({.lanes = 1, .kv_capacity = 1024});
  auto& c = send({.prompt_tokens = 400, .max_tokens = 128});
  EXPECT_EQ(tokens_used(), 528U);
  c.finish();
  EXPECT_EQ(tokens_used(), 0U);
}

TEST_F(SeedBudget, OfALongReplyOnlyTheHeadroomOf512IsReserved) {
  open({.lanes = 1, .kv_capacity = 8192});
  auto& c = send({.prompt_tokens = 4506, .max_tokens = 4096});
  EXPECT_EQ(c.lease().tokens(), 5018U);
  EXPECT_EQ(tokens_used(), 5018U);
}

TEST_F(SeedBudget, AWaiterForTokensIsAdmittedWhenTheyComeBack) {
  open({.lanes = 2, .kv_capacity = 1000});
  auto& active = send({.kv_demand = 800});
  auto& waiter = send({.kv_demand = 300});
  EXPECT_TRUE(waiter.waits());
  EXPECT_EQ(tokens_used(), 800U);
  active.finish();
  EXPECT_TRUE(waiter.runs());
  EXPECT_EQ(tokens_used(), 300U);
}

TEST_F(SeedBudget, AWaiterForTokensTimesOutAfter15MsAndIsToldThatItWasTokensItWaitedFor) {
  open({.lanes = 2, .kv_capacity = 1000});
  send({.kv_demand = 800});
  auto& waiter = send({.kv_demand = 300, .max_wait = 15ms});
  advance(15ms);
  queue().expire();
  ASSERT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(waiter.why().blocked(), kvlane::blocked_on::tokens);
  EXPECT_EQ(waiter.why().message(), "timed out after 15 ms in line (limit 15 ms), waiting for KV tokens");
  EXPECT_EQ(tokens_used(), 800U);
}

// -- defaults

class SeedDefaults : public kvlane::test::queue_fixture<> {};

TEST_F(SeedDefaults, TheLineHas8PlacesForEachLaneButAtLeast16AndAtMost256) {
  auto const places = [](std::uint32_t lanes) { return kvlane::limits{.lanes = lanes}.places(); };
  EXPECT_EQ(places(1), 16U);
  EXPECT_EQ(places(2), 16U);
  EXPECT_EQ(places(4), 32U);
  EXPECT_EQ(places(32), 256U);
  EXPECT_EQ(places(std::numeric_limits<std::uint32_t>::max()), 256U);
  open({.lanes = 4});
  EXPECT_EQ(queue().snapshot().max_waiting, 32U);
}

TEST_F(SeedDefaults, AWaitHasNoEndUnlessOneIsNamed) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 4000});
  auto& waiter = send({.prompt_tokens = 1});
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
  advance(1000h);
  EXPECT_EQ(queue().expire(), 0U);
  EXPECT_TRUE(waiter.waits());
}

}  // namespace
