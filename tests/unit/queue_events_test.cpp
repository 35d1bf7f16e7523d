// What observers hear, and what a snapshot counts.

#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using kvlane::blocked_on;
using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::limits;
namespace events = kvlane::events;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class QueueEvents : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::test::recording_observer> {
 protected:
  void TearDown() override {
    queue_fixture::TearDown();
    std::uint64_t expected = 0;
    for (auto const& e : kept_) EXPECT_EQ(kvlane::test::sequence_of(e), ++expected);
    for (auto const& e : observer.events())
      EXPECT_EQ(kvlane::test::sequence_of(e), ++expected) << kvlane::test::kind_of(e);
  }
  /// The kinds of what was heard since the last call.
  std::vector<std::string> heard() {
    auto const kinds = observer.kinds();
    for (auto const& e : observer.events()) kept_.push_back(e);
    observer.forget();
    return kinds;
  }
  template <class Event>
  Event only() {
    auto const found = observer.all<Event>();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Event{} : found.front();
  }

 private:
  std::vector<kvlane::event> kept_;
};

TEST_F(QueueEvents, AQueueThatIsMadeTellsItsLimits) {
  open({.lanes = 3, .kv_capacity = 77});
  auto const e = only<events::configured>();
  EXPECT_EQ(e.sequence, 1U);
  EXPECT_EQ(e.now.lanes, 3U);
  EXPECT_EQ(e.now.kv_capacity, 77U);
}

TEST_F(QueueEvents, AnAdmissionAtOnceIsToldWithItsNumbers) {
  open({.lanes = 3, .kv_capacity = 100, .max_waiting = 9});
  warm_up();
  heard();
  send({.prompt_tokens = 40, .priority = 2, .tag = 5, .flow = 6, .preferred_lane = 1});
  auto const e = only<events::admitted>();
  EXPECT_EQ(e.tag, 5U);
  EXPECT_EQ(e.flow, 6U);
  EXPECT_EQ(e.priority, 2U);
  EXPECT_EQ(e.lane, 1U);
  EXPECT_EQ(e.demand, 40U);
  EXPECT_EQ(e.waited, 0ms);
  EXPECT_EQ(e.overtaken, 0U);
  EXPECT_EQ(e.depth, 0U);
  EXPECT_EQ(e.capacity, 9U);
  EXPECT_EQ(e.predicted_wait, fractional_ms{40.0 / 3});
}

TEST_F(QueueEvents, JoiningIsToldWithDepthPredictionAndWhatIsShort) {
  open({.lanes = 1, .max_waiting = 9});
  warm_up();
  send({.prompt_tokens = 100});
  heard();
  send({.prompt_tokens = 30, .tag = 5, .flow = 6});
  EXPECT_THAT(observer.kinds(), ElementsAre("queued"));
  auto const e = only<events::queued>();
  EXPECT_EQ(e.tag, 5U);
  EXPECT_EQ(e.flow, 6U);
  EXPECT_EQ(e.demand, 30U);
  EXPECT_EQ(e.depth, 1U);
  EXPECT_EQ(e.capacity, 9U);
  EXPECT_EQ(e.blocked, blocked_on::lane);
  EXPECT_EQ(e.predicted_wait, fractional_ms{100}) << "its own work does not count";
}

TEST_F(QueueEvents, AReleaseIsToldBeforeTheAdmissionThatItCauses) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& running = send({.kv_demand = 8, .tag = 3, .flow = 4});
  send({.kv_demand = 9, .tag = 5});
  send({.kv_demand = 2}).finish();
  heard();
  advance(20ms);
  running.lease().complete({.prompt_tokens = 8, .prefill = 16ms});
  EXPECT_THAT(observer.kinds(), ElementsAre("released", "admitted"));
  auto const released = only<events::released>();
  EXPECT_EQ(released.tag, 3U);
  EXPECT_EQ(released.flow, 4U);
  EXPECT_EQ(released.lane, 0U);
  EXPECT_EQ(released.tokens, 8U);
  ASSERT_TRUE(released.sample);
  EXPECT_EQ(released.sample->prefill, 16ms);
  auto const admission = only<events::admitted>();
  EXPECT_EQ(admission.tag, 5U);
  EXPECT_EQ(admission.waited, 20ms);
  EXPECT_EQ(admission.overtaken, 1U);
}

TEST_F(QueueEvents, AReleaseWithoutMeasurementsHasNoSample) {
  open();
  send({.kv_demand = 1}).finish();
  EXPECT_FALSE(only<events::released>().sample);
}

TEST_F(QueueEvents, ARefusalIsToldWithItsReason) {
  open({.kv_capacity = 10});
  heard();
  send({.kv_demand = 11, .tag = 7, .flow = 8});
  auto const e = only<events::refused>();
  EXPECT_EQ(e.flow, 8U);
  EXPECT_EQ(e.why.code(), errc::never_fits);
  EXPECT_EQ(e.why.tag(), 7U);
  heard();
  queue().drain();
  try_send({.kv_demand = 1});
  EXPECT_THAT(observer.kinds(), ElementsAre("updated", "refused"));
}

TEST_F(QueueEvents, ACancelledWaiterIsToldAndThenThoseItLetsThrough) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  auto& head = send({.kv_demand = 9, .flow = 3});
  send({.kv_demand = 4});
  heard();
  head.place = {};
  EXPECT_THAT(observer.kinds(), ElementsAre("cancelled", "admitted"));
  auto const e = only<events::cancelled>();
  EXPECT_EQ(e.flow, 3U);
  EXPECT_EQ(e.why.code(), errc::cancelled);
}

TEST_F(QueueEvents, AnExpiryIsToldAndThenTheEventThatNoticedIt) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  send({.kv_demand = 1, .flow = 4, .max_wait = 1s});
  send({.kv_demand = 1});
  heard();
  advance(1s);
  running.finish();
  EXPECT_THAT(observer.kinds(), ElementsAre("expired", "released", "admitted"));
  auto const e = only<events::expired>();
  EXPECT_EQ(e.flow, 4U);
  EXPECT_EQ(e.why.code(), errc::timed_out);
  EXPECT_EQ(e.why.waited(), 1s);
}

TEST_F(QueueEvents, GrowthIsToldWhetherOrNotItSucceeds) {
  open({.lanes = 1, .kv_capacity = 10});
  auto& c = send({.kv_demand = 2, .tag = 5, .flow = 6});
  heard();
  EXPECT_TRUE(c.lease().try_grow_to(8));
  EXPECT_FALSE(c.lease().try_grow_to(11));
  auto const grown = observer.all<events::grown>();
  ASSERT_EQ(grown.size(), 2U);
  EXPECT_EQ(grown[0].tag, 5U);
  EXPECT_EQ(grown[0].flow, 6U);
  EXPECT_EQ(grown[0].from, 2U);
  EXPECT_EQ(grown[0].to, 8U);
  EXPECT_EQ(grown[1].from, 8U);
  EXPECT_EQ(grown[1].to, 8U);
}

TEST_F(QueueEvents, ReadmissionIsToldAndThenThoseItMakesRoomFor) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 3});
  send({.kv_demand = 1, .priority = 9});
  heard();
  readmit(preempted, {.kv_demand = 4, .priority = 1, .tag = 31, .flow = 2});
  EXPECT_THAT(observer.kinds(), ElementsAre("readmitted", "admitted"));
  auto const e = only<events::readmitted>();
  EXPECT_EQ(e.tag, 31U);
  EXPECT_EQ(e.flow, 2U);
  EXPECT_EQ(e.priority, 1U);
  EXPECT_EQ(e.demand, 4U);
  EXPECT_EQ(e.depth, 2U);
}

TEST_F(QueueEvents, AReadmissionThatGoesOnAtOnceIsToldAsBoth) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 3});
  heard();
  readmit(preempted, {.kv_demand = 4});
  EXPECT_THAT(observer.kinds(), ElementsAre("readmitted", "admitted"));
}

TEST_F(QueueEvents, UpdatesAndDoorsAreToldWithTheNewState) {
  open({.lanes = 1, .kv_capacity = 100});
  send({.kv_demand = 60});
  send({.kv_demand = 80});
  heard();
  queue().update([](limits& l) { l.kv_capacity = 70; });
  EXPECT_THAT(observer.kinds(), ElementsAre("refused", "updated"));
  EXPECT_EQ(only<events::updated>().now.kv_capacity, 70U);
  heard();
  queue().drain();
  queue().reopen();
  queue().close();
  auto const doors = observer.all<events::updated>();
  ASSERT_EQ(doors.size(), 3U);
  EXPECT_TRUE(doors[0].draining && !doors[0].closed);
  EXPECT_TRUE(!doors[1].draining && !doors[1].closed);
  EXPECT_TRUE(doors[2].closed);
}

TEST_F(QueueEvents, BeingIdleIsToldOnceWhenTheLastLeaseHasGoneAndNobodyWaits) {
  open({.lanes = 2});
  auto& a = send({.kv_demand = 1});
  auto& b = send({.kv_demand = 1});
  auto& c = send({.kv_demand = 1});
  heard();
  a.finish();
  b.finish();
  EXPECT_THAT(observer.all<events::idle>(), IsEmpty());
  c.finish();
  EXPECT_EQ(observer.kinds().back(), "idle");
  heard();
  EXPECT_EQ(try_send({.kv_demand = 1, .priority = 16}).refused(), errc::invalid_request);
  queue().update([](limits&) {});
  EXPECT_THAT(observer.all<events::idle>(), IsEmpty()) << "it was idle before";
}

TEST_F(QueueEvents, TheLastWaiterThatLeavesAQueueWithoutLanesMakesItIdle) {
  open({.lanes = 0});
  auto& waiter = send({.kv_demand = 1});
  heard();
  waiter.place = {};
  EXPECT_THAT(observer.kinds(), ElementsAre("cancelled", "idle"));
}

TEST_F(QueueEvents, AnEventsNumberIsTakenInOrderEvenIfManyThingsHappenAtOnce) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 4});
  send({.kv_demand = 10, .max_wait = 2s});
  send({.kv_demand = 9, .max_wait = 1s});
  send({.kv_demand = 2});
  send({.kv_demand = 2});
  heard();
  advance(2s);
  send({.kv_demand = 1});
  EXPECT_THAT(observer.kinds(), ElementsAre("expired", "expired", "admitted", "admitted", "queued"));
}

TEST_F(QueueEvents, ClosingTellsEveryWaiter) {
  open({.lanes = 0});
  for (int i = 0; i < 3; ++i) send({.kv_demand = 1});
  heard();
  queue().close();
  EXPECT_THAT(observer.kinds(), ElementsAre("refused", "refused", "refused", "updated", "idle"));
}

// -- the snapshot

class QueueSnapshot : public kvlane::test::queue_fixture<> {};

TEST_F(QueueSnapshot, OfANewQueueShowsItsLimitsAndNothingElse) {
  open({.lanes = 3, .kv_capacity = 77});
  auto const s = queue().snapshot();
  EXPECT_EQ(s.lanes, 3U);
  EXPECT_EQ(s.kv_capacity, 77U);
  EXPECT_EQ(s.max_waiting, 24U);
  EXPECT_EQ(s.counters.admitted, 0U);
  EXPECT_EQ(s.wait_ms.count(), 0U);
  EXPECT_FALSE(s.held || s.draining || s.closed);
}

TEST_F(QueueSnapshot, AllFiguresBelongToOneMoment) {
  open({.lanes = 2, .kv_capacity = 100});
  send({.kv_demand = 30});
  send({.kv_demand = 40});
  send({.kv_demand = 50});
  send({.kv_demand = 60});
  auto const s = queue().snapshot();
  EXPECT_EQ(s.lanes_busy, 2U);
  EXPECT_EQ(s.kv_tokens_used, 70U);
  EXPECT_EQ(s.waiting, 2U);
  EXPECT_EQ(s.waiting_tokens, 110U);
}

TEST_F(QueueSnapshot, WaitsAndOvertakesAreCountedInPowersOfTwo) {
  open({.lanes = 1});
  auto& first = send({.kv_demand = 1});
  auto& second = send({.kv_demand = 1});
  auto& hot = send({.kv_demand = 1, .saved_cost = 1'000'000});
  advance(5ms);
  first.finish();
  advance(500us);
  hot.finish();
  EXPECT_TRUE(second.runs());
  auto const s = queue().snapshot();
  EXPECT_EQ(s.wait_ms.count(), 3U);
  EXPECT_EQ(s.wait_ms.sum(), 5U + 6U) << "rounded up";
  EXPECT_EQ(s.wait_ms.counts()[0], 1U);
  EXPECT_EQ(s.wait_ms.counts()[4], 2U) << "5 and 6 are above 4 and at most 8";
  EXPECT_EQ(s.overtakes.counts()[0], 2U);
  EXPECT_EQ(s.overtakes.counts()[1], 1U);
  EXPECT_EQ(s.counters.admitted, 3U);
  EXPECT_EQ(s.counters.admitted_from_line, 2U);
}

TEST_F(QueueSnapshot, ReadmittedWorkIsReleasedAndAdmittedAgain) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 1});
  auto& again = readmit(c, {.kv_demand = 1});
  again.finish();
  auto const s = queue().snapshot();
  EXPECT_EQ(s.counters.readmitted, 1U);
  EXPECT_EQ(s.counters.admitted, 2U);
  EXPECT_EQ(s.counters.released, 2U);
}

}  // namespace
