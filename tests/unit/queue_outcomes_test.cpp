// What a newcomer is told, and what comes first when several things are true at once.

#include "support/counting_clock.hpp"
#include "support/extremes.hpp"
#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using kvlane::errc;
using kvlane::limits;
using kvlane::request;
using kvlane::time_point;
using kvlane::token_id;
using kvlane::test::most;
using namespace std::chrono_literals;
using testing::HasSubstr;

class QueueOutcomes : public kvlane::test::queue_fixture<> {
 protected:
  /// One lane, which is busy; warm at 1 ms for each token; 100 ms of work ahead.
  void open_busy(limits l = {}) {
    l.lanes = 1;
    l.kv_capacity = 1000;
    open(l);
    warm_up();
    running = &send({.prompt_tokens = 100});
  }
  kvlane::test::client* running = nullptr;
  std::array<token_id, 3> const prompt{1, 2, 3};
  std::array<std::uint64_t, 2> const blocks{10, 20};
};

// -- the order of outcomes

TEST_F(QueueOutcomes, AnInvalidRequestIsToldSoEvenIfItCouldNeverFit) {
  open({.kv_capacity = 10});
  EXPECT_EQ(send({.kv_demand = 11, .priority = 16}).refused(), errc::invalid_request);
}

TEST_F(QueueOutcomes, WhatCanNeverFitIsToldSoEvenWhenTheQueueShutsDown) {
  open({.kv_capacity = 10});
  queue().close();
  EXPECT_EQ(send({.kv_demand = 11}).refused(), errc::never_fits);
  EXPECT_EQ(send({.kv_demand = 10}).refused(), errc::shutting_down);
}

TEST_F(QueueOutcomes, ADrainingQueueRefusesWhatItCouldAdmit) {
  open();
  queue().drain();
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::shutting_down);
  EXPECT_EQ(try_send({.kv_demand = 1}).refused(), errc::shutting_down);
}

TEST_F(QueueOutcomes, WhatFitsIsAdmittedThoughItsDeadlineHasPassed) {
  open();
  EXPECT_TRUE(send({.kv_demand = 1, .max_wait = -1s, .deadline = clock() - 1h}).runs());
  EXPECT_TRUE(try_send({.kv_demand = 0, .deadline = time_point::min()}).refused() == errc::would_wait);
}

TEST_F(QueueOutcomes, WhatFitsIsAdmittedThoughNobodyMayWaitAndThePredictedWaitIsLong) {
  open({.lanes = 2, .max_waiting = 0});
  warm_up();
  send({.prompt_tokens = 1000});
  EXPECT_TRUE(send({.prompt_tokens = 1, .max_wait = 1ms}).runs());
}

TEST_F(QueueOutcomes, ARequestWithoutPatienceWouldWaitEvenIfTheLineIsFull) {
  open_busy({.max_waiting = 0});
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = 0s}).refused(), errc::would_wait);
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = -5s}).refused(), errc::would_wait);
  EXPECT_EQ(send({.kv_demand = 1, .deadline = clock()}).refused(), errc::would_wait);
  EXPECT_EQ(send({.kv_demand = 1, .max_wait = 1h, .deadline = clock() - 1ns}).refused(), errc::would_wait);
  EXPECT_EQ(try_send({.kv_demand = 1, .max_wait = 1h}).refused(), errc::would_wait);
}

TEST_F(QueueOutcomes, AFullLineIsToldEvenIfTheWaitWouldBeTooLong) {
  open_busy({.max_waiting = 0});
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 99ms}).refused(), errc::queue_full);
}

TEST_F(QueueOutcomes, WithRoomInLineAWaitThatWouldBeTooLongIsRefused) {
  open_busy();
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 99ms}).refused(), errc::would_time_out);
  EXPECT_EQ(send({.prompt_tokens = 1, .deadline = clock() + 99ms}).refused(), errc::would_time_out);
  EXPECT_TRUE(send({.prompt_tokens = 1, .max_wait = 100ms}).waits());
}

TEST_F(QueueOutcomes, ARequestThatIsNotRefusedJoinsAndHasNoOutcomeYet) {
  open_busy();
  auto& c = send({.prompt_tokens = 1});
  EXPECT_FALSE(c.outcome);
  EXPECT_TRUE(c.place.waiting());
  EXPECT_EQ(depth(), 1U);
}

TEST_F(QueueOutcomes, ANewcomerThatFitsPassesThoseThatDoNot) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 6});
  auto& large = send({.kv_demand = 5});
  EXPECT_TRUE(large.waits());
  EXPECT_TRUE(send({.kv_demand = 4}).runs());
}

TEST_F(QueueOutcomes, TryAdmitPassesThoseThatDoNotFitJustAsWell) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 6});
  auto& large = send({.kv_demand = 5});
  EXPECT_TRUE(try_send({.prompt = prompt}).runs());
  EXPECT_EQ(large.place.info()->overtaken, 1U);
}

TEST_F(QueueOutcomes, ANewcomerTakesNothingFromAWaiterWhoFitsOnceSomebodyHasExpired) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  auto& due = send({.kv_demand = 10, .max_wait = 1s});
  auto& next = send({.kv_demand = 4});
  EXPECT_TRUE(next.waits());
  advance(1s);
  auto& newcomer = send({.kv_demand = 4});
  EXPECT_EQ(due.refused(), errc::timed_out);
  EXPECT_TRUE(next.runs());
  EXPECT_TRUE(newcomer.waits());
}

TEST_F(QueueOutcomes, TryAdmitTakesNothingFromAWaiterWhoFitsOnceSomebodyHasExpired) {
  open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  send({.kv_demand = 10, .max_wait = 1s});
  auto& next = send({.kv_demand = 4});
  advance(1s);
  EXPECT_EQ(try_send({.kv_demand = 4}).refused(), errc::would_wait);
  EXPECT_TRUE(next.runs());
}

TEST_F(QueueOutcomes, ADefaultWaitCountsOnlyForRequestsThatNameNone) {
  open({.lanes = 1, .max_wait = 10ms});
  send({.kv_demand = 1});
  auto& unnamed = send({.kv_demand = 1});
  auto& named = send({.kv_demand = 1, .max_wait = 1h});
  auto& dated = send({.kv_demand = 1, .deadline = clock() + 1h});
  advance(10ms);
  EXPECT_EQ(queue().expire(), 1U);
  EXPECT_EQ(unnamed.refused(), errc::timed_out);
  EXPECT_TRUE(named.waits());
  EXPECT_TRUE(dated.waits());
}

TEST_F(QueueOutcomes, ADefaultWaitOfNothingMeansThatOnlyThoseWhoNameAWaitWait) {
  open({.lanes = 1, .max_wait = 0s});
  send({.kv_demand = 1});
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::would_wait);
  EXPECT_TRUE(send({.kv_demand = 1, .max_wait = 1s}).waits());
}

TEST_F(QueueOutcomes, APlaceThatIsInUseIsGivenUpFirst) {
  open({.lanes = 1, .max_waiting = 1});
  send({.kv_demand = 1});
  auto& c = send({.kv_demand = 1});
  request again{.kv_demand = 1, .tag = 77};
  EXPECT_FALSE(queue().enqueue(again, c.place, completion_of(c))) << "its own place is the one that is free now";
  EXPECT_EQ(depth(), 1U);
  EXPECT_EQ(c.place.info()->tag, 77U);
}

TEST_F(QueueOutcomes, APlaceThatIsInUseIsGivenUpAlsoWhenTheNewRequestDoesNotWait) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& c = send({.kv_demand = 1});
  EXPECT_TRUE(queue().enqueue({.kv_demand = 1, .priority = 99}, c.place, completion_of(c)));
  EXPECT_FALSE(c.place.waiting());
  EXPECT_EQ(depth(), 0U);
}

// -- room in line

TEST_F(QueueOutcomes, TheLineTakesAsManyAsItHasPlaces) {
  open_busy({.max_waiting = 2});
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
  EXPECT_TRUE(send({.kv_demand = 1}).waits());
  auto& third = send({.kv_demand = 1});
  ASSERT_EQ(third.refused(), errc::queue_full);
  EXPECT_EQ(third.why().waiting(), 2U);
  EXPECT_EQ(third.why().max_waiting(), 2U);
}

TEST_F(QueueOutcomes, TheLineTakesAsManyTokensAsItMay) {
  open_busy({.max_waiting_tokens = 100});
  EXPECT_TRUE(send({.kv_demand = 60}).waits());
  EXPECT_EQ(send({.kv_demand = 41}).refused(), errc::queue_full);
  EXPECT_TRUE(send({.kv_demand = 40}).waits());
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
  EXPECT_TRUE(send({.kv_demand = 0}).waits());
  EXPECT_EQ(queue().snapshot().waiting_tokens, 100U);
}

TEST_F(QueueOutcomes, AnEmptyLineTakesOneOfAnyDemand) {
  open_busy({.max_waiting_tokens = 100});
  EXPECT_TRUE(send({.kv_demand = 1000}).waits());
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
}

TEST_F(QueueOutcomes, AnEmptyLineWithoutAPlaceTakesNobody) {
  open_busy({.max_waiting = 0});
  EXPECT_EQ(send({.kv_demand = 1}).refused(), errc::queue_full);
}

TEST_F(QueueOutcomes, HugeDemandsOfWaitersDoNotOverflowTheirSum) {
  open({.lanes = 1, .kv_capacity = most});
  send({.kv_demand = 0});
  EXPECT_TRUE(send({.kv_demand = most}).waits());
  EXPECT_TRUE(send({.kv_demand = most}).refused() == errc::queue_full) << "2 * (2^64 - 1) is above every limit";
  EXPECT_EQ(queue().snapshot().waiting_tokens, most);
}

TEST_F(QueueOutcomes, OnlyThoseWhoStayNeedRoom) {
  open({.lanes = 2, .kv_capacity = 10, .max_waiting = 1});
  send({.kv_demand = 6});
  send({.kv_demand = 5});
  EXPECT_TRUE(send({.kv_demand = 4}).runs()) << "the line is full, but it does not wait";
}

TEST_F(QueueOutcomes, TheDefaultNumberOfPlacesFollowsTheLanes) {
  open({.lanes = 1});
  EXPECT_EQ(queue().snapshot().max_waiting, 16U);
  queue().update([](limits& l) { l.lanes = 10; });
  EXPECT_EQ(queue().snapshot().max_waiting, 80U);
  queue().update([](limits& l) { l.max_waiting = 3; });
  EXPECT_EQ(queue().snapshot().max_waiting, 3U);
  queue().update([](limits& l) { l.lanes = 20; });
  EXPECT_EQ(queue().snapshot().max_waiting, 3U);
}

// -- bad input

TEST_F(QueueOutcomes, ContradictoryRequestsAreRefusedByNameAndLeaveNothing) {
  open();
  struct {
    request r;
    std::string named;
  } const bad[] = {
      {{.kv_demand = 1, .priority = 16}, "priority is 16"},
      {{.prompt = prompt, .prefix_blocks = blocks, .prompt_tokens = 9}, "prefix_blocks"},
      {{.prefix_blocks = blocks}, "prompt_tokens is 0"},
      {{.prompt = prompt, .prompt_tokens = 2}, "prompt_tokens is 2"},
      {{.max_tokens = 10}, "kv_demand"},
      {{.kv_demand = 1, .saved_cost = std::uint64_t{1} << 48}, "saved_cost is 281474976710656"},
  };
  for (auto const& [r, named] : bad) {
    SCOPED_TRACE(named);
    auto& c = send(r);
    ASSERT_EQ(c.refused(), errc::invalid_request);
    EXPECT_THAT(c.why().message(), HasSubstr(named));
    EXPECT_FALSE(c.why().retry_after());
    EXPECT_EQ(try_send(r).refused(), errc::invalid_request);
  }
  auto const s = queue().snapshot();
  EXPECT_EQ(s.counters.refused_for(errc::invalid_request), 2 * std::size(bad));
  EXPECT_EQ(s.counters.refused_in_all(), 2 * std::size(bad));
  EXPECT_EQ(s.counters.admitted, 0U);
}

TEST_F(QueueOutcomes, TheLargestValuesThatMakeSenseAreAccepted) {
  open();
  EXPECT_TRUE(send({.kv_demand = 1, .priority = 15, .saved_cost = (std::uint64_t{1} << 48) - 1}).runs());
}

TEST_F(QueueOutcomes, ImagesMayAddToThePromptTokens) {
  open({.lanes = 2});
  EXPECT_EQ(send({.prompt = prompt, .prompt_tokens = 300}).lease().tokens(), 300U);
  EXPECT_EQ(send({.prefix_blocks = blocks, .prompt_tokens = 30}).lease().tokens(), 30U);
}

TEST_F(QueueOutcomes, AnUnboundedReplyAndAHugePromptSaturateAndNeverFit) {
  open();
  auto& c = send({.prompt_tokens = most, .max_tokens = 1});
  ASSERT_EQ(c.refused(), errc::never_fits);
  EXPECT_EQ(c.why().asked_tokens(), most);
}

TEST_F(QueueOutcomes, DemandsAreRoundedUpToWholeBlocksBeforeTheyAreCompared) {
  open({.lanes = 2, .kv_capacity = 100, .block_tokens = 16});
  EXPECT_EQ(send({.kv_demand = 97}).refused(), errc::never_fits) << "112 tokens";
  EXPECT_EQ(send({.kv_demand = 33}).lease().tokens(), 48U);
}

TEST_F(QueueOutcomes, NonsenseLimitsAreThrownAtConstructionAndByUpdateAndChangeNothing) {
  struct {
    limits l;
    std::string named;
  } const bad[] = {
      {{.kv_capacity = 0}, "kv_capacity"},
      {{.block_tokens = 0}, "block_tokens"},
      {{.kv_capacity = 10, .growth_reserve = 10}, "growth_reserve"},
      {{.lanes = 5, .engine_lanes = 4}, "lanes is 5, but the engine has 4"},
      {{.max_wait = -1ns}, "max_wait"},
  };
  open({.lanes = 3});
  for (auto const& [l, named] : bad) {
    SCOPED_TRACE(named);
    EXPECT_THROW(kvlane::admission_queue{l}, std::invalid_argument);
    try {
      queue().update([&](limits& now) { now = l; });
      ADD_FAILURE() << "it was accepted";
    } catch (std::invalid_argument const& e) {
      EXPECT_THAT(e.what(), HasSubstr(named));
    }
    EXPECT_EQ(queue().current_limits().lanes, 3U);
    EXPECT_EQ(queue().current_limits().kv_capacity, 4096U);
  }
}

TEST_F(QueueOutcomes, SamplesThatMakeNoSenseAreCountedAndTeachNothing) {
  open();
  auto const nan = kvlane::fractional_ms{std::numeric_limits<double>::quiet_NaN()};
  for (auto const& sample : {kvlane::service_sample{.prompt_tokens = 1, .prefill = nan},
                             kvlane::service_sample{.prompt_tokens = 1, .prefill = -1ms}, kvlane::service_sample{},
                             kvlane::service_sample{.prompt_tokens = 0, .prefill = 5ms}})
    send({.kv_demand = 1}).lease().complete(sample);
  EXPECT_EQ(queue().snapshot().counters.samples_ignored, 4U);
  EXPECT_EQ(queue().predicted_wait(), std::nullopt);
}

}  // namespace
