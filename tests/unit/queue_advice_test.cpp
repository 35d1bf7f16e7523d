// Predicted waits, and what refused clients are told about coming back, with exact numbers.

#include "support/extremes.hpp"
#include "support/queue_fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace {

using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::limits;
using kvlane::test::client;
using kvlane::test::most;
using namespace std::chrono_literals;
using testing::HasSubstr;

// -- prediction

class QueuePrediction : public kvlane::test::queue_fixture<> {};

TEST_F(QueuePrediction, ItIsUnknownUntilSomethingWasMeasured) {
  open();
  EXPECT_EQ(queue().predicted_wait(), std::nullopt);
  warm_up();
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{0});
}

TEST_F(QueuePrediction, APhaseThatWasNeverMeasuredCountsNothing) {
  open({.lanes = 2});
  send({.kv_demand = 1}).lease().complete({.prompt_tokens = 10, .prefill = 20ms});
  send({.prompt_tokens = 100, .max_tokens = 100});
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{100}) << "2 ms for each of 100 prompt tokens, over two lanes";
}

TEST_F(QueuePrediction, OfAReplyOnlyTheHeadroomIsExpected) {
  open({.lanes = 1, .decode_headroom = 50});
  warm_up();
  send({.prompt_tokens = 10, .max_tokens = 4000});
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{60});
}

TEST_F(QueuePrediction, ActiveWorkCountsWholeAndAtEveryPriorityUntilItIsReleased) {
  open({.lanes = 1});
  warm_up();
  auto& running = send({.prompt_tokens = 100, .max_tokens = 20, .priority = 0});
  running.lease().shrink_to(1);
  EXPECT_EQ(queue().predicted_wait(0), fractional_ms{120});
  EXPECT_EQ(queue().predicted_wait(15), fractional_ms{120});
  running.finish();
  EXPECT_EQ(queue().predicted_wait(15), fractional_ms{0});
}

TEST_F(QueuePrediction, QueuedWorkCountsForThoseOfItsPriorityAndBelow) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 100});
  send({.prompt_tokens = 10, .priority = 3});
  send({.prompt_tokens = 1, .priority = 7});
  EXPECT_EQ(queue().predicted_wait(0), fractional_ms{111});
  EXPECT_EQ(queue().predicted_wait(3), fractional_ms{111});
  EXPECT_EQ(queue().predicted_wait(4), fractional_ms{101});
  EXPECT_EQ(queue().predicted_wait(7), fractional_ms{101});
  EXPECT_EQ(queue().predicted_wait(8), fractional_ms{100});
  EXPECT_EQ(queue().predicted_wait(99), queue().predicted_wait(15));
}

TEST_F(QueuePrediction, WorkOfThoseWhoLeaveTheLineNoLongerCounts) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 100});
  send({.prompt_tokens = 10}).place = {};
  send({.prompt_tokens = 10, .max_wait = 1s});
  advance(1s);
  queue().expire();
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{100});
}

TEST_F(QueuePrediction, ItFollowsTheNumberOfLanesAndWithoutLanesCountsAsOne) {
  open({.lanes = 4});
  warm_up();
  send({.prompt_tokens = 100});
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{25});
  queue().update([](limits& l) { l.lanes = 0; });
  EXPECT_EQ(queue().predicted_wait(), fractional_ms{100});
}

TEST_F(QueuePrediction, ANewcomersOwnWorkDoesNotCountAndAWaitThatIsJustLongEnoughIsAccepted) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 100});
  EXPECT_TRUE(send({.prompt_tokens = 4000, .max_wait = 100ms}).waits());
}

TEST_F(QueuePrediction, OnlyAFiniteWaitIsComparedWithIt) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 4000});
  EXPECT_TRUE(send({.prompt_tokens = 1}).waits());
  EXPECT_TRUE(send({.prompt_tokens = 1, .max_wait = kvlane::forever}).waits());
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 1s}).refused(), errc::would_time_out);
}

TEST_F(QueuePrediction, ADefaultWaitIsComparedWithItToo) {
  open({.lanes = 1, .max_wait = 1s});
  warm_up();
  send({.prompt_tokens = 1001});
  auto& c = send({.prompt_tokens = 1});
  ASSERT_EQ(c.refused(), errc::would_time_out);
  EXPECT_EQ(c.why().message(), "the predicted wait of 1001 ms is above the limit of 1000 ms");
}

TEST_F(QueuePrediction, AHigherPriorityIsJudgedByTheWorkAheadOfItself) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 100});
  send({.prompt_tokens = 100});
  EXPECT_EQ(send({.prompt_tokens = 1, .max_wait = 150ms}).refused(), errc::would_time_out);
  EXPECT_TRUE(send({.prompt_tokens = 1, .priority = 1, .max_wait = 150ms}).waits());
}

TEST_F(QueuePrediction, HugeWorkSaturates) {
  open({.lanes = 2, .kv_capacity = most});
  warm_up();
  send({.prompt_tokens = most, .kv_demand = 1});
  send({.prompt_tokens = most, .kv_demand = 1});
  EXPECT_GE(queue().predicted_wait()->count(), 9e18);
  send({.prompt_tokens = 5, .kv_demand = 1});
}

// -- Retry-After

class QueueRetryAfter : public kvlane::test::queue_fixture<> {
 protected:
  using seconds = std::optional<std::chrono::seconds>;

  /// One lane and a line of `behind` after three admissions out of it at gaps of 2 s and 6 s: D is 0.75 * 2 + 0.25 * 6,
  /// which is 3 s. Nothing is known of rates.
  void open_with_pace_of_3_seconds(int behind, limits l = {}) {
    l.lanes = 1;
    open(l);
    running = &send({.kv_demand = 1});
    client* first[3];
    for (auto*& c : first) c = &send({.kv_demand = 1});
    for (int i = 0; i < behind; ++i) last = &send({.kv_demand = 1, .max_wait = 10h});
    for (auto const gap : {5s, 2s, 6s}) {
      advance(gap);
      auto* const done = running;
      running = first[gap == 5s ? 0 : gap == 2s ? 1 : 2];
      done->finish();
      ASSERT_TRUE(running->runs());
    }
  }
  [[nodiscard]] static seconds advice(client const& c) { return c.why().retry_after(); }

  client* running = nullptr;
  client* last = nullptr;
};

TEST_F(QueueRetryAfter, IsAbsentWhileNothingIsKnown) {
  open({.lanes = 1, .max_waiting = 1});
  send({.kv_demand = 1});
  send({.kv_demand = 1, .max_wait = 1s});
  EXPECT_EQ(advice(send({.kv_demand = 1})), std::nullopt);
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), std::nullopt);
  EXPECT_EQ(advice(try_send({.kv_demand = 1})), std::nullopt);
}

TEST_F(QueueRetryAfter, IsTheLengthOfTheLineTimesItsPaceAndOnePaceMoreForEachRefusal) {
  open_with_pace_of_3_seconds(2, {.max_waiting = 5});
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 9s) << "2 * 3 + 1 * 3";
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 12s);
  queue().update([](limits& l) { l.max_waiting = 2; });
  EXPECT_EQ(advice(send({.kv_demand = 1})), 15s) << "a full line counts just so";
}

TEST_F(QueueRetryAfter, OfTryAdmitUsesThePresentNumberOfRefusalsAndDoesNotAddToIt) {
  open_with_pace_of_3_seconds(2);
  EXPECT_EQ(advice(try_send({.kv_demand = 1})), 6s);
  EXPECT_EQ(advice(try_send({.kv_demand = 1})), 6s);
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 9s);
  EXPECT_EQ(advice(try_send({.kv_demand = 1})), 9s);
}

TEST_F(QueueRetryAfter, OfThoseWhoTimeOutCountsTheLineWithoutThem) {
  open_with_pace_of_3_seconds(3);
  auto& a = send({.kv_demand = 1, .max_wait = 1s});
  auto& b = send({.kv_demand = 1, .max_wait = 1s});
  advance(1s);
  queue().expire();
  EXPECT_EQ(advice(a), 12s) << "3 * 3 + 1 * 3";
  EXPECT_EQ(advice(b), 15s) << "3 * 3 + 2 * 3";
}

TEST_F(QueueRetryAfter, StartsAfreshWithEveryAdmission) {
  open_with_pace_of_3_seconds(2);
  send({.kv_demand = 1, .max_wait = 0s});
  send({.kv_demand = 1, .max_wait = 0s});
  running->finish();
  advance(3s);
  EXPECT_EQ(advice(try_send({.kv_demand = 1})).value(), 3s) << "1 in line at a pace of 0.75 * 3 + 0.25 * 0, rounded up";
}

TEST_F(QueueRetryAfter, StartsAfreshAlsoWithAnAdmissionThatNeverWaited) {
  open_with_pace_of_3_seconds(0);
  send({.kv_demand = 1, .max_wait = 0s});
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 6s) << "0 * 3 + 2 * 3";
  running->finish();
  running = &send({.kv_demand = 1});
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 3s);
}

TEST_F(QueueRetryAfter, PacesAreMeasuredOnlyWhileSomebodyWaitsAllTheTime) {
  open_with_pace_of_3_seconds(0);
  advance(1h);
  auto& a = send({.kv_demand = 1});
  auto& b = send({.kv_demand = 1});
  running->finish();
  ASSERT_TRUE(a.runs());
  EXPECT_EQ(advice(try_send({.kv_demand = 1})), 3s) << "1 * 3: the hour of an empty line is no gap";
  advance(7s);
  a.finish();
  ASSERT_TRUE(b.runs());
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 4s) << "0 + 1 * (0.75 * 3 + 0.25 * 7)";
}

TEST_F(QueueRetryAfter, ANewcomerThatPassesTheLineIsAnAdmissionOutOfIt) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  send({.kv_demand = 10});
  send({.kv_demand = 1}).finish();
  advance(4s);
  send({.kv_demand = 1}).finish();
  EXPECT_EQ(advice(try_send({.kv_demand = 6})), 4s) << "1 in line at a pace of 4 s";
}

TEST_F(QueueRetryAfter, FollowsThePredictionWhereThereIsOne) {
  open({.lanes = 1, .max_waiting = 1});
  warm_up();
  send({.prompt_tokens = 2000});
  send({.prompt_tokens = 500, .priority = 5});
  EXPECT_EQ(advice(send({.prompt_tokens = 1})), 3s) << "2.5 s, rounded up";
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .priority = 6})), 2s) << "only active work lies ahead of priority 6";
  EXPECT_EQ(advice(try_send({.prompt_tokens = 1})), 3s);
  auto const why = send({.prompt_tokens = 1, .max_wait = 0s}).why();
  EXPECT_EQ(why.predicted_wait(), fractional_ms{2500});
  EXPECT_EQ(why.retry_after(), 3s);
}

TEST_F(QueueRetryAfter, OfAWaitThatWouldBeTooLongIsWhatItIsTooLongBy) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 4000});
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .max_wait = 2s})), 2s);
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .max_wait = 3999ms})), 1s) << "1 ms, at least a second";
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .deadline = clock() + 1500ms})), 3s);
}

TEST_F(QueueRetryAfter, PredictionAndSpreadAddUp) {
  open_with_pace_of_3_seconds(1);
  running->lease().complete({.prompt_tokens = 1, .prefill = 1ms});  // admits the last one, at a gap of 0
  advance(1s);
  auto& work = send({.prompt_tokens = 4000});
  EXPECT_TRUE(work.waits());
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .max_wait = 1s})), 6s) << "4 - 1 + 1 * 2.25, rounded up";
  EXPECT_EQ(advice(send({.prompt_tokens = 1, .max_wait = 0s})), 9s) << "4 + 2 * 2.25, rounded up";
}

TEST_F(QueueRetryAfter, LiesBetweenOneSecondAndSixty) {
  open({.lanes = 1, .kv_capacity = 1'000'000});
  warm_up();
  auto* running_now = &send({.prompt_tokens = 1});
  EXPECT_EQ(advice(try_send({.prompt_tokens = 1})), 1s);
  running_now->finish();
  send({.prompt_tokens = 500'000});
  EXPECT_EQ(advice(try_send({.prompt_tokens = 1})), 60s);
}

TEST_F(QueueRetryAfter, IsAbsentWhereComingBackDoesNotHelp) {
  open_with_pace_of_3_seconds(2, {.kv_capacity = 100});
  auto& large = send({.kv_demand = 100});
  EXPECT_EQ(advice(send({.kv_demand = 101})), std::nullopt);
  EXPECT_EQ(advice(send({.kv_demand = 1, .priority = 77})), std::nullopt);
  EXPECT_EQ(last->place.cancel_with_reason()->retry_after(), std::nullopt);
  queue().update([](limits& l) { l.kv_capacity = 50; });
  EXPECT_EQ(advice(large), std::nullopt);
  queue().close();
  EXPECT_EQ(advice(send({.kv_demand = 1})), std::nullopt);
}

TEST_F(QueueRetryAfter, RefusalsThatNoWaitExplainsDoNotSpread) {
  open_with_pace_of_3_seconds(2);
  send({.kv_demand = 1, .priority = 77});
  send({.kv_demand = 100'000});
  EXPECT_EQ(advice(send({.kv_demand = 1, .max_wait = 0s})), 9s) << "2 * 3 + 1 * 3: it is the first";
}

TEST_F(QueueRetryAfter, TheTextOfARefusalNamesTheLineAndWhatIsShort) {
  open({.lanes = 1, .kv_capacity = 10, .max_waiting = 1});
  send({.kv_demand = 4});
  send({.kv_demand = 5});
  EXPECT_EQ(send({.kv_demand = 2}).why().message(),
            "the line is full: 1 of 1 requests wait; lanes are short: asked 1, free 0");
  queue().update([](limits& l) {
    l.lanes = 2;
    l.kv_capacity = 8;
  });
  EXPECT_EQ(try_send({.kv_demand = 8}).why().message(),
            "the request would have to wait: 1 of 1 requests wait; KV tokens are short: asked 8, free 4");
}

}  // namespace
