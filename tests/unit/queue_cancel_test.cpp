// Giving up a place, and that every request has exactly one outcome.

#include "support/queue_fixture.hpp"
#include "support/throwing_completion.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <utility>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::ticket;
using namespace std::chrono_literals;
using testing::ElementsAre;

class QueueCancel : public kvlane::test::queue_fixture<> {};

TEST_F(QueueCancel, ACancelThatWinsDestroysTheCompletionBeforeItReturnsAndNeverRunsIt) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  std::weak_ptr<int> completion;
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, kvlane::test::witnessed_completion{completion}));
  EXPECT_FALSE(completion.expired());
  EXPECT_TRUE(place.cancel());
  EXPECT_TRUE(completion.expired());
  EXPECT_FALSE(place.waiting());
  running.finish();
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(QueueCancel, DestroyingATicketDestroysTheCompletionToo) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  std::weak_ptr<int> completion;
  {
    ticket place;
    ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, kvlane::test::witnessed_completion{completion}));
  }
  EXPECT_TRUE(completion.expired());
  EXPECT_EQ(depth(), 0U);
}

TEST_F(QueueCancel, AMovedTicketKeepsThePlaceAndTheOldOneIsEmpty) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& c = send({.kv_demand = 1});
  ticket other{std::move(c.place)};
  EXPECT_TRUE(other.waiting());
  EXPECT_FALSE(c.place.waiting());  // NOLINT(bugprone-use-after-move): moved from means empty
  EXPECT_FALSE(c.place.cancel());
  auto& self = other;
  other = std::move(self);
  EXPECT_TRUE(other.waiting());
  EXPECT_TRUE(other.cancel());
  EXPECT_EQ(depth(), 0U);
}

TEST_F(QueueCancel, AnEmptyTicketAnswersEveryQuestion) {
  ticket none;
  EXPECT_FALSE(none.cancel());
  EXPECT_FALSE(none.waiting());
  EXPECT_FALSE(none.set_saved_cost(1));
  EXPECT_FALSE(none.info());
  open();
}

TEST_F(QueueCancel, ItIsFalseAfterAnAdmission) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  running.finish();
  EXPECT_FALSE(waiter.place.cancel());
  EXPECT_TRUE(waiter.runs()) << "the lease is the owner's, and cancelling its place takes nothing from it";
  EXPECT_FALSE(waiter.place.info());
  EXPECT_FALSE(waiter.place.set_saved_cost(1));
}

TEST_F(QueueCancel, ItIsFalseAfterAnExpiryAlsoOfTheSameEvent) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& told_before = send({.kv_demand = 1, .max_wait = 1s});
  auto& overdue = send({.kv_demand = 1, .max_wait = 2s});
  advance(1s);
  queue().expire();
  EXPECT_FALSE(told_before.place.cancel());
  advance(1s);
  EXPECT_FALSE(overdue.place.cancel()) << "the deadline came first, though nobody had noticed";
  EXPECT_EQ(overdue.refused(), errc::timed_out);
  EXPECT_EQ(queue().snapshot().counters.cancelled, 0U);
}

TEST_F(QueueCancel, ItIsTrueOnlyOnce) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  EXPECT_TRUE(waiter.place.cancel());
  EXPECT_FALSE(waiter.place.cancel());
  EXPECT_EQ(queue().snapshot().counters.cancelled, 1U);
}

TEST_F(QueueCancel, TheReasonSaysHowLongItHadWaited) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1, .tag = 42});
  advance(1500ms);
  auto const why = waiter.place.cancel_with_reason();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::cancelled);
  EXPECT_EQ(why->waited(), 1500ms);
  EXPECT_EQ(why->tag(), 42U);
  EXPECT_EQ(why->message(), "cancelled after 1500 ms in line");
  EXPECT_FALSE(why->retry_after());
}

TEST_F(QueueCancel, TheHeadThatIsCancelledLetsSmallerFollowersThrough) {
  open({.lanes = 4, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  auto& head = send({.kv_demand = 5});
  send({.kv_demand = 2});
  send({.kv_demand = 2});
  head.place = {};
  EXPECT_THAT(told, ElementsAre(3U, 4U));
}

TEST_F(QueueCancel, FromItsOwnCompletionItIsFalse) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  std::optional<bool> cancelled;
  std::optional<admission> outcome;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [&](admission a) {
    cancelled = place.cancel();
    outcome = std::move(a);
  }));
  running.finish();
  EXPECT_EQ(cancelled, false);
  EXPECT_TRUE(outcome && *outcome);
}

TEST_F(QueueCancel, ALeaseThatNobodyTakesOutOfTheOutcomeGoesBackByItself) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  ticket place;
  ASSERT_FALSE(queue().enqueue({.kv_demand = 1}, place, [](admission) {}));
  auto& next = send({.kv_demand = 1});
  running.finish();
  EXPECT_TRUE(next.runs());
}

TEST_F(QueueCancel, EveryRequestHasOneOutcomeAndTheCountersAddUp) {
  open({.lanes = 2, .kv_capacity = 100, .max_waiting = 6});
  warm_up();
  auto const before = queue().snapshot().counters;
  std::uint64_t requests = 0;
  auto const ask = [&](kvlane::request const& r) -> auto& {
    ++requests;
    return send(r);
  };
  auto& a = ask({.prompt_tokens = 50});
  auto& b = ask({.prompt_tokens = 50});
  ask({.prompt_tokens = 101});
  ask({.prompt_tokens = 1, .priority = 16});
  ask({.prompt_tokens = 1, .max_wait = 0s});
  ask({.prompt_tokens = 1, .max_wait = 10ms});
  for (int i = 0; i < 4; ++i) ask({.prompt_tokens = 10});
  auto& cancelled = ask({.prompt_tokens = 10});
  ask({.prompt_tokens = 10, .max_wait = 1h});
  ask({.prompt_tokens = 1});  // full
  cancelled.place = {};
  advance(1h);
  queue().expire();
  a.finish();
  b.finish();
  queue().update([](kvlane::limits& l) { l.kv_capacity = 40; });
  queue().close();
  ask({.prompt_tokens = 1});
  auto const s = queue().snapshot();
  auto const admissions = s.counters.admitted - before.admitted;
  EXPECT_EQ(requests, admissions + s.counters.refused_in_all() + s.counters.cancelled + s.waiting);
  for (auto const code : {errc::invalid_request, errc::never_fits, errc::would_wait, errc::would_time_out,
                          errc::queue_full, errc::timed_out})
    EXPECT_EQ(s.counters.refused_for(code), 1U) << static_cast<int>(code);
  EXPECT_EQ(s.counters.refused_for(errc::shutting_down), 3U);
}

}  // namespace
