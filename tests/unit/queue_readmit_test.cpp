// Work that was preempted and asks to go on.

#include "support/instrumented_policy.hpp"
#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"
#include "support/scripted_cache.hpp"
#include "support/throwing_completion.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using kvlane::ticket;
using kvlane::token_id;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueReadmit : public kvlane::test::queue_fixture<kvlane::test::instrumented<kvlane::cache_aware>> {};

// -- joining again

TEST_F(QueueReadmit, CapacityComesBackAndTheWorkJoinsInOneStep) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& preempted = send({.kv_demand = 6});
  auto& high = send({.kv_demand = 8, .priority = 1});
  auto& again = readmit(preempted, {.kv_demand = 7, .tag = 99});
  EXPECT_FALSE(preempted.runs());
  EXPECT_TRUE(high.runs()) << "one decision, with everything it gave back";
  EXPECT_TRUE(again.waits());
  EXPECT_EQ(queue().snapshot().waiting_tokens, 7U);
  EXPECT_EQ(again.place.info()->tag, 99U);
  high.finish();
  ASSERT_TRUE(again.runs());
  EXPECT_EQ(again.lease().tag(), 99U);
  EXPECT_EQ(queue().snapshot().counters.readmitted, 1U);
}

TEST_F(QueueReadmit, IfNobodyWasWaitingForItsCapacityItGoesOnAtOnceAndItsCompletionDoesNotRun) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 6});
  auto& again = readmit(preempted, {.kv_demand = 7});
  EXPECT_TRUE(again.at_once);
  EXPECT_TRUE(again.runs());
  EXPECT_TRUE(told.empty());
  EXPECT_FALSE(again.place.cancel());
}

TEST_F(QueueReadmit, NeitherCapsNorPredictionNorTheDefaultWaitNorADrainApply) {
  open({.lanes = 1, .max_waiting = 0, .max_waiting_tokens = 0, .max_wait = 0s});
  warm_up();
  auto& preempted = send({.prompt_tokens = 4000});
  queue().drain();
  auto const hold = queue().hold_dispatch();
  auto& again = readmit(preempted, {.prompt_tokens = 4000});
  EXPECT_TRUE(again.waits());
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
}

TEST_F(QueueReadmit, APredictedWaitAboveTheNamedOneDoesNotRefuseIt) {
  open({.lanes = 1});
  warm_up();
  auto& preempted = send({.prompt_tokens = 1});
  auto& high = send({.prompt_tokens = 4000, .priority = 1});
  auto& again = readmit(preempted, {.prompt_tokens = 1, .max_wait = 1ms});
  EXPECT_TRUE(high.runs());
  EXPECT_TRUE(again.waits());
}

TEST_F(QueueReadmit, AWaitThatItNamesRunsFromNow) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1, .max_wait = 1s});
  advance(10s);
  send({.kv_demand = 1, .priority = 1});
  auto& again = readmit(preempted, {.kv_demand = 1, .max_wait = 5s});
  EXPECT_EQ(queue().next_deadline(), clock() + 5s);
  advance(5s);
  EXPECT_EQ(queue().expire(), 1U);
  ASSERT_EQ(again.refused(), errc::timed_out);
  EXPECT_EQ(again.why().waited(), 5s);
}

TEST_F(QueueReadmit, AWaitOfNothingTimesOutAtOnceThoughItWouldFit) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1});
  auto& again = readmit(preempted, {.kv_demand = 1, .max_wait = 0s});
  EXPECT_TRUE(again.at_once);
  EXPECT_EQ(again.refused(), errc::timed_out);
  EXPECT_FALSE(preempted.runs()) << "it joined, so its lease has gone back";
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(QueueReadmit, ItCountsInTheLineForOthers) {
  open({.lanes = 1, .max_waiting = 1, .max_waiting_tokens = 100});
  auto& preempted = send({.kv_demand = 1});
  auto& high = send({.kv_demand = 1, .priority = 1});
  readmit(preempted, {.kv_demand = 90});
  EXPECT_TRUE(high.runs());
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
  queue().update([](limits& l) { l.max_waiting = 5; });
  EXPECT_EQ(send({.kv_demand = 11}).refused(), errc::queue_full);
  EXPECT_TRUE(send({.kv_demand = 10}).waits());
}

TEST_F(QueueReadmit, APlaceOfItsOwnCanBeGivenUp) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1});
  send({.kv_demand = 1, .priority = 1});
  auto& again = readmit(preempted, {.kv_demand = 1});
  EXPECT_TRUE(again.place.cancel());
  EXPECT_EQ(depth(), 0U);
}

// -- its place in the order

TEST_F(QueueReadmit, ItGoesBeforeThePolicysPickOfItsPriorityOldestArrivalFirst) {
  open({.lanes = 2});
  auto& older = send({.kv_demand = 1});
  auto& younger = send({.kv_demand = 1});
  auto& hot = send({.kv_demand = 1, .saved_cost = 1'000'000});
  auto hold = queue().hold_dispatch();
  auto& younger_again = readmit(younger, {.kv_demand = 1});
  auto& older_again = readmit(older, {.kv_demand = 1});
  EXPECT_EQ(older_again.place.info()->place, 0U);
  EXPECT_EQ(younger_again.place.info()->place, 1U);
  EXPECT_EQ(hot.place.info()->place, 2U);
  hold.release();
  EXPECT_THAT(told, ElementsAre(older_again.tag, younger_again.tag));
  EXPECT_TRUE(hot.waits());
}

TEST_F(QueueReadmit, AHigherPriorityGoesBeforeItAndALowerOneAfterIt) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1, .priority = 9});
  auto& high = send({.kv_demand = 1, .priority = 6});
  auto& low = send({.kv_demand = 1, .priority = 4, .saved_cost = 1'000'000});
  auto hold = queue().hold_dispatch();
  auto& again = readmit(preempted, {.kv_demand = 1, .priority = 5});
  hold.release();
  ASSERT_TRUE(high.runs()) << "its class is that of the new request, not that of the old one";
  high.finish();
  EXPECT_TRUE(again.runs());
  EXPECT_TRUE(low.waits());
}

TEST_F(QueueReadmit, IfItDoesNotFitOthersGoOnAndOvertakeIt) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  auto& preempted = send({.kv_demand = 5});
  auto& waiter = send({.kv_demand = 4});
  auto& again = readmit(preempted, {.kv_demand = 6});
  EXPECT_TRUE(waiter.runs());
  EXPECT_TRUE(again.waits());
  EXPECT_EQ(again.place.info()->overtaken, 1U);
}

TEST_F(QueueReadmit, ADueWaiterGoesBeforeIt) {
  open({.lanes = 1, .max_overtakes = 1});
  auto* running = &send({.kv_demand = 1});
  auto& due = send({.kv_demand = 1});
  auto& hot = send({.kv_demand = 1, .saved_cost = 1'000'000});
  running->finish();
  ASSERT_TRUE(hot.runs());
  auto& again = readmit(hot, {.kv_demand = 1});
  EXPECT_TRUE(due.runs()) << "it has been overtaken as often as may be";
  EXPECT_TRUE(again.waits());
}

TEST_F(QueueReadmit, ItTakesItsOldPlaceWithTheCountOfTheNextYoungerOne) {
  open({.lanes = 3, .kv_capacity = 10});
  auto& preempted = send({.kv_demand = 2});
  send({.kv_demand = 2});
  auto& older = send({.kv_demand = 9});
  send({.kv_demand = 1}).finish();
  auto& younger = send({.kv_demand = 9});
  for (int i = 0; i < 3; ++i) send({.kv_demand = 1}).finish();
  EXPECT_EQ(older.place.info()->overtaken, 4U);
  EXPECT_EQ(younger.place.info()->overtaken, 3U);
  auto& again = readmit(preempted, {.kv_demand = 9});
  EXPECT_EQ(again.place.info()->overtaken, 4U) << "counts never fall with age";
  older.place = {};
  younger.place = {};
  EXPECT_EQ(again.place.info()->overtaken, 4U);
}

TEST_F(QueueReadmit, WithNobodyYoungerInLineItStartsWithNothing) {
  open({.lanes = 3, .kv_capacity = 10});
  auto& first = send({.kv_demand = 2});
  auto& older = send({.kv_demand = 9});
  for (int i = 0; i < 3; ++i) send({.kv_demand = 1}).finish();
  auto& preempted = send({.kv_demand = 1});
  EXPECT_EQ(older.place.info()->overtaken, 4U);
  auto& again = readmit(preempted, {.kv_demand = 9});
  EXPECT_EQ(again.place.info()->overtaken, 0U);
  EXPECT_TRUE(first.runs());
}

TEST_F(QueueReadmit, ItKeepsTheTurnInWhichItArrived) {
  open({.lanes = 1});
  auto* running = &send({.kv_demand = 1});
  auto& early = send({.kv_demand = 1});
  running->finish();
  ASSERT_TRUE(early.runs());
  for (int i = 0; i < 3; ++i) send({.kv_demand = 1});
  auto& again = readmit(early, {.kv_demand = 1});
  EXPECT_TRUE(again.runs()) << "it is the oldest of its priority again";
}

// -- refusals leave the lease where it is

TEST_F(QueueReadmit, OfAnInvalidRequestIsRefusedAndTheLeaseStays) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 5});
  auto& again = readmit(c, {.kv_demand = 5, .priority = 16});
  EXPECT_EQ(again.refused(), errc::invalid_request);
  EXPECT_TRUE(c.runs());
  EXPECT_EQ(c.lease().tokens(), 5U);
}

TEST_F(QueueReadmit, OfWhatCanNeverFitIsRefusedAndTheLeaseStays) {
  open({.lanes = 1, .kv_capacity = 10});
  auto& c = send({.kv_demand = 5});
  EXPECT_EQ(readmit(c, {.kv_demand = 11}).refused(), errc::never_fits);
  EXPECT_TRUE(c.runs());
}

TEST_F(QueueReadmit, AfterCloseIsRefusedAndTheLeaseStays) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 5});
  queue().close();
  EXPECT_EQ(readmit(c, {.kv_demand = 11}).refused(), errc::shutting_down);
  EXPECT_TRUE(c.runs());
}

TEST_F(QueueReadmit, OfAnEmptyLeaseOrOneOfAnotherQueueIsInvalid) {
  open({.lanes = 1});
  queue_type other{{.lanes = 1}};
  ticket place;
  lease empty;
  auto const nothing = queue().readmit(std::move(empty), {.kv_demand = 1}, place, [](admission) {});
  ASSERT_TRUE(nothing && !*nothing);
  EXPECT_EQ(nothing->error().message(), "the lease is empty or belongs to another queue");
  auto foreign = std::move(*other.try_admit({.kv_demand = 1}));
  auto const not_ours = queue().readmit(std::move(foreign), {.kv_demand = 1}, place, [](admission) {});
  ASSERT_TRUE(not_ours && !*not_ours);
  EXPECT_EQ(not_ours->error().code(), errc::invalid_request);
  EXPECT_TRUE(foreign);  // NOLINT(bugprone-use-after-move): a refusal takes nothing
  foreign.release();
  kvlane::test::expect_nothing_left(other);
}

// -- exceptions

TEST_F(QueueReadmit, IfThePolicyThrowsNothingHasChanged) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 5});
  policy.gauges().refuse_inserts = true;
  ticket place;
  EXPECT_THROW((void)queue().readmit(std::move(c.lease()), {.kv_demand = 5}, place, [](admission) {}),
               kvlane::test::insert_failed);
  EXPECT_TRUE(c.runs());
  EXPECT_FALSE(place.waiting());
  EXPECT_EQ(queue().snapshot().counters.readmitted, 0U);
}

TEST_F(QueueReadmit, IfTheCompletionCannotBeCopiedNothingHasChanged) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 5});
  ticket place;
  kvlane::test::throwing_completion const completion;
  EXPECT_THROW((void)queue().readmit(std::move(c.lease()), {.kv_demand = 5}, place, completion), std::runtime_error);
  EXPECT_TRUE(c.runs());
}

TEST_F(QueueReadmit, IfThePolicyThrowsThoseWhomAnExpiryMadeRoomForAreAdmittedAllTheSame) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 0});
  auto& c = send({.kv_demand = 5});
  auto& due = send({.kv_demand = 10, .max_wait = 1s});
  auto& follower = send({.kv_demand = 5});
  advance(1s);
  policy.gauges().refuse_inserts = true;
  ticket place;
  EXPECT_THROW((void)queue().readmit(std::move(c.lease()), {.kv_demand = 5}, place, [](admission) {}),
               kvlane::test::insert_failed);
  EXPECT_EQ(due.refused(), errc::timed_out);
  EXPECT_TRUE(follower.runs());
}

// -- while others go on

class ObservedReadmit : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::test::recording_observer> {};

TEST_F(ObservedReadmit, EventsAreNumberedWithoutAGapAlsoWhenItTimesOutAtOnce) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1});
  readmit(preempted, {.kv_demand = 1, .max_wait = 0s});
  std::uint64_t expected = 0;
  for (auto const& e : observer.events()) EXPECT_EQ(kvlane::test::sequence_of(e), ++expected);
}

TEST_F(ObservedReadmit, WhenAnotherThreadAdmitsItWhileTheCacheIsAskedItHasOneOutcome) {
  kvlane::test::scripted_cache cache;
  open({.lanes = 2, .kv_capacity = 10});
  queue().attach(cache);
  auto& other = send({.kv_demand = 5});
  auto& preempted = send({.kv_demand = 5});
  cache.when_asked([&, once = true]() mutable {
    if (std::exchange(once, false)) std::thread{[&] { other.finish(); }}.join();
  });
  cache.move_epoch();
  std::array<token_id, 1> const prompt{1};
  auto& again = readmit(preempted, {.prompt = prompt, .kv_demand = 6});
  EXPECT_TRUE(again.runs());
  EXPECT_EQ(again.outcomes, 1U);
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_EQ(queue().snapshot().counters.admitted, 3U);
}

}  // namespace
