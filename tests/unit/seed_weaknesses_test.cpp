// What is known to be weak in the seed, the queue that kvlane succeeds, shown not to happen here.

#include "support/counting_clock.hpp"
#include "support/instrumented_policy.hpp"
#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"
#include "support/scripted_cache.hpp"

#include <kvlane/inbox.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::ticket;
using kvlane::token_id;
using kvlane::test::client;
using kvlane::test::counting_clock;
using kvlane::test::instrumented;
using kvlane::test::tags;
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// -- the bound on overtaking counts real overtaking, so cache awareness survives long lines

class LongLine : public kvlane::test::queue_fixture<> {
 protected:
  static constexpr int families = 32;
  static constexpr int members = 8;

  /// 32 families of 8 prompts, interleaved, wait behind one lane and are served one by one. Returns how many of them find
  /// the prefix of their family in a cache of so many families that forgets the least recently used one.
  std::size_t prefix_hits(std::size_t cache_entries, std::uint32_t max_overtakes) {
    open({.lanes = 1, .kv_capacity = 4096, .max_waiting = 256, .max_overtakes = max_overtakes});
    auto& blocker = send({.kv_demand = 1, .tag = 1000});
    for (int i = 0; i < families * members; ++i) {
      auto const family = static_cast<token_id>(i % families);
      std::array<token_id, 4> const prompt{7, family, family, i};
      send({.prompt = prompt, .flow = static_cast<std::uint64_t>(family)});
    }
    blocker.finish();
    std::list<std::uint64_t> cache;
    std::size_t hits = 0;
    // Tags were given in order, so a tag tells the family.
    for (std::size_t next = 1; next < admitted.size(); ++next) {
      auto const family = (admitted[next] - 2) % families;
      auto const found = std::ranges::find(cache, family);
      if (found != cache.end()) {
        ++hits;
        cache.erase(found);
      }
      cache.push_front(family);
      if (cache.size() > cache_entries) cache.pop_back();
      finish(admitted[next]);
    }
    EXPECT_EQ(admitted.size(), 257U);
    return hits;
  }
};

constexpr std::size_t hits_of_the_seed = 28;
constexpr std::size_t hits_possible = 224;

TEST_F(LongLine, With256WaitingTheDefaultOrderFindsThreeTimesThePrefixesThatTheSeedFound) {
  EXPECT_GE(prefix_hits(4, 32), 3 * hits_of_the_seed);
}
TEST_F(LongLine, ALargerCacheIsOfUse) { EXPECT_GE(prefix_hits(16, 32), 3 * hits_of_the_seed); }

TEST_F(LongLine, WithoutABoundEveryPossiblePrefixIsFoundEvenWithFourCacheEntries) {
  EXPECT_EQ(prefix_hits(4, std::numeric_limits<std::uint32_t>::max()), hits_possible);
}

TEST_F(LongLine, NobodyIsOvertakenMoreThan32Times) {
  prefix_hits(4, 32);
  auto const overtakes = queue().snapshot().overtakes;
  for (std::size_t bucket = 0; bucket < overtakes.counts().size(); ++bucket)
    EXPECT_TRUE(overtakes.upper_bound(bucket) <= 32 || overtakes.counts()[bucket] == 0)
        << overtakes.upper_bound(bucket);
}

TEST_F(LongLine, HavingWaitedFor40TurnsWithoutBeingOvertakenMakesNobodyDue) {
  open({.lanes = 1, .max_waiting = 256});
  auto* running = &send({.kv_demand = 1});
  std::vector<client*> line;
  for (int i = 0; i < 64; ++i) line.push_back(&send({.kv_demand = 1}));
  for (int turn = 0; turn < 40; ++turn) {
    running->finish();
    running = line[static_cast<std::size_t>(turn)];
    ASSERT_TRUE(running->runs());
  }
  auto& hot = send({.kv_demand = 1, .saved_cost = std::uint64_t{1} << 40});
  running->finish();
  EXPECT_TRUE(hot.runs()) << "the seed is a plain queue from the 33rd turn on";
}

// -- a hand-over cannot be lost, in whatever order lanes and tokens come back

class HandOver : public kvlane::test::queue_fixture<> {};

TEST_F(HandOver, TheWaiterIsServedWhetherTheLaneOrTheTokensComeBackFirst) {
  for (auto const lane_first : {true, false}) {
    SCOPED_TRACE(lane_first ? "lane first" : "tokens first");
    open({.lanes = 2, .kv_capacity = 10});
    auto& lane_only = send({.kv_demand = 0});
    auto& tokens = send({.kv_demand = 10});
    auto& waiter = send({.kv_demand = 10});
    auto& first = lane_first ? lane_only : tokens;
    auto& second = lane_first ? tokens : lane_only;
    first.finish();
    second.finish();
    EXPECT_TRUE(waiter.runs());
    waiter.finish();
  }
}

TEST_F(HandOver, TokensThatAreGivenBackEarlyAreHandedOverEarly) {
  open({.lanes = 2, .kv_capacity = 10});
  auto& running = send({.kv_demand = 8});
  auto& waiter = send({.kv_demand = 5});
  running.lease().shrink_to(5);
  EXPECT_TRUE(waiter.runs());
}

TEST_F(HandOver, FourLanesFreedOneAfterTheOtherAreEachHandedOverAtOnce) {
  open({.lanes = 4});
  std::vector<client*> running;
  std::vector<client*> waiting;
  for (int i = 0; i < 4; ++i) running.push_back(&send({.kv_demand = 1}));
  for (int i = 0; i < 4; ++i) waiting.push_back(&send({.kv_demand = 1}));
  for (std::size_t i = 0; i < 4; ++i) {
    running[i]->finish();
    EXPECT_TRUE(waiting[i]->runs()) << i;
  }
}

TEST_F(HandOver, FourLanesFreedUnderOneHoldAreAllHandedOverAtItsEnd) {
  open({.lanes = 4});
  std::vector<client*> running;
  for (int i = 0; i < 4; ++i) running.push_back(&send({.kv_demand = 1}));
  for (int i = 0; i < 4; ++i) send({.kv_demand = 1});
  auto hold = queue().hold_dispatch();
  for (auto* const c : running) c->finish();
  EXPECT_TRUE(told.empty());
  hold.release();
  EXPECT_THAT(told, ElementsAre(5U, 6U, 7U, 8U));
}

TEST_F(HandOver, AnArrivalCannotMakeAChosenWaiterBlockSmallerOnes) {
  open({.lanes = 3, .kv_capacity = 12});
  auto& running = send({.kv_demand = 12});
  auto& first = send({.kv_demand = 6});
  auto& large = send({.kv_demand = 8});
  auto& small = send({.kv_demand = 3});
  auto& latest = send({.kv_demand = 3});
  running.finish();
  EXPECT_TRUE(first.runs());
  EXPECT_TRUE(large.waits());
  EXPECT_TRUE(small.runs()) << "it fits beside the first, whoever was thought to be next before";
  EXPECT_TRUE(latest.runs());
}

TEST_F(HandOver, AnOutcomeThatNobodyLooksAtBlocksNobodyElse) {
  kvlane::inbox unread;
  open({.lanes = 2});
  auto& a = send({.kv_demand = 1});
  auto& b = send({.kv_demand = 1});
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, unread.slot(1)));
  auto& other = send({.kv_demand = 1});
  a.finish();
  EXPECT_FALSE(unread.empty());
  b.finish();
  EXPECT_TRUE(other.runs());
}

TEST_F(HandOver, APlaceInLineIsFreeTheMomentItsOwnerIsAdmitted) {
  open({.lanes = 1, .max_waiting = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  ticket inner_place;
  std::optional<admission> inner;
  std::optional<admission> outcome;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission a) {
    inner = queue().enqueue({.kv_demand = 1}, inner_place, [](admission) {});
    outcome = std::move(a);
  }));
  running.finish();
  EXPECT_TRUE(outcome && *outcome);
  EXPECT_FALSE(inner) << "it waits: the place was not counted any more";
  EXPECT_EQ(depth(), 1U);
}

// -- nobody decides on stale scores

class StaleChoice : public kvlane::test::queue_fixture<> {
 protected:
  std::array<token_id, 2> const cold_prompt{1, 1};
  std::array<token_id, 2> const sibling_prompt{2, 1};
};

TEST_F(StaleChoice, AWaiterWhosePrefixGetsHotWhileTheLaneIsBusyIsAdmittedFirst) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& older = send({.prompt = cold_prompt});
  auto& sibling = send({.prompt = sibling_prompt});
  EXPECT_TRUE(sibling.place.set_saved_cost(100'000));
  running.finish();
  EXPECT_TRUE(sibling.runs());
  EXPECT_TRUE(older.waits());
}

TEST_F(StaleChoice, AnAttachedCacheIsAskedAgainBeforeTheLaneIsHandedOver) {
  kvlane::test::scripted_cache cache;
  open({.lanes = 1});
  queue().attach(cache);
  auto& running = send({.kv_demand = 1});
  auto& older = send({.prompt = cold_prompt});
  auto& sibling = send({.prompt = sibling_prompt});
  cache.set(2, 100'000);
  running.finish();
  EXPECT_TRUE(sibling.runs());
  EXPECT_TRUE(older.waits());
}

TEST_F(StaleChoice, ABusyCacheLeavesTheOldScoreAndIsAskedAgainWhenItsEpochMoves) {
  kvlane::test::scripted_cache cache;
  open({.lanes = 1});
  queue().attach(cache);
  auto& running = send({.kv_demand = 1});
  auto& sibling = send({.prompt = sibling_prompt});
  auto& was_hot = send({.prompt = cold_prompt, .saved_cost = 100'000});
  cache.set(2, 500);
  cache.set(1, std::nullopt);
  running.finish();
  ASSERT_TRUE(was_hot.runs()) << "busy does not mean cold";
  auto& again = send({.prompt = cold_prompt, .saved_cost = 100'000});
  (void)cache.take_asked();
  cache.set(1, 0);
  was_hot.finish();
  EXPECT_THAT(cache.take_asked(), Contains(1));
  EXPECT_TRUE(sibling.runs());
  EXPECT_TRUE(again.waits());
}

// -- no herd: what an event costs does not grow with the number of those who wait

class NoHerd : public kvlane::test::queue_fixture<instrumented<kvlane::fcfs>, kvlane::null_observer, counting_clock> {
 protected:
  void fill_line(std::uint64_t demand) {
    for (int i = 0; i < 256; ++i) send({.kv_demand = demand, .max_wait = 1h});
    (void)policy.gauges().take_calls();
    (void)clock.take_reads();
  }
};

TEST_F(NoHerd, AHandOverWith256WaitingIsOnePickOneClockReadAndOneCompletion) {
  open({.lanes = 1, .max_waiting = 256});
  auto& running = send({.kv_demand = 1});
  fill_line(1);
  running.finish();
  EXPECT_EQ(policy.gauges().picks, 1U);
  EXPECT_EQ(policy.gauges().erases, 1U);
  EXPECT_EQ(policy.gauges().take_calls(), 2U);
  EXPECT_EQ(clock.take_reads(), 1U);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(NoHerd, AReleaseAfterWhichNobodyFitsIsOnePickAndTellsNobody) {
  open({.lanes = 3, .kv_capacity = 10, .max_waiting = 256});
  send({.kv_demand = 5});
  auto& small = send({.kv_demand = 1});
  fill_line(9);
  small.finish();
  EXPECT_EQ(policy.gauges().take_calls(), 1U);
  EXPECT_EQ(clock.take_reads(), 1U);
  EXPECT_TRUE(told.empty());
}

TEST_F(NoHerd, AnArrivalWhileAllLanesAreBusyAsksThePolicyForNoChoice) {
  open({.lanes = 1, .max_waiting = 300});
  send({.kv_demand = 1});
  fill_line(1);
  send({.kv_demand = 1});
  EXPECT_EQ(policy.gauges().picks, 0U);
  EXPECT_EQ(policy.gauges().take_calls(), 1U) << "it is inserted, and that is all";
  EXPECT_TRUE(told.empty());
}

TEST_F(NoHerd, ACancelWhileAllLanesAreBusyTellsNobody) {
  open({.lanes = 1, .max_waiting = 300});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  fill_line(1);
  EXPECT_TRUE(waiter.place.cancel());
  EXPECT_EQ(policy.gauges().take_calls(), 1U);
  EXPECT_TRUE(told.empty());
}

TEST_F(NoHerd, ARefusalByPredictionIsNoWorkForThePolicyAndWakesNobody) {
  open({.lanes = 1, .max_waiting = 300});
  warm_up();
  send({.prompt_tokens = 1000});
  fill_line(1);
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 999ms}).refused(), errc::would_time_out);
  EXPECT_EQ(policy.gauges().take_calls(), 0U);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(depth(), 256U);
}

class NoTrace : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::test::recording_observer> {};

TEST_F(NoTrace, ARefusalByPredictionNeverStoodInLine) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 1000});
  send({.prompt_tokens = 1});
  auto const before = queue().snapshot();
  observer.forget();
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 999ms}).refused(), errc::would_time_out);
  EXPECT_THAT(observer.kinds(), ElementsAre("refused"));
  auto const after = queue().snapshot();
  EXPECT_EQ(after.waiting, before.waiting);
  EXPECT_EQ(after.waiting_tokens, before.waiting_tokens);
  EXPECT_EQ(after.turn, before.turn);
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
}

// -- Retry-After means something

class ComeBack : public kvlane::test::queue_fixture<> {};

TEST_F(ComeBack, RetryAfterFollowsThePredictedWait) {
  open({.lanes = 1, .kv_capacity = 100'000, .max_waiting = 0});
  warm_up();
  for (auto const& [tokens, seconds] : {std::pair{500U, 1s}, std::pair{4'001U, 5s}, std::pair{30'000U, 30s}}) {
    auto& running = send({.prompt_tokens = tokens});
    EXPECT_EQ(send({.prompt_tokens = 1}).why().retry_after(), seconds);
    running.finish();
  }
}

TEST_F(ComeBack, ClientsThatAreRefusedOneAfterTheOtherAreSpreadByThePaceOfTheLine) {
  open({.lanes = 1, .max_waiting = 3});
  auto* running = &send({.kv_demand = 1});
  std::vector<client*> line;
  for (int i = 0; i < 3; ++i) line.push_back(&send({.kv_demand = 1}));
  for (std::size_t i = 0; i < 2; ++i) {
    advance(2s);
    running->finish();
    running = line[i];
  }
  for (int i = 0; i < 2; ++i) send({.kv_demand = 1});
  std::vector<std::chrono::seconds> advice;
  for (int i = 0; i < 4; ++i) advice.push_back(send({.kv_demand = 1}).why().retry_after().value());
  EXPECT_THAT(advice, ElementsAre(8s, 10s, 12s, 14s)) << "3 wait at 2 s each, and 2 s more for each refusal";
}

}  // namespace
