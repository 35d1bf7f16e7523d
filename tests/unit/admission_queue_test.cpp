// The queue as a type: what it is made of, and that its parts can be exchanged. What it does is told by the files
// queue_*_test.cpp.

#include "support/queue_fixture.hpp"

#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/order_by.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace {

using kvlane::admission;
using kvlane::admission_queue;
using kvlane::lease;
using kvlane::ticket;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<admission_queue> && !std::is_move_constructible_v<admission_queue>);
static_assert(!std::is_copy_constructible_v<lease> && std::is_nothrow_move_constructible_v<lease>);
static_assert(!std::is_copy_assignable_v<lease> && std::is_nothrow_move_assignable_v<lease>);
static_assert(!std::is_copy_constructible_v<ticket> && std::is_nothrow_move_constructible_v<ticket>);
static_assert(!std::is_copy_constructible_v<kvlane::dispatch_hold>);
static_assert(std::is_nothrow_destructible_v<lease> && std::is_nothrow_destructible_v<ticket>);
static_assert(!std::is_copy_constructible_v<admission> && std::is_nothrow_move_constructible_v<admission>);
static_assert(std::is_trivially_copyable_v<kvlane::request> && std::is_trivially_copyable_v<kvlane::rejection>);

TEST(AdmissionQueue, IsUsableWithoutNamingAnyOfItsParts) {
  admission_queue queue{{.lanes = 1, .kv_capacity = 1000}};
  auto slot = queue.try_admit({.prompt_tokens = 100, .max_tokens = 50, .tag = 7});
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->lane(), 0U);
  EXPECT_EQ(slot->tokens(), 150U);
  EXPECT_EQ(slot->tag(), 7U);
  EXPECT_EQ(slot->waited(), 0ms);
  EXPECT_EQ(slot->overtaken(), 0U);
  slot->complete({.prompt_tokens = 100, .decode_tokens = 40, .prefill = 50ms, .decode = 400ms});
  EXPECT_FALSE(*slot);
  EXPECT_EQ(queue.predicted_wait(), kvlane::fractional_ms{0});
  kvlane::test::expect_nothing_left(queue);
}

TEST(AdmissionQueue, OfNothingIsADefaultConstructedAdmissionWithAReason) {
  admission const nothing;
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), kvlane::errc::invalid_request);
  EXPECT_EQ(nothing.error().error_code(), kvlane::errc::invalid_request);
}

TEST(AdmissionQueue, MayBeUsedByOneThreadWithoutAMutex) {
  kvlane::basic_admission_queue<kvlane::fcfs, kvlane::null_observer, kvlane::null_mutex> queue{{.lanes = 1}};
  auto running = queue.try_admit({.kv_demand = 1});
  ticket place;
  std::optional<admission> outcome;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, place, [&](admission a) { outcome = std::move(a); }));
  running->release();
  EXPECT_TRUE(outcome && *outcome);
  outcome.reset();
  kvlane::test::expect_nothing_left(queue);
}

TEST(AdmissionQueue, TakesCompletionsThatCannotBeCopied) {
  admission_queue queue{{.lanes = 1}};
  auto running = queue.try_admit({.kv_demand = 1});
  ticket place;
  std::optional<int> seen;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, place, [&seen, token = std::make_unique<int>(5)](admission) mutable {
    seen = *token;
    token.reset();
  }));
  running->release();
  EXPECT_EQ(seen, 5);
}

TEST(AdmissionQueue, TakesCompletionsThatAreNamedObjectsByCopy) {
  admission_queue queue{{.lanes = 1}};
  auto running = queue.try_admit({.kv_demand = 1});
  auto const count = std::make_shared<int>(0);
  auto completion = [count](admission) { ++*count; };
  ticket a;
  ticket b;
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, a, completion));
  ASSERT_FALSE(queue.enqueue({.kv_demand = 1}, b, completion));
  running->release();
  EXPECT_EQ(*count, 2);
  EXPECT_EQ(count.use_count(), 2) << "the copies have gone";
}

TEST(AdmissionQueue, ViewsOfARequestNeedNotLiveLongerThanTheCall) {
  kvlane::basic_admission_queue<kvlane::cache_aware> queue{{.lanes = 1}};
  auto running = queue.try_admit({.kv_demand = 1});
  ticket places[2];
  std::vector<int> order;
  for (int i = 0; i < 2; ++i) {
    auto const prompt = std::make_unique<kvlane::token_id[]>(1000);
    prompt[999] = i;
    ASSERT_FALSE(
        queue.enqueue({.prompt = {prompt.get(), 1000}}, places[i], [&order, i](admission) { order.push_back(i); }));
  }
  running->release();
  EXPECT_EQ(order.size(), 2U);
}

TEST(AdmissionQueue, TellsTheTimeOfItsClock) {
  kvlane::manual_clock clock;
  kvlane::basic_admission_queue<kvlane::fcfs, kvlane::null_observer, std::mutex, kvlane::manual_clock> queue{
      {}, kvlane::fcfs{}, {}, clock};
  EXPECT_EQ(queue.now(), clock());
  clock.advance(3s);
  EXPECT_EQ(queue.now(), clock());
}

/// A policy of ten lines, with everything that is optional left out: last come, first served.
struct latest_first {
  class waiter : public kvlane::waiter_base {
   public:
    waiter* below = nullptr;

   protected:
    ~waiter() = default;
  };
  void insert(waiter& w) noexcept { w.below = std::exchange(top, &w); }
  void erase(waiter& w, kvlane::departure) noexcept {
    auto** at = &top;
    while (*at != &w) at = &(*at)->below;
    *at = w.below;
  }
  void rescore(waiter&) noexcept {}
  waiter* pick(kvlane::pick_query const& q) noexcept {
    auto* w = top;
    while (w != nullptr && (w->demand() > q.free_tokens || w->priority() < q.min_priority)) w = w->below;
    return w;
  }
  waiter* top = nullptr;
};

class CustomPolicy : public kvlane::test::queue_fixture<latest_first> {};

TEST_F(CustomPolicy, DecidesTheOrderButNotTheBoundOnOvertaking) {
  open({.lanes = 1, .max_overtakes = 2});
  auto& running = send({.kv_demand = 1});
  for (int i = 0; i < 4; ++i) send({.kv_demand = 1});
  running.finish();
  finish(5);
  finish(4);
  finish(2);
  EXPECT_EQ(admitted, (kvlane::test::tags{1, 5, 4, 2, 3})) << "the oldest is due after two";
}

}  // namespace
