// Outcomes that are collected for a loop which asks for them.

#include "support/queue_fixture.hpp"

#include <kvlane/inbox.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::inbox;
using kvlane::limits;
using kvlane::ticket;
using namespace std::chrono_literals;

class Inbox : public kvlane::test::queue_fixture<> {
 protected:
  void open_busy() {
    open({.lanes = 1, .max_waiting = 100});
    running = &send({.kv_demand = 1});
  }
  std::vector<std::uint64_t> tags_in(inbox& box) {
    std::vector<std::uint64_t> tags;
    for (auto const& [tag, outcome] : box.take()) tags.push_back(tag);
    return tags;
  }
  kvlane::test::client* running = nullptr;
};

TEST_F(Inbox, AnOutcomeThatComesAtOnceIsReturnedAndNotCollected) {
  inbox box;
  open({.lanes = 1});
  ticket place;
  auto const now = queue().enqueue({.kv_demand = 1}, place, box.slot(1));
  EXPECT_TRUE(now && *now);
  EXPECT_TRUE(box.empty());
}

TEST_F(Inbox, OutcomesAreCollectedInOrderOfArrivalWithTheirTags) {
  inbox box;
  open_busy();
  std::array<ticket, 3> places;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1, .max_wait = 2s}, places[0], box.slot(10)));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1, .max_wait = 1s}, places[1], box.slot(20)));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[2], box.slot(30)));
  EXPECT_TRUE(box.empty());
  advance(2s);
  running->finish();
  EXPECT_FALSE(box.empty());
  auto const arrived = box.take();
  ASSERT_EQ(arrived.size(), 3U);
  EXPECT_EQ(arrived[0].tag, 20U);
  EXPECT_EQ(arrived[0].outcome.error().code(), errc::timed_out);
  EXPECT_EQ(arrived[1].tag, 10U);
  EXPECT_EQ(arrived[2].tag, 30U);
  EXPECT_TRUE(arrived[2].outcome);
  EXPECT_TRUE(box.empty());
  EXPECT_TRUE(box.take().empty());
}

TEST_F(Inbox, ACancelledRequestLeavesNothingInIt) {
  inbox box;
  open_busy();
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, box.slot(1)));
  EXPECT_TRUE(place.cancel());
  running->finish();
  EXPECT_TRUE(box.empty());
}

TEST_F(Inbox, ALeaseThatIsNotTakenOutIsHeldUntilTheInboxGoes) {
  open_busy();
  ticket place;
  {
    inbox box;
    ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, box.slot(1)));
    running->finish();
    EXPECT_EQ(lanes_busy(), 1U);
  }
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(Inbox, WhatArrivesAfterTheInboxHasGoneIsGivenBack) {
  open_busy();
  std::array<ticket, 3> places;
  {
    inbox box;
    for (std::size_t i = 0; i < places.size(); ++i)
      ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[i], box.slot(i)));
  }
  auto& other = send({.kv_demand = 1});
  running->finish();
  EXPECT_TRUE(other.runs()) << "each lease that nobody could take went on to the next in line";
}

TEST_F(Inbox, ALeaseInAnInboxThatGoesIsGivenBackThoughOthersAreStillToArrive) {
  open_busy();
  std::array<ticket, 2> places;
  {
    inbox box;
    for (std::size_t i = 0; i < places.size(); ++i)
      ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[i], box.slot(i)));
    running->finish();
    EXPECT_EQ(depth(), 1U);
  }
  EXPECT_EQ(depth(), 0U);
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST(InboxThatHasGone, GivesBackOneLeaseAfterTheOtherAndNotNested) {
  constexpr std::uint32_t requests = 50'000;
  kvlane::basic_admission_queue<kvlane::fcfs> queue{{.lanes = 1, .max_waiting = requests}};
  auto running = queue.try_admit({.kv_demand = 1});
  std::vector<ticket> places(requests);
  {
    inbox box;
    for (std::uint32_t i = 0; i < requests; ++i) ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, places[i], box.slot(i)));
  }
  running->release();
  kvlane::test::expect_nothing_left(queue);
  EXPECT_EQ(queue.snapshot().counters.admitted, requests + 1);
}

TEST_F(Inbox, ItsSlotsMayOutliveItAndTheQueue) {
  auto box = std::make_unique<inbox>();
  auto slot = box->slot(1);
  box.reset();
  open_busy();
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, std::move(slot)));
  destroy_queue();
}

TEST_F(Inbox, WakesWhenSomethingArrivesInAnEmptyInboxAndNotForEveryArrival) {
  int woken = 0;
  inbox box{[&] { ++woken; }};
  open({.lanes = 0});
  std::array<ticket, 4> places;
  for (std::size_t i = 0; i < places.size(); ++i)
    ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[i], box.slot(i)));
  EXPECT_EQ(woken, 0);
  queue().update([](limits& l) { l.lanes = 3; });
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(box.take().size(), 3U);
  queue().close();
  EXPECT_EQ(woken, 2);
  (void)box.take();
}

TEST_F(Inbox, TheWakeFindsTheOutcomeThereAndMayUseQueueAndInbox) {
  std::vector<std::uint64_t> seen;
  std::unique_ptr<inbox> box;
  box = std::make_unique<inbox>([&] { seen = tags_in(*box); });
  open_busy();
  std::array<ticket, 3> places;
  for (std::size_t i = 0; i < places.size(); ++i)
    ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[i], box->slot(i + 7)));
  running->finish();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{9})) << "each lease it took went back at once, to the next";
}

TEST_F(Inbox, TheWakeDoesNotNestInACallback) {
  bool inside = false;
  std::optional<bool> nested;
  inbox box{[&] { nested = inside; }};
  open_busy();
  ticket callback_place;
  ticket box_place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, callback_place, [&](admission a) {
    inside = true;
    a->release();
    EXPECT_FALSE(box.empty());
    inside = false;
  }));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, box_place, box.slot(1)));
  running->finish();
  EXPECT_EQ(nested, false);
  (void)box.take();
}

TEST_F(Inbox, AnInboxThatHasGoneWakesNobody) {
  auto woken = std::make_unique<int>(0);
  auto box = std::make_unique<inbox>([&] { ++*woken; });
  open_busy();
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, box->slot(1)));
  box.reset();
  woken.reset();  // the engine that the wake call belonged to
  running->finish();
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(Inbox, OneInboxServesSeveralQueues) {
  inbox box;
  open_busy();
  queue_type other{{.lanes = 0}};
  ticket here;
  ticket there;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, here, box.slot(1)));
  ASSERT_FALSE(other.enqueue({.kv_demand = 1}, there, box.slot(2)));
  other.close();
  running->finish();
  EXPECT_EQ(tags_in(box), (std::vector<std::uint64_t>{2, 1}));
}

TEST_F(Inbox, ManyThreadsMayPutIntoItWhileOneTakes) {
  constexpr std::uint64_t requests = 400;
  inbox box;
  open({.lanes = 0, .max_waiting = requests});
  std::vector<ticket> places(requests);
  for (std::uint64_t i = 0; i < requests; ++i) ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, places[i], box.slot(i)));
  std::vector<std::thread> threads;
  queue().update([](limits& l) { l.lanes = 4; });
  std::atomic<std::uint64_t> taken{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (taken < requests) {
        auto const batch = box.take();  // its leases go back here, and cause more to arrive
        taken += batch.size();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(taken, requests);
  EXPECT_TRUE(box.empty());
}

}  // namespace
