// An attached prefix cache: when it is asked, about whom, and what happens meanwhile.

#include "support/instrumented_policy.hpp"
#include "support/queue_fixture.hpp"
#include "support/scripted_cache.hpp"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <latch>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::errc;
using kvlane::token_id;
using kvlane::test::client;
using kvlane::test::scripted_cache;
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class QueueCache : public kvlane::test::queue_fixture<kvlane::test::instrumented<kvlane::cache_aware>> {
 protected:
  void open_with_cache(kvlane::limits const& l = {.lanes = 1}) {
    open(l);
    queue().attach(cache);
    running = &send({.kv_demand = 1});
  }
  /// A waiter whose prompt begins with `symbol`.
  client& wait_with(token_id symbol, std::uint64_t saved_cost = 0) {
    std::array<token_id, 2> const prompt{symbol, 0};
    return send({.prompt = prompt, .saved_cost = saved_cost});
  }
  /// Any event.
  void nudge() { queue().expire(); }

  scripted_cache cache;
  client* running = nullptr;
};

TEST_F(QueueCache, IsNotAskedWhileNobodyWaits) {
  open_with_cache({.lanes = 4});
  std::array<token_id, 1> const prompt{1};
  send({.prompt = prompt});
  cache.move_epoch();
  nudge();
  EXPECT_THAT(cache.take_asked(), IsEmpty());
}

TEST_F(QueueCache, IsAskedByTheFirstEventThatFindsItsEpochMovedAndOnlyOnce) {
  open_with_cache();
  wait_with(1);
  nudge();
  (void)cache.take_asked();
  nudge();
  EXPECT_THAT(cache.take_asked(), IsEmpty());
  cache.move_epoch();
  EXPECT_THAT(cache.take_asked(), IsEmpty()) << "the cache calls nobody";
  nudge();
  EXPECT_THAT(cache.take_asked(), ElementsAre(1));
  nudge();
  EXPECT_THAT(cache.take_asked(), IsEmpty());
}

TEST_F(QueueCache, IsAskedAboutTheBestFirst) {
  open_with_cache();
  wait_with(1, 10);
  wait_with(2, 30);
  wait_with(3, 20);
  cache.move_epoch();
  (void)cache.take_asked();
  nudge();
  EXPECT_THAT(cache.take_asked(), ElementsAre(2, 3, 1));
}

TEST_F(QueueCache, IsAskedAboutAtMost64AtEachEvent) {
  open_with_cache({.lanes = 1, .max_waiting = 200});
  for (token_id i = 1; i <= 100; ++i) wait_with(i);
  cache.move_epoch();
  (void)cache.take_asked();
  nudge();
  EXPECT_THAT(cache.take_asked(), SizeIs(64));
  nudge();
  EXPECT_THAT(cache.take_asked(), IsEmpty()) << "one round for each move";
}

TEST_F(QueueCache, WhatItSavesDecidesWhoIsAdmittedInTheSameEvent) {
  open_with_cache();
  auto& cold = wait_with(1);
  auto& hot = wait_with(2);
  cache.set(2, 1'000'000);
  running->finish();
  EXPECT_TRUE(hot.runs());
  EXPECT_TRUE(cold.waits());
}

TEST_F(QueueCache, AnAnswerReplacesWhatWasGivenWithTheRequest) {
  open_with_cache();
  auto& claims_much = wait_with(1, 1'000'000);
  auto& other = wait_with(2);
  cache.set(2, 10);
  running->finish();
  EXPECT_TRUE(other.runs());
  EXPECT_TRUE(claims_much.waits());
}

TEST_F(QueueCache, BusyKeepsTheOldScore) {
  open_with_cache();
  wait_with(2);
  auto& hot = wait_with(1, 1'000'000);
  cache.set(1, std::nullopt);
  running->finish();
  EXPECT_TRUE(hot.runs());
}

TEST_F(QueueCache, WaitersWithoutAPromptAreNotAskedAbout) {
  open_with_cache();
  auto& unknown = send({.kv_demand = 1, .saved_cost = 1'000'000});
  wait_with(2);
  cache.move_epoch();
  (void)cache.take_asked();
  running->finish();
  EXPECT_THAT(cache.take_asked(), ElementsAre(2));
  EXPECT_TRUE(unknown.runs()) << "and keep their score";
}

TEST_F(QueueCache, PromptsOfBlockHashesAreAskedAboutByTheirHashes) {
  open_with_cache();
  std::array<std::uint64_t, 2> const hashes{77, 78};
  send({.prefix_blocks = hashes, .prompt_tokens = 32});
  cache.move_epoch();
  (void)cache.take_asked();
  nudge();
  EXPECT_THAT(cache.take_asked(), ElementsAre(77));
}

TEST_F(QueueCache, ALaterOneReplacesAnEarlierOne) {
  open_with_cache();
  scripted_cache other;
  wait_with(1);
  queue().attach(other);
  other.move_epoch();
  cache.move_epoch();
  (void)cache.take_asked();
  nudge();
  EXPECT_THAT(cache.take_asked(), IsEmpty());
  EXPECT_THAT(other.take_asked(), ElementsAre(1));
}

TEST_F(QueueCache, IsAskedWithoutTheLockAndOtherThreadsDispatchMeanwhileWithTheScoresAtHand) {
  open_with_cache({.lanes = 2});
  auto& second = send({.kv_demand = 1});
  auto& older = wait_with(1);
  auto& hot = wait_with(2);
  cache.set(2, 1'000'000);
  cache.when_asked([&, once = true]() mutable {
    if (std::exchange(once, false)) std::thread{[&] { second.finish(); }}.join();
  });
  running->finish();
  EXPECT_THAT(admitted, ElementsAre(1U, 2U, older.tag, hot.tag)) << "the other thread did not know the answer yet";
}

TEST_F(QueueCache, OnlyOneRoundGoesOnAtATime) {
  open_with_cache({.lanes = 1});
  wait_with(1);
  wait_with(2);
  cache.move_epoch();
  (void)cache.take_asked();
  cache.when_asked([&, once = true]() mutable {
    if (!std::exchange(once, false)) return;
    cache.move_epoch();
    std::thread{[&] { nudge(); }}.join();
  });
  nudge();
  EXPECT_THAT(cache.take_asked(), SizeIs(2)) << "the other thread did not ask beside this one";
  nudge();
  EXPECT_THAT(cache.take_asked(), SizeIs(2)) << "but the move of the epoch is not forgotten";
}

TEST_F(QueueCache, AWaiterMayLeaveWhileItIsAskedAbout) {
  open_with_cache();
  auto& leaver = wait_with(1);
  auto& stays = wait_with(2);
  cache.move_epoch();
  cache.when_asked([&, once = true]() mutable {
    if (std::exchange(once, false)) std::thread{[&] { leaver.place = {}; }}.join();
  });
  policy.gauges().rescores = 0;
  nudge();
  EXPECT_EQ(policy.gauges().rescores, 1U);
  EXPECT_EQ(depth(), 1U);
  EXPECT_TRUE(stays.waits());
}

TEST_F(QueueCache, AWaiterThatExpiresWhileItIsAskedAboutIsNotAdmitted) {
  open_with_cache();
  std::array<token_id, 1> const prompt{1};
  auto& waiter = send({.prompt = prompt, .max_wait = 1s});
  cache.move_epoch();
  cache.when_asked([&] { advance(1s); });
  running->finish();
  EXPECT_EQ(waiter.refused(), errc::timed_out);
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(QueueCache, TheQueueMayCloseWhileItsCacheIsAsked) {
  open_with_cache();
  auto& waiter = wait_with(1);
  cache.move_epoch();
  cache.when_asked([&] { std::thread{[&] { queue().close(); }}.join(); });
  running->finish();
  EXPECT_EQ(waiter.refused(), errc::shutting_down);
}

TEST_F(QueueCache, DestroyingTheQueueWaitsForARoundThatGoesOn) {
  open_with_cache();
  wait_with(1);
  cache.move_epoch();
  std::latch asked{1};
  std::latch closed{1};
  std::atomic<bool> answered{false};
  cache.when_asked([&] {
    asked.count_down();
    closed.wait();
    answered = true;
  });
  std::thread releaser{[&] { running->finish(); }};
  asked.wait();
  // Its waiter is told while the queue is being destroyed: by then the destructor has begun.
  kvlane::ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](kvlane::admission) { closed.count_down(); }));
  destroy_queue();
  EXPECT_TRUE(answered);
  releaser.join();
}

}  // namespace
