// What allocates and what does not, and that a queue in which an allocation failed is as it was.

#include "support/allocation_hooks.hpp"
#include "support/instrumented_policy.hpp"
#include "support/queue_fixture.hpp"
#include "support/throwing_completion.hpp"

#include <kvlane/inbox.hpp>
#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/order_by.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using kvlane::ticket;
using kvlane::token_id;
using kvlane::test::allocations_of;
using kvlane::test::failing_allocation;
using namespace std::chrono_literals;

constexpr std::array<token_id, 6> six_tokens{1, 2, 3, 4, 5, 6};

struct by_demand {
  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return a.demand() < b.demand();
  }
};

template <class Policy>
class QueueAllocations : public kvlane::test::queue_fixture<Policy> {};
using shipped = testing::Types<kvlane::cache_aware, kvlane::seed_order, kvlane::fcfs, kvlane::order_by<by_demand>>;
TYPED_TEST_SUITE(QueueAllocations, shipped);

TYPED_TEST(QueueAllocations, WithNobodyWaitingAdmittingAndReleasingAllocateNothing) {
  this->open({.lanes = 2});
  EXPECT_EQ(allocations_of([&] {
              auto slot = this->queue().try_admit({.prompt = six_tokens});
              ticket place;
              auto other = this->queue().enqueue({.prompt = six_tokens}, place, [](admission) {});
              slot->release();
              (*other)->complete({.prompt_tokens = 1, .prefill = 1ms});
            }),
            0U);
}

TYPED_TEST(QueueAllocations, RefusingAllocatesNothing) {
  this->open({.lanes = 1, .max_waiting = 0});
  this->send({.kv_demand = 1});
  EXPECT_EQ(allocations_of([&] {
              ticket place;
              (void)this->queue().try_admit({.prompt = six_tokens});
              (void)this->queue().enqueue({.prompt = six_tokens}, place, [](admission) {});
              (void)this->queue().enqueue({.prompt = six_tokens, .max_wait = 0s}, place, [](admission) {});
              (void)this->queue().enqueue({.kv_demand = 1'000'000}, place, [](admission) {});
              (void)this->queue().enqueue({.priority = 16}, place, [](admission) {});
            }),
            0U);
}

TYPED_TEST(QueueAllocations, EverythingThatHappensToThoseWhoWaitAllocatesNothing) {
  this->open({.lanes = 1, .max_waiting = 100});
  std::optional<lease> held = std::move(*this->queue().try_admit({.kv_demand = 1}));
  std::array<ticket, 60> places;
  std::uint64_t outcomes = 0;
  for (std::size_t i = 0; i < places.size(); ++i)
    ASSERT_FALSE(this->queue().enqueue({.prompt = six_tokens, .max_wait = i % 3 == 0 ? 1s : 1h}, places[i],
                                       [&](admission) { ++outcomes; }));
  EXPECT_EQ(allocations_of([&] {
              places[1].set_saved_cost(500);
              (void)places[2].info();
              (void)places[4].cancel();
              this->advance(1s);
              this->queue().expire();
              held->shrink_to(0);
              (void)held->try_grow_to(3);
              {
                auto const hold = this->queue().hold_dispatch();
              }
              held.reset();  // each of those who wait is admitted, and gives its lease back at once
              (void)this->queue().snapshot();
              this->queue().close();
            }),
            0U);
  EXPECT_EQ(outcomes, 59U);
}

TYPED_TEST(QueueAllocations, ClosingAndChangingLimitsAllocateNothingForThoseWhoWait) {
  this->open({.lanes = 0, .max_waiting = 100});
  std::array<ticket, 20> places;
  for (auto& place : places)
    ASSERT_FALSE(this->queue().enqueue({.prompt = six_tokens, .kv_demand = 50}, place, [](admission) {}));
  EXPECT_EQ(allocations_of([&] {
              this->queue().update([](limits& l) { l.kv_capacity = 49; });
              this->queue().drain();
              this->queue().close();
            }),
            0U);
}

/// Does `f` again and again, and lets each allocation of it fail in turn, until none does. `check` looks after each failure.
template <class F, class Check>
std::uint64_t with_every_allocation_failing(F const& f, Check const& check) {
  for (std::uint64_t succeeding = 0;; ++succeeding) {
    SCOPED_TRACE(testing::Message{} << "allocation " << succeeding + 1 << " fails");
    try {
      failing_allocation const fault{succeeding};
      f();
      return succeeding;
    } catch (std::bad_alloc const&) {
      check();
    }
  }
}

TYPED_TEST(QueueAllocations, IfAnAllocationFailsInEnqueueNothingHasChanged) {
  this->open({.lanes = 1});
  auto& running = this->send({.kv_demand = 1});
  this->send({.prompt = six_tokens});
  ticket place;
  std::optional<admission> outcome;
  std::array<char, 100> const large{};
  auto const before = this->queue().snapshot();
  auto const failures = with_every_allocation_failing(
      [&] {
        auto const now = this->queue().enqueue({.prompt = six_tokens, .max_wait = 1h}, place,
                                               [&outcome, large](admission a) { outcome = std::move(a), (void)large; });
        EXPECT_FALSE(now);
      },
      [&] {
        auto const after = this->queue().snapshot();
        EXPECT_EQ(after.waiting, before.waiting);
        EXPECT_EQ(after.waiting_tokens, before.waiting_tokens);
        EXPECT_EQ(after.counters.refused_in_all(), 0U);
        EXPECT_EQ(this->queue().next_deadline(), std::nullopt);
        EXPECT_EQ(this->queue().waiters(10).size(), 1U);
        EXPECT_FALSE(place.waiting());
      });
  EXPECT_GE(failures, 2U) << "the place and the prompt at least";
  EXPECT_TRUE(place.waiting());
  running.finish();
  this->finish(2);
  EXPECT_TRUE(outcome && *outcome);
}

TYPED_TEST(QueueAllocations, IfAnAllocationFailsInTryAdmitPastOthersNothingHasChanged) {
  this->open({.lanes = 2, .kv_capacity = 10});
  this->send({.kv_demand = 5});
  this->send({.kv_demand = 10});
  with_every_allocation_failing(
      [&] { EXPECT_TRUE(this->queue().try_admit({.prompt = std::span{six_tokens}.first(2)})); },
      [&] {
        auto const s = this->queue().snapshot();
        EXPECT_EQ(s.turn, 0U);
        EXPECT_EQ(s.lanes_busy, 1U);
        EXPECT_EQ(s.waiting, 1U);
      });
}

TYPED_TEST(QueueAllocations, IfAnAllocationFailsInReadmitTheLeaseStays) {
  this->open({.lanes = 1});
  auto held = std::move(*this->queue().try_admit({.kv_demand = 1}));
  auto const hold = this->queue().hold_dispatch();
  ticket place;
  with_every_allocation_failing(
      [&] {
        EXPECT_FALSE(
            this->queue().readmit(std::move(held), {.prompt = six_tokens, .max_wait = 1h}, place, [](admission) {}));
      },
      [&] {
        EXPECT_TRUE(held);
        EXPECT_EQ(this->lanes_busy(), 1U);
        EXPECT_EQ(this->depth(), 0U);
      });
  EXPECT_FALSE(held);
  EXPECT_TRUE(place.waiting());
}

class QueueExceptions : public kvlane::test::queue_fixture<kvlane::test::instrumented<kvlane::cache_aware>> {};

TEST_F(QueueExceptions, IfThePolicysInsertThrowsTheRequestHasLeftNoTrace) {
  open({.lanes = 1});
  auto& running = send({.kv_demand = 1});
  auto& waiter = send({.kv_demand = 1});
  policy.gauges().refuse_inserts = true;
  ticket place;
  EXPECT_THROW((void)queue().enqueue({.kv_demand = 1, .max_wait = 1s}, place, [](admission) {}),
               kvlane::test::insert_failed);
  EXPECT_FALSE(place.waiting());
  EXPECT_EQ(depth(), 1U);
  EXPECT_EQ(queue().next_deadline(), std::nullopt);
  running.finish();
  EXPECT_TRUE(waiter.runs());
}

TEST_F(QueueExceptions, IfThePolicysInsertThrowsNobodyPasses) {
  open({.lanes = 2, .kv_capacity = 10});
  send({.kv_demand = 5});
  auto& waiter = send({.kv_demand = 10});
  policy.gauges().refuse_inserts = true;
  EXPECT_THROW((void)queue().try_admit({.kv_demand = 1}), kvlane::test::insert_failed);
  EXPECT_EQ(lanes_busy(), 1U);
  EXPECT_EQ(waiter.place.info()->overtaken, 0U);
  EXPECT_EQ(queue().snapshot().turn, 0U);
}

TEST_F(QueueExceptions, IfTheCompletionCannotBeCopiedTheRequestHasLeftNoTrace) {
  open({.lanes = 1});
  send({.kv_demand = 1});
  kvlane::test::throwing_completion const completion;
  ticket place;
  EXPECT_THROW((void)queue().enqueue({.kv_demand = 1}, place, completion), std::runtime_error);
  EXPECT_EQ(depth(), 0U);
  EXPECT_FALSE(place.waiting());
}

TEST_F(QueueExceptions, ACompletionIsNotTouchedByAnOutcomeThatComesAtOnce) {
  open({.lanes = 1});
  kvlane::test::throwing_completion const completion;
  ticket place;
  auto const now = queue().enqueue({.kv_demand = 1}, place, completion);
  EXPECT_TRUE(now && *now);
}

TEST(InboxAllocations, AnArrivalAllocatesNothing) {
  kvlane::admission_queue queue{{.lanes = 1, .max_waiting = 50}};
  auto held = std::move(*queue.try_admit({.kv_demand = 1}));
  kvlane::inbox box;
  std::array<ticket, 20> places;
  for (std::size_t i = 0; i < places.size(); ++i) ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, places[i], box.slot(i)));
  EXPECT_EQ(allocations_of([&] {
              queue.update([](limits& l) { l.lanes = 10; });
              held.release();
              queue.close();
            }),
            0U);
  EXPECT_EQ(box.take().size(), 20U);
}

}  // namespace
