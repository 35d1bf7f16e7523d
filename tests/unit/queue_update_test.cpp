// Changing limits, draining, closing, and what outlives the queue.

#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace {

using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using kvlane::ticket;
using kvlane::test::client;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueUpdate : public kvlane::test::queue_fixture<> {};

TEST_F(QueueUpdate, MoreLanesAdmitAtOnce) {
  open({.lanes = 0});
  for (int i = 0; i < 3; ++i) send({.kv_demand = 1});
  queue().update([](limits& l) { l.lanes = 2; });
  EXPECT_THAT(told, ElementsAre(1U, 2U));
}

TEST_F(QueueUpdate, MoreTokensAdmitAtOnce) {
  open({.lanes = 4, .kv_capacity = 10});
  send({.kv_demand = 8});
  auto& waiter = send({.kv_demand = 10});
  queue().update([](limits& l) { l.kv_capacity = 18; });
  EXPECT_TRUE(waiter.runs());
}

TEST_F(QueueUpdate, FewerLanesRevokeNothingAndNobodyIsAdmittedUntilEnoughHaveComeBack) {
  open({.lanes = 4});
  client* running[4];
  for (auto*& c : running) c = &send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  queue().update([](limits& l) { l.lanes = 2; });
  EXPECT_EQ(lanes_busy(), 4U);
  running[0]->finish();
  running[1]->finish();
  EXPECT_TRUE(waiter.waits());
  running[2]->finish();
  ASSERT_TRUE(waiter.runs());
  EXPECT_EQ(waiter.lease().lane(), 0U);
  EXPECT_EQ(running[3]->lease().lane(), 3U);
}

TEST_F(QueueUpdate, FewerTokensRevokeNothing) {
  open({.lanes = 4, .kv_capacity = 100});
  auto& a = send({.kv_demand = 60});
  auto& b = send({.kv_demand = 30});
  auto& waiter = send({.kv_demand = 20});
  queue().update([](limits& l) { l.kv_capacity = 40; });
  EXPECT_EQ(a.lease().tokens(), 60U);
  EXPECT_EQ(tokens_used(), 90U);
  EXPECT_FALSE(b.lease().try_grow_to(31));
  b.finish();
  EXPECT_TRUE(waiter.waits());
  a.finish();
  EXPECT_TRUE(waiter.runs());
}

TEST_F(QueueUpdate, ALaneIsTheLowestFreeOneOrThePreferredOneIfThatIsFree) {
  open({.lanes = 3});
  EXPECT_EQ(send({.kv_demand = 1, .preferred_lane = 2}).lease().lane(), 2U);
  EXPECT_EQ(send({.kv_demand = 1, .preferred_lane = 2}).lease().lane(), 0U);
  auto& waiter_lane = send({.kv_demand = 1, .preferred_lane = 99});
  EXPECT_EQ(waiter_lane.lease().lane(), 1U);
  auto& waiter = send({.kv_demand = 1, .preferred_lane = 1});
  waiter_lane.finish();
  EXPECT_EQ(waiter.lease().lane(), 1U);
}

TEST_F(QueueUpdate, WhoCanNeverFitAnyMoreIsToldByArrivalAndThenOthersAreAdmitted) {
  open({.lanes = 3, .kv_capacity = 100, .max_overtakes = 0});
  send({.kv_demand = 50});
  send({.kv_demand = 90, .priority = 1});
  send({.kv_demand = 80, .priority = 2});
  send({.kv_demand = 10});
  send({.kv_demand = 85, .priority = 2});
  queue().update([](limits& l) { l.kv_capacity = 70; });
  EXPECT_THAT(told, ElementsAre(2U, 3U, 5U, 4U));
  EXPECT_THAT(admitted, ElementsAre(1U, 4U));
}

TEST_F(QueueUpdate, NoLongerFittingNamesTheNewCapacity) {
  open({.lanes = 1, .kv_capacity = 100});
  send({.kv_demand = 1});
  auto& c = send({.kv_demand = 90});
  queue().update([](limits& l) { l.kv_capacity = 70; });
  ASSERT_EQ(c.refused(), errc::no_longer_fits);
  EXPECT_EQ(c.why().message(), "the KV cache was lowered to 70 tokens; the request needs 90");
  EXPECT_FALSE(c.why().retry_after());
}

TEST_F(QueueUpdate, WaitersKeepTheirDemandWhenBlocksAndHeadroomChange) {
  open({.lanes = 1, .kv_capacity = 1000});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.prompt_tokens = 33, .max_tokens = 600});
  queue().update([](limits& l) {
    l.block_tokens = 64;
    l.decode_headroom = 1;
  });
  running.finish();
  EXPECT_EQ(waiter.lease().tokens(), 545U);
  waiter.finish();
  EXPECT_EQ(send({.prompt_tokens = 33, .max_tokens = 600}).lease().tokens(), 64U);
}

TEST_F(QueueUpdate, FewerPlacesEvictNobody) {
  open({.lanes = 1, .max_waiting = 4});
  auto& running = send({.kv_demand = 1});
  for (int i = 0; i < 4; ++i) send({.kv_demand = 1});
  queue().update([](limits& l) {
    l.max_waiting = 1;
    l.max_waiting_tokens = 1;
  });
  EXPECT_EQ(depth(), 4U);
  running.finish();
  EXPECT_EQ(depth(), 3U);
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
}

TEST_F(QueueUpdate, IsRunAgainOnTheNewLimitsWhenAnotherUpdateCameBetween) {
  open({.lanes = 1});
  int runs = 0;
  queue().update([&](limits& l) {
    if (++runs == 1) queue().update([](limits& other) { other.kv_capacity = 50; });
    l.lanes += 1;
  });
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(queue().current_limits().lanes, 2U);
  EXPECT_EQ(queue().current_limits().kv_capacity, 50U) << "two controllers do not undo each other";
}

TEST_F(QueueUpdate, AChangeThatThrowsChangesNothing) {
  open({.lanes = 1});
  EXPECT_THROW(queue().update([](limits& l) {
    l.lanes = 9;
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_EQ(queue().current_limits().lanes, 1U);
  EXPECT_EQ(queue().snapshot().lanes, 1U);
}

TEST_F(QueueUpdate, TheChangeRunsWithoutTheLock) {
  open({.lanes = 1});
  queue().update([&](limits& l) { l.lanes = static_cast<std::uint32_t>(queue().snapshot().lanes) + 1; });
  EXPECT_EQ(queue().snapshot().lanes, 2U);
}

// -- the door

class QueueDoor : public kvlane::test::queue_fixture<> {};

TEST_F(QueueDoor, DrainingRefusesNewcomersAndLetsTheLineRunDry) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  queue().drain();
  auto& late = send({.kv_demand = 1});
  ASSERT_EQ(late.refused(), errc::shutting_down);
  EXPECT_EQ(late.why().message(), "the server is draining and takes no new requests");
  running.finish();
  EXPECT_TRUE(waiter.runs());
  EXPECT_TRUE(waiter.lease().try_grow_to(2));
  EXPECT_TRUE(queue().snapshot().draining);
}

TEST_F(QueueDoor, ReopeningUndoesADrain) {
  open();
  queue().drain();
  queue().reopen();
  EXPECT_TRUE(send({.kv_demand = 1}).runs());
  EXPECT_FALSE(queue().snapshot().draining);
}

TEST_F(QueueDoor, ClosingAnswersEveryWaiterByArrivalAndIsFinal) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  send({.kv_demand = 1, .priority = 1});
  send({.kv_demand = 1, .priority = 9});
  auto& last = send({.kv_demand = 1, .priority = 5});
  queue().close();
  EXPECT_THAT(told, ElementsAre(2U, 3U, 4U));
  ASSERT_EQ(last.refused(), errc::shutting_down);
  EXPECT_EQ(last.why().message(), "the server has closed its queue");
  queue().reopen();
  queue().close();
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::shutting_down);
  EXPECT_TRUE(queue().snapshot().closed);
  EXPECT_TRUE(running.lease().try_grow_to(5)) << "leases stay good";
}

TEST_F(QueueDoor, DestroyingTheQueueAnswersEveryWaiterByArrival) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1});
  auto& last = send({.kv_demand = 1, .priority = 3});
  destroy_queue();
  EXPECT_THAT(told, ElementsAre(2U, 3U));
  EXPECT_EQ(last.refused(), errc::shutting_down);
}

TEST_F(QueueDoor, LeasesTicketsAndHoldsOutliveTheQueue) {
  open({.lanes = 2, .kv_capacity = 100});
  auto& a = send({.kv_demand = 10});
  auto& b = send({.kv_demand = 10});
  auto& waiter = send({.kv_demand = 10});
  auto hold = queue().hold_dispatch();
  destroy_queue();
  EXPECT_FALSE(waiter.place.cancel());
  EXPECT_FALSE(waiter.place.waiting());
  EXPECT_FALSE(waiter.place.info());
  EXPECT_TRUE(a.lease().try_grow_to(90));
  EXPECT_FALSE(a.lease().try_grow_to(91));
  a.lease().shrink_to(1);
  EXPECT_EQ(a.lease().tokens(), 1U);
  a.lease().complete({.prompt_tokens = 1, .prefill = 1ms});
  b.finish();
  hold.release();
}

/// A policy that says when it has gone.
struct witnessed_order : kvlane::cache_aware {
  witnessed_order() = default;
  std::shared_ptr<int> life = std::make_shared<int>(0);
};

class QueueLifetime : public kvlane::test::queue_fixture<witnessed_order> {};

TEST_F(QueueLifetime, ThePolicyLivesUntilTheLastLeaseTicketAndHoldHasGone) {
  std::weak_ptr<int> const life = policy.life;
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  auto hold = queue().hold_dispatch();
  destroy_queue();
  EXPECT_FALSE(life.expired());
  hold = {};
  EXPECT_FALSE(life.expired());
  running.finish();
  EXPECT_FALSE(life.expired());
  waiter.place = {};
  EXPECT_TRUE(life.expired());
}

TEST_F(QueueLifetime, AnUnusedQueueTakesItsPolicyAlong) {
  std::weak_ptr<int> const life = policy.life;
  open();
  destroy_queue();
  EXPECT_TRUE(life.expired());
}

}  // namespace
