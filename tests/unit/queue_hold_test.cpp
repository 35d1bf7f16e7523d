// Holding back admissions, and where waiters stand.

#include "support/queue_fixture.hpp"

#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/order_by.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using kvlane::blocked_on;
using kvlane::dispatch_hold;
using kvlane::errc;
using kvlane::token_id;
using kvlane::waiter_info;
using kvlane::test::client;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueHold : public kvlane::test::queue_fixture<> {};

TEST_F(QueueHold, WhileItLivesNobodyIsAdmitted) {
  open({.lanes = 2});
  auto hold = queue().hold_dispatch();
  auto& waiter = send({.kv_demand = 1});
  EXPECT_TRUE(waiter.waits());
  EXPECT_EQ(waiter.place.info()->blocked, blocked_on::hold);
  EXPECT_EQ(try_send({.kv_demand = 1}).refused(), errc::would_wait);
  EXPECT_TRUE(queue().snapshot().held);
  hold.release();
  EXPECT_TRUE(waiter.runs());
  EXPECT_FALSE(queue().snapshot().held);
}

TEST_F(QueueHold, OnlyTheEndOfTheLastOneAdmits) {
  open({.lanes = 1});
  auto a = queue().hold_dispatch();
  auto b = queue().hold_dispatch();
  auto& waiter = send({.kv_demand = 1});
  a.release();
  EXPECT_TRUE(waiter.waits());
  b = {};
  EXPECT_TRUE(waiter.runs());
}

TEST_F(QueueHold, EndsOnceHoweverItIsMoved) {
  open({.lanes = 1});
  auto& waiter = send({.kv_demand = 1});
  waiter.finish();
  dispatch_hold a = queue().hold_dispatch();
  dispatch_hold b{std::move(a)};
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): moved from means empty
  EXPECT_TRUE(b);
  auto& self = b;
  b = std::move(self);
  EXPECT_TRUE(b);
  a.release();
  EXPECT_TRUE(queue().snapshot().held);
  b.release();
  b.release();
  EXPECT_FALSE(queue().snapshot().held);
}

TEST_F(QueueHold, ExpiryGoesOn) {
  open({.lanes = 1});
  auto const hold = queue().hold_dispatch();
  auto& waiter = send({.kv_demand = 1, .max_wait = 1s});
  advance(1s);
  EXPECT_EQ(queue().expire(), 1U);
  ASSERT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(waiter.why().blocked(), blocked_on::hold);
}

TEST_F(QueueHold, ItsEndExpiresBeforeItAdmits) {
  open({.lanes = 1});
  auto hold = queue().hold_dispatch();
  auto& overdue = send({.kv_demand = 1, .max_wait = 1s});
  auto& next = send({.kv_demand = 1});
  advance(1s);
  hold.release();
  EXPECT_EQ(overdue.refused(), errc::timed_out);
  EXPECT_TRUE(next.runs());
}

TEST_F(QueueHold, ANewcomerThatWouldFitJoinsTheLineAndIsSubjectToItsLimits) {
  open({.lanes = 2, .max_waiting = 1});
  auto const hold = queue().hold_dispatch();
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = 0s}).refused(), errc::would_wait);
}

TEST_F(QueueHold, ReadmittedWorkWaitsForItsEndToo) {
  open({.lanes = 1});
  auto& c = send({.kv_demand = 1});
  auto hold = queue().hold_dispatch();
  auto& again = readmit(c, {.kv_demand = 1});
  EXPECT_TRUE(again.waits());
  EXPECT_EQ(lanes_busy(), 0U);
  hold.release();
  EXPECT_TRUE(again.runs());
}

TEST_F(QueueHold, LetsOneLeaseGrowIntoWhatAnotherGaveUp) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& a = send({.kv_demand = 5});
  auto& b = send({.kv_demand = 5});
  auto& greedy = send({.kv_demand = 5, .priority = 15});
  auto hold = queue().hold_dispatch();
  auto& again = readmit(b, {.kv_demand = 5});
  EXPECT_TRUE(a.lease().try_grow_to(9));
  hold.release();
  EXPECT_TRUE(greedy.waits());
  EXPECT_TRUE(again.waits());
  a.lease().shrink_to(5);
  EXPECT_TRUE(greedy.runs());
}

TEST_F(QueueHold, LetsSeveralReleasesBeOneDecision) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& a = send({.kv_demand = 5});
  auto& b = send({.kv_demand = 5});
  auto& large = send({.kv_demand = 10, .saved_cost = 1'000'000});
  auto& small = send({.kv_demand = 5});
  {
    auto const hold = queue().hold_dispatch();
    a.finish();
    b.finish();
  }
  EXPECT_TRUE(large.runs()) << "without the hold the small one would have taken what the first release freed";
  EXPECT_TRUE(small.waits());
}

// -- places

template <class Policy>
class QueuePlaces : public kvlane::test::queue_fixture<Policy> {
 protected:
  /// Tags of all waiters in the order that the queue shows, each checked to stand at its place.
  std::vector<std::uint64_t> line() {
    std::vector<std::uint64_t> seen;
    for (auto const& w : this->queue().waiters(100)) {
      EXPECT_EQ(w.place, seen.size());
      seen.push_back(w.tag);
    }
    return seen;
  }
};

class DefaultPlaces : public QueuePlaces<kvlane::cache_aware> {};

TEST_F(DefaultPlaces, WaitersAreShownInOrderWhetherOrNotTheyFit) {
  open({.lanes = 1, .kv_capacity = 10});
  send({.kv_demand = 9});
  send({.kv_demand = 10, .saved_cost = 50});
  send({.kv_demand = 1, .priority = 3});
  send({.kv_demand = 1, .saved_cost = 100});
  EXPECT_THAT(line(), ElementsAre(3U, 4U, 2U));
}

TEST_F(DefaultPlaces, AtMostAsManyAreShownAsAreAskedFor) {
  open({.lanes = 1});
  for (int i = 0; i < 4; ++i) send({.kv_demand = 1});
  EXPECT_EQ(queue().waiters(2).size(), 2U);
  EXPECT_EQ(queue().waiters(0).size(), 0U);
  EXPECT_EQ(queue().waiters(~std::size_t{0}).size(), 3U);
}

TEST_F(DefaultPlaces, AWaitersInformationIsWhatTheListShowsOfIt) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 6});
  send({.kv_demand = 9});
  auto& c = send({.kv_demand = 7, .tag = 71, .flow = 8});
  send({.kv_demand = 1}).finish();
  advance(250ms);
  auto const info = c.place.info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->tag, 71U);
  EXPECT_EQ(info->flow, 8U);
  EXPECT_EQ(info->demand, 7U);
  EXPECT_EQ(info->priority, 0U);
  EXPECT_EQ(info->place, 1U);
  EXPECT_EQ(info->waited, 250ms);
  EXPECT_EQ(info->overtaken, 1U);
  EXPECT_EQ(info->blocked, blocked_on::tokens);
  auto const listed = queue().waiters(10).at(1);
  EXPECT_EQ(listed.tag, info->tag);
  EXPECT_EQ(listed.waited, info->waited);
  EXPECT_EQ(listed.overtaken, info->overtaken);
  EXPECT_EQ(listed.blocked, info->blocked);
}

TEST_F(DefaultPlaces, TheFirstReasonThatAppliesIsShownHoldLaneTokensReservation) {
  open({.lanes = 1, .kv_capacity = 10, .max_overtakes = 0});
  auto& running = send({.kv_demand = 8});
  auto& due = send({.kv_demand = 9});
  auto& behind = send({.kv_demand = 1});
  EXPECT_EQ(due.place.info()->blocked, blocked_on::lane);
  queue().update([](kvlane::limits& l) { l.lanes = 2; });
  EXPECT_EQ(due.place.info()->blocked, blocked_on::tokens);
  EXPECT_EQ(behind.place.info()->blocked, blocked_on::reservation);
  auto const hold = queue().hold_dispatch();
  EXPECT_EQ(due.place.info()->blocked, blocked_on::hold);
  EXPECT_EQ(behind.place.info()->blocked, blocked_on::hold);
  running.finish();
}

TEST_F(DefaultPlaces, ANewScoreShowsAtOnce) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1});
  auto& c = send({.kv_demand = 1});
  EXPECT_TRUE(c.place.set_saved_cost(~std::uint64_t{0})) << "counts as the highest cost";
  EXPECT_THAT(line(), ElementsAre(3U, 2U));
  EXPECT_TRUE(c.place.set_saved_cost(0));
  EXPECT_THAT(line(), ElementsAre(2U, 3U));
}

class SeedPlaces : public QueuePlaces<kvlane::seed_order> {};

TEST_F(SeedPlaces, TheSeedsOrderOfAllIsShown) {
  open({.lanes = 1, .kv_capacity = 100});
  send({.kv_demand = 90});
  std::array<token_id, 3> const alone{9, 9, 9};
  std::array<token_id, 3> const pair_a{1, 2, 3};
  std::array<token_id, 3> const pair_b{1, 2, 4};
  send({.prompt = alone});
  send({.prompt = pair_a, .kv_demand = 50});
  send({.prompt = pair_b});
  EXPECT_THAT(line(), ElementsAre(3U, 4U, 2U));
}

class FcfsPlaces : public QueuePlaces<kvlane::fcfs> {};

TEST_F(FcfsPlaces, ArrivalWithinPriorityIsShownAndReadmittedWorkFirst) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1, .priority = 2});
  auto const hold = queue().hold_dispatch();
  readmit(preempted, {.kv_demand = 1, .tag = 50});
  EXPECT_THAT(line(), ElementsAre(3U, 50U, 2U));
}

struct largest_first {
  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return a.demand() > b.demand();
  }
};
class CustomPlaces : public QueuePlaces<kvlane::order_by<largest_first>> {};

TEST_F(CustomPlaces, AnOrderOfOnesOwnIsShown) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 5});
  EXPECT_THAT(line(), ElementsAre(3U, 2U));
}

/// A policy that cannot list its waiters.
struct silent_order {
  using waiter = kvlane::fcfs::waiter;
  void insert(waiter& w) noexcept { line.insert(w); }
  void erase(waiter& w, kvlane::departure why) noexcept { line.erase(w, why); }
  void rescore(waiter&) noexcept {}
  waiter* pick(kvlane::pick_query const& q) noexcept { return line.pick(q); }
  kvlane::fcfs line;
};
class SilentPlaces : public QueuePlaces<silent_order> {};

TEST_F(SilentPlaces, OfAPolicyThatCannotListItsWaitersPriorityAndArrivalAreShown) {
  open({.lanes = 1});
  auto& preempted = send({.kv_demand = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1, .priority = 2});
  send({.kv_demand = 1, .priority = 2});
  auto const hold = queue().hold_dispatch();
  readmit(preempted, {.kv_demand = 1, .tag = 50});
  EXPECT_THAT(line(), ElementsAre(3U, 4U, 50U, 2U));
}

}  // namespace
