// How outcomes are delivered: on whose thread, in which order, and what a callback may do.

#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"

#include <kvlane/blocking.hpp>
#include <kvlane/inbox.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::lease;
using kvlane::ticket;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueDelivery : public kvlane::test::queue_fixture<> {
 protected:
  std::vector<std::string> log;
};

TEST_F(QueueDelivery, ACompletionNeverRunsInsideTheCallThatMakesTheRequest) {
  open({.lanes = 1});
  bool ran = false;
  ticket place;
  auto outcome = queue().enqueue({.kv_demand = 1}, place, [&](admission) { ran = true; });
  EXPECT_TRUE(outcome && *outcome);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(place.waiting());
}

TEST_F(QueueDelivery, CallbacksRunOnTheThreadThatCausesTheOutcome) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  std::thread::id ran_on;
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission) { ran_on = std::this_thread::get_id(); }));
  std::thread releaser{[&] { running.finish(); }};
  auto const releaser_id = releaser.get_id();
  releaser.join();
  EXPECT_EQ(ran_on, releaser_id);
}

TEST_F(QueueDelivery, ACallbackMayUseTheQueueForItHoldsNoLock) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission a) {
    EXPECT_EQ(queue().snapshot().lanes_busy, 1U);
    EXPECT_EQ(queue().waiters(9).size(), 0U);
    queue().update([](kvlane::limits& l) { l.lanes = 2; });
    EXPECT_TRUE(queue().try_admit({.kv_demand = 1}));
    EXPECT_TRUE(a->try_grow_to(5));
    a->release();
  }));
  running.finish();
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(QueueDelivery, CallbacksDoNotNestButFollowEachOther) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket first_place;
  ticket second_place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, first_place, [&](admission a) {
    log.emplace_back("first begins");
    a->release();
    log.emplace_back("first ends");
  }));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, second_place, [&](admission) { log.emplace_back("second"); }));
  running.finish();
  EXPECT_THAT(log, ElementsAre("first begins", "first ends", "second"));
}

TEST_F(QueueDelivery, CallbacksOfTwoQueuesDoNotNestEither) {
  queue_type other{{.lanes = 1}};
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto held_there = std::move(*other.try_admit({.kv_demand = 1}));
  ticket here;
  ticket there;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, here, [&](admission) {
    log.emplace_back("here begins");
    held_there.release();
    log.emplace_back("here ends");
  }));
  ASSERT_FALSE(other.enqueue({.kv_demand = 1}, there, [&](admission) { log.emplace_back("there"); }));
  running.finish();
  EXPECT_THAT(log, ElementsAre("here begins", "here ends", "there"));
}

TEST_F(QueueDelivery, OutcomesOfOneEventComeInOrderExpiriesThenGrantsThenTheCallersOwn) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 0});
  auto& running = send({.kv_demand = 5});
  send({.kv_demand = 10, .max_wait = 2s});
  send({.kv_demand = 9, .max_wait = 1s});
  send({.kv_demand = 2});
  send({.kv_demand = 2});
  advance(2s);
  auto& own = send({.kv_demand = 1});
  EXPECT_THAT(told, ElementsAre(3U, 2U, 4U, 5U));
  EXPECT_TRUE(own.waits()) << "both lanes went to those before it";
  running.finish();
  EXPECT_TRUE(own.runs());
}

TEST_F(QueueDelivery, ACallerLearnsItsOwnOutcomeAfterTheCallbacksOfOthersHaveRun) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 5});
  send({.kv_demand = 10, .max_wait = 2s});
  send({.kv_demand = 2});
  advance(2s);
  send({.kv_demand = 1});
  EXPECT_THAT(told, ElementsAre(2U, 3U));
  EXPECT_THAT(admitted, ElementsAre(1U, 3U, 4U));
}

TEST_F(QueueDelivery, AChainOfAMillionGrantsUsesConstantStack) {
  open({.lanes = 1, .max_waiting = 2});
  struct chain {
    queue_type& queue;
    std::uint64_t left = 1'000'000;
    std::uintptr_t lowest = ~std::uintptr_t{0};
    std::uintptr_t highest = 0;
    ticket places[2] = {};
    void join(std::size_t slot) {
      auto const now = queue.enqueue({.kv_demand = 1}, places[slot], [this, slot](admission a) {
        auto const depth = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        lowest = std::min(lowest, depth);
        highest = std::max(highest, depth);
        if (--left > 1) join(slot);
        a->release();
      });
      ASSERT_FALSE(now);
    }
  } links{queue()};
  auto& running = send({.kv_demand = 1});
  links.join(0);
  links.join(1);
  running.finish();
  EXPECT_EQ(links.left, 0U);
  EXPECT_EQ(links.lowest, links.highest) << "every callback ran at the same depth";
}

TEST_F(QueueDelivery, ACallbackMayDestroyTheQueue) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission a) {
    log.emplace_back(a ? "admitted" : "refused");
    destroy_queue();
    log.emplace_back("destroyed");
  }));
  ticket other_place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, other_place,
                               [&](admission a) { log.emplace_back(a ? "other admitted" : a.error().message()); }));
  running.finish();
  EXPECT_THAT(log, ElementsAre("admitted", "destroyed", "the server has closed its queue"));
}

TEST_F(QueueDelivery, ACallbackMayEnqueueAgainThroughItsOwnTicket) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  int rounds = 0;
  struct again {
    queue_type& queue;
    ticket& place;
    int& rounds;
    void operator()(admission) const {
      if (++rounds < 3) {
        EXPECT_FALSE(queue.enqueue({.kv_demand = 1}, place, *this));
      }
    }
  };
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, again{queue(), place, rounds}));
  running.finish();
  EXPECT_EQ(rounds, 3);
}

TEST_F(QueueDelivery, ACallbackMayCancelAnother) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  auto* victim = static_cast<kvlane::test::client*>(nullptr);
  std::optional<bool> cancelled;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission) { cancelled = victim->place.cancel(); }));
  victim = &send({.kv_demand = 1});
  running.finish();
  EXPECT_EQ(cancelled, true);
  EXPECT_FALSE(victim->outcome);
}

TEST_F(QueueDelivery, ACallbackThatCancelsAnotherWhoseOutcomeIsOnItsWayIsTooLate) {
  open({.lanes = 0});
  ticket place;
  auto* victim = static_cast<kvlane::test::client*>(nullptr);
  std::optional<bool> cancelled;
  std::optional<admission> outcome;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission a) {
    cancelled = victim->place.cancel();
    victim->place = {};
    outcome = std::move(a);
  }));
  victim = &send({.kv_demand = 1});
  queue().update([](kvlane::limits& l) { l.lanes = 2; });
  EXPECT_EQ(cancelled, false);
  EXPECT_TRUE(victim->runs()) << "it was admitted in the same event, and is told so";
}

TEST_F(QueueDelivery, ShellsHearBeforeCallbacks) {
  kvlane::inbox box;
  open({.lanes = 0});
  ticket callback_place;
  ticket inbox_place;
  std::optional<bool> inbox_was_empty;
  std::optional<bool> pending_was_done;
  auto* pending_seen = static_cast<kvlane::pending_admission<queue_type>*>(nullptr);
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, callback_place, [&](admission) {
    inbox_was_empty = box.empty();
    pending_was_done = pending_seen->wait_for(0s);
  }));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, inbox_place, box.slot(2)));
  kvlane::pending_admission pending{queue(), {.kv_demand = 1}};
  pending_seen = &pending;
  queue().update([](kvlane::limits& l) { l.lanes = 3; });
  EXPECT_EQ(inbox_was_empty, false);
  EXPECT_EQ(pending_was_done, true);
  EXPECT_EQ(box.take().size(), 1U);
}

TEST_F(QueueDelivery, ShellsHearAtOnceAlsoInsideACallback) {
  kvlane::inbox box;
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket callback_place;
  ticket inbox_place;
  std::optional<bool> inbox_was_empty;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, callback_place, [&](admission a) {
    a->release();
    inbox_was_empty = box.empty();
  }));
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, inbox_place, box.slot(2)));
  running.finish();
  EXPECT_EQ(inbox_was_empty, false);
}

class ObservedDelivery : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::test::recording_observer> {};

TEST_F(ObservedDelivery, ObserversHearOfAnOutcomeBeforeItsCallbackRuns) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  std::vector<std::string> heard;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission) { heard = observer.kinds(); }));
  observer.forget();
  running.finish();
  EXPECT_THAT(heard, ElementsAre("released", "admitted"));
}

TEST_F(ObservedDelivery, ACallbackMayDestroyAnObservedQueue) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission) { destroy_queue(); }));
  running.finish();
  place = {};
  EXPECT_THAT(observer.kinds(), testing::Contains("updated"));
}

}  // namespace
