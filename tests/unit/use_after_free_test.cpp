// What the obvious code of an owner does with tickets, leases and the queue from inside a completion. These tests say little
// by themselves: AddressSanitizer watches them.

#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::lease;
using kvlane::limits;
using kvlane::ticket;
using namespace std::chrono_literals;

/// Every test runs without an observer, which delivers in one way, and with one, which delivers in another.
template <class Observer>
class SafeUse : public kvlane::test::queue_fixture<kvlane::cache_aware, Observer> {
 protected:
  using queue_type = typename kvlane::test::queue_fixture<kvlane::cache_aware, Observer>::queue_type;

  void open_busy(std::uint32_t lanes = 1) {
    this->open({.lanes = lanes, .max_waiting = 100});
    for (std::uint32_t i = 0; i < lanes; ++i) running.push_back(std::move(*this->queue().try_admit({.kv_demand = 1})));
  }
  void TearDown() override {
    running.clear();
    kvlane::test::queue_fixture<kvlane::cache_aware, Observer>::TearDown();
  }
  std::vector<lease> running;
};
using observers = testing::Types<kvlane::null_observer, kvlane::test::recording_observer>;
TYPED_TEST_SUITE(SafeUse, observers);

TYPED_TEST(SafeUse, ATicketMayBeAssignedInsideItsOwnCompletion) {
  this->open_busy();
  auto place = std::make_unique<ticket>();
  int runs = 0;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, *place, [&](admission) {
    *place = ticket{};
    ++runs;
  }));
  this->running.clear();
  EXPECT_EQ(runs, 1);
}

TYPED_TEST(SafeUse, ATicketMayBeDestroyedInsideItsOwnCompletion) {
  this->open_busy();
  auto place = std::make_unique<ticket>();
  int runs = 0;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, *place, [&](admission a) {
    place.reset();
    ++runs;
    a->release();
    ++runs;
  }));
  this->running.clear();
  EXPECT_EQ(runs, 2);
}

TYPED_TEST(SafeUse, ATicketMayBeMovedAwayInsideItsOwnCompletion) {
  this->open_busy();
  auto place = std::make_unique<ticket>();
  ticket elsewhere;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, *place, [&](admission) {
    elsewhere = std::move(*place);
    place.reset();
  }));
  this->running.clear();
  EXPECT_FALSE(elsewhere.waiting());
}

/// Somebody who keeps both its place and what it got there.
struct owner {
  ticket place;
  lease slot;
};

TYPED_TEST(SafeUse, AnOwnerMayBeErasedByItsOwnCompletion) {
  this->open_busy();
  std::map<int, owner> owners;
  for (int id = 0; id < 5; ++id) {
    auto& mine = owners[id];
    ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, mine.place, [&owners, id](admission a) {
      owners.at(id).slot = std::move(*a);
      owners.erase(id);
    }));
  }
  this->running.clear();
  EXPECT_TRUE(owners.empty());
}

TYPED_TEST(SafeUse, ACompletionMayChangeTheContainerInWhichALeaseIsJustDying) {
  this->open_busy();
  std::map<int, owner> owners;
  owners[0].slot = std::move(this->running.front());
  for (int id = 1; id < 20; ++id) {
    ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, owners[id].place, [&owners, id](admission a) {
      owners.at(id).slot = std::move(*a);
      owners[id + 100];  // the container grows
      owners.erase(id);  // another lease dies, and the next completion follows
    }));
  }
  owners.erase(0);
  EXPECT_EQ(owners.size(), 19U);
  EXPECT_EQ(owners.begin()->first, 101);
}

TYPED_TEST(SafeUse, AVectorOfLeasesMayBeClearedByTheCompletionsThatItsElementsCause) {
  this->open_busy(4);
  std::vector<lease> mine;
  std::vector<ticket> places(20);
  for (auto& place : places)
    ASSERT_FALSE(
        this->queue().enqueue({.kv_demand = 1}, place, [&mine](admission a) { mine.push_back(std::move(*a)); }));
  auto first = std::exchange(this->running, {});
  first.clear();
  while (!mine.empty()) {
    auto const batch = std::exchange(mine, {});
  }
  EXPECT_EQ(this->lanes_busy(), 0U);
}

TYPED_TEST(SafeUse, ALeaseMayBeAssignedInTheCompletionThatItsOldValueCauses) {
  this->open_busy();
  auto& slot = this->running.front();
  ticket place;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, place, [&](admission a) { slot = std::move(*a); }));
  slot = lease{};
  EXPECT_TRUE(slot) << "what the completion put there stays";
}

TYPED_TEST(SafeUse, ALeaseMayBeDestroyedInTheCompletionThatItsReleaseCauses) {
  this->open_busy();
  auto slot = std::make_unique<lease>(std::move(this->running.front()));
  ticket place;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, place, [&](admission) { slot.reset(); }));
  slot->release();
  EXPECT_FALSE(slot);
}

TYPED_TEST(SafeUse, ALeaseMayBeDestroyedInTheCompletionThatItsShrinkingCauses) {
  this->open({.lanes = 2, .kv_capacity = 10});
  auto slot = std::make_unique<lease>(std::move(*this->queue().try_admit({.kv_demand = 10})));
  ticket place;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 5}, place, [&](admission) { slot.reset(); }));
  slot->shrink_to(1);
  EXPECT_FALSE(slot);
}

TYPED_TEST(SafeUse, TheQueueMayBeDestroyedInACallbackOfARelease) {
  this->open_busy();
  ticket place;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, place, [&](admission) { this->destroy_queue(); }));
  this->running.clear();
  EXPECT_FALSE(place.waiting());
}

TYPED_TEST(SafeUse, TheQueueMayBeDestroyedInACallbackOfItsOwnCalls) {
  auto const destroyed_by = [this](auto const& call) {
    this->open_busy();
    ticket place;
    ticket other;
    bool destroyed = false;
    ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1, .max_wait = 1s}, place, [&](admission) {
      this->destroy_queue();
      destroyed = true;
    }));
    ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, other, [](admission) {}));
    this->advance(1s);
    call(this->queue(), other);
    EXPECT_TRUE(destroyed);
    this->running.clear();
  };
  destroyed_by([](auto& queue, ticket&) { queue.expire(); });
  destroyed_by([](auto& queue, ticket&) { queue.close(); });
  destroyed_by([](auto& queue, ticket&) { queue.drain(); });
  destroyed_by([](auto& queue, ticket&) { queue.update([](limits& l) { l.lanes = 2; }); });
  destroyed_by([](auto& queue, ticket&) { (void)queue.try_admit({.kv_demand = 1}); });
  destroyed_by([](auto& queue, ticket& other) { (void)queue.enqueue({.kv_demand = 1}, other, [](admission) {}); });
  destroyed_by([](auto& queue, ticket&) { auto const hold = queue.hold_dispatch(); });
  destroyed_by([](auto&, ticket& other) { other.set_saved_cost(3); });
  destroyed_by([](auto&, ticket& other) { other.cancel(); });
  destroyed_by([](auto&, ticket& other) { other = ticket{}; });
}

TYPED_TEST(SafeUse, APlaceThatIsGivenUpByEnqueueMayDestroyTheQueueThroughAnother) {
  this->open({.lanes = 2, .kv_capacity = 10, .max_overtakes = 0});
  this->running.push_back(std::move(*this->queue().try_admit({.kv_demand = 5})));
  ticket place;
  ticket other;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 10}, place, [](admission) {}));
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 5}, other, [&](admission) { this->destroy_queue(); }));
  std::optional<kvlane::errc> answer;
  EXPECT_FALSE(this->queue().enqueue({.kv_demand = 1}, place, [&](admission a) { answer = a.error().code(); }));
  EXPECT_EQ(answer, kvlane::errc::shutting_down) << "it joined first, and then the queue went";
}

/// A completion whose destructor does something.
template <class F>
struct at_destruction {
  explicit at_destruction(F f) : call{std::make_unique<F>(std::move(f))} {}
  at_destruction(at_destruction&&) noexcept = default;
  at_destruction& operator=(at_destruction&&) = delete;
  ~at_destruction() {
    if (call) (*call)();
  }
  void operator()(admission const&) const noexcept {}
  std::unique_ptr<F> call;
};

TYPED_TEST(SafeUse, ACompletionsDestructorMayUseTheQueue) {
  this->open_busy();
  int seen = 0;
  auto const look = [this, &seen] {
    (void)this->queue().snapshot();
    (void)this->queue().try_admit({.kv_demand = 1});
    this->queue().expire();
    ++seen;
  };
  ticket granted;
  ticket cancelled;
  ticket expired;
  auto const wait = [&](ticket& place, std::optional<kvlane::duration> max_wait) {
    EXPECT_FALSE(this->queue().enqueue({.kv_demand = 1, .max_wait = max_wait}, place, at_destruction{look}));
  };
  wait(granted, {});
  wait(cancelled, {});
  wait(expired, 1s);
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_EQ(seen, 1);
  this->advance(1s);
  this->queue().expire();
  EXPECT_EQ(seen, 2);
  this->running.clear();
  EXPECT_EQ(seen, 3);
}

TYPED_TEST(SafeUse, ACompletionsDestructorMayDestroyTheQueue) {
  this->open_busy();
  ticket place;
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, place, at_destruction{[this] { this->destroy_queue(); }}));
  EXPECT_TRUE(place.cancel());
}

TYPED_TEST(SafeUse, ACompletionMayOwnTheLeaseThatOthersWaitFor) {
  this->open_busy();
  auto& owner_of_lane = this->running.front();
  ticket place;
  auto& waiter = this->send({.kv_demand = 1});
  ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, place,
                                     [held = std::make_shared<lease>(std::move(owner_of_lane))](admission) {}));
  EXPECT_TRUE(waiter.waits());
  EXPECT_TRUE(place.cancel());
  EXPECT_TRUE(waiter.runs()) << "its completion was destroyed, and with it the lease";
}

TYPED_TEST(SafeUse, OwnersMayDieOnAnotherThreadWhileTheirOutcomeIsDelivered) {
  for (int round = 0; round < 50; ++round) {
    this->open_busy();
    auto place = std::make_unique<ticket>();
    ASSERT_FALSE(this->queue().enqueue({.kv_demand = 1}, *place, [](admission) {}));
    std::thread releaser{[&] { this->running.clear(); }};
    place.reset();
    releaser.join();
    EXPECT_EQ(this->lanes_busy(), 0U);
    this->destroy_queue();
  }
}

TYPED_TEST(SafeUse, TheLastLeaseMayEndTheQueuesStateOnAnyThread) {
  this->open_busy();
  this->destroy_queue();
  std::thread{[mine = std::move(this->running)]() mutable { mine.clear(); }}.join();
  this->running.clear();
}

}  // namespace
