// Where the memory of an operation comes from, and what becomes of it when there is none.

#include "support/allocation_hooks.hpp"
#include "support/allocations.hpp"
#include "support/async_fixture.hpp"
#include "support/counted_allocator.hpp"
#include "support/scripted_executor.hpp"

#include <kvlane/error.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::test::counted_allocator;
using kvlane::test::failing_allocation;
using kvlane::test::memory_account;
using kvlane::test::scripted_executor;
using namespace std::chrono_literals;

class AsyncMemory : public kvlane::test::AsyncAdmit {
 protected:
  memory_account account;

  /// A handler with an allocator of its own.
  template <class F>
  struct allocating_handler {
    using allocator_type = counted_allocator<>;
    allocator_type get_allocator() const noexcept { return counted_allocator<>{*account}; }
    void operator()(admission a) { f(std::move(a)); }
    memory_account* account;
    F f;
  };
  template <class F>
  [[nodiscard]] allocating_handler<F> allocating(F f) {
    return {&account, std::move(f)};
  }
};

TEST_F(AsyncMemory, ComesFromTheHandlersAllocatorAndIsFreedBeforeItRuns) {
  auto running = take();
  int out_in_handler = -1;
  async_admit(context, queue, {.kv_demand = 1}, allocating([&](admission const&) { out_in_handler = account.out(); }));
  EXPECT_EQ(account.out(), 1);
  running.release();
  context.run();
  EXPECT_EQ(out_in_handler, 0);
  EXPECT_EQ(account.allocated, 1) << "more than the operation was taken from the handler's allocator";
}

TEST_F(AsyncMemory, TheReleasingThreadDoesNotTouchThatAllocator) {
  auto running = take();
  async_admit(context, queue, {.kv_demand = 1}, allocating(keep()));
  auto const before = account.freed;
  account.empty = true;
  running.release();
  EXPECT_EQ(account.freed, before);
  account.empty = false;
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncMemory, AnAllocatorThatFailsIsReportedByTheCallAndNothingHasHappened) {
  account.empty = true;
  EXPECT_THROW(async_admit(context, queue, {.kv_demand = 1}, allocating(keep())), std::bad_alloc);
  EXPECT_EQ(queue.snapshot().counters.admitted, 0U);
  EXPECT_EQ(context.run(), 0U);
}

TEST_F(AsyncMemory, AnyAllocationOfTheCallMayFailAndThenNothingHasHappened) {
  auto running = take();
  bool done = false;
  for (std::uint64_t nth = 0; !done; ++nth) {
    ASSERT_LT(nth, 100U) << "it never succeeds";
    // A context of its own each time: services are made on first use.
    net::io_context brief;
    net::cancellation_signal signal;
    auto const witness = std::make_shared<int>(0);
    try {
      auto handler = net::bind_cancellation_slot(signal.slot(), [witness](admission const&) {});
      failing_allocation const fail{nth};
      async_admit(brief, queue, {.kv_demand = 1, .max_wait = 1h}, std::move(handler));
      done = true;
    } catch (std::bad_alloc const&) {
      EXPECT_EQ(witness.use_count(), 1) << "the handler survived, nth = " << nth;
      EXPECT_EQ(waiting(), 0U) << "the request survived, nth = " << nth;
      EXPECT_EQ(brief.run(), 0U) << "work is left, nth = " << nth;
    }
  }
  EXPECT_EQ(waiting(), 0U) << "the context is gone";
}

TEST_F(AsyncMemory, AnImmediateOutcomeThatCannotBePostedIsReportedByTheCall) {
  scripted_executor const executor{context};
  executor.says().refusing = 1;
  EXPECT_THROW(async_admit(executor, queue, {.kv_demand = 1}, keep()), std::bad_alloc);
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
  EXPECT_EQ(context.run(), 0U);
}

TEST_F(AsyncMemory, AHandOverThatCannotBePostedIsTriedAgainSoon) {
  auto running = take();
  scripted_executor const executor{context};
  async_admit(executor, queue, {.kv_demand = 1}, keep());
  executor.says().refusing = 1;
  running.release();
  EXPECT_EQ(queue.snapshot().lanes_busy, 1U) << "its lease is kept for it";
  EXPECT_EQ(executor.says().taken, 0);
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0]);
}

TEST_F(AsyncMemory, OrWhenTheNextOneLeaves) {
  auto running = take();
  scripted_executor const executor{context};
  async_admit(executor, queue, {.kv_demand = 1}, keep());
  executor.says().refusing = 2;
  running.release();
  // The first is tried again, and refused again; the next one goes through, and so does the first when it is tried then.
  async_admit(executor, queue, {.kv_demand = 1'000'000}, keep());
  EXPECT_EQ(executor.says().taken, 1);
  async_admit(executor, queue, {.kv_demand = 1'000'000}, keep());
  EXPECT_EQ(executor.says().taken, 3) << "the first was not tried again";
  context.run();
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST_F(AsyncMemory, SoonAlsoWhenADeadlineIsFarAway) {
  auto running = take();
  scripted_executor const executor{context};
  async_admit(executor, queue, {.kv_demand = 1}, keep());
  executor.says().refusing = 1;
  running.release();
  async_admit(context, queue, {.kv_demand = 1, .max_wait = 1h}, keep());  // sets the timer
  while (outcomes.empty() && context.run_one_for(10s) != 0) {
  }
  EXPECT_EQ(outcomes.size(), 1U) << "it waits for the timer of somebody else";
  outcomes.clear();
  context.run();
}

/// Too large to fit into any_io_executor, which the timer needs, without allocating.
struct large_executor {
  scripted_executor small;
  std::array<char, 200> rest{};
  template <class F>
  void execute(F&& f) const {
    small.execute(std::forward<F>(f));
  }
  [[nodiscard]] net::execution_context& query(net::execution::context_t c) const noexcept { return small.query(c); }
  [[nodiscard]] static constexpr net::execution::blocking_t::never_t query(net::execution::blocking_t) noexcept {
    return net::execution::blocking.never;
  }
  [[nodiscard]] large_executor require(net::execution::blocking_t::never_t) const noexcept { return *this; }
  bool operator==(large_executor const& other) const noexcept { return small == other.small; }
};

TEST_F(AsyncMemory, AHandOverIsTriedAgainAlsoIfThereIsNoMemoryForATimer) {
  auto running = take();
  large_executor const executor{scripted_executor{context}};
  async_admit(executor, queue, {.kv_demand = 1}, keep());
  executor.small.says().refusing = 1;
  {
    failing_allocation const fail{0};
    running.release();
  }
  EXPECT_EQ(executor.small.says().taken, 0);
  async_admit(context, queue, {.kv_demand = 1'000'000}, keep());
  context.run();
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(AsyncMemory, ACallThatFailsLeavesTheDeadlinesOfOthersInForce) {
  auto const running = take();
  bool done = false;
  for (std::uint64_t nth = 0; !done; ++nth) {
    ASSERT_LT(nth, 100U) << "it never succeeds";
    async_admit(context, queue, {.kv_demand = 1, .max_wait = 3ms}, keep());
    try {
      failing_allocation const fail{nth};
      async_admit(context, queue, {.kv_demand = 1, .max_wait = 2ms}, keep());
      done = true;
    } catch (std::bad_alloc const&) {
    }
    context.restart();
    context.run_for(10s);
    ASSERT_EQ(outcomes.size(), done ? 2U : 1U) << "nth = " << nth;
    EXPECT_EQ(refusal(), kvlane::errc::timed_out);
    outcomes.clear();
  }
}

TEST_F(AsyncMemory, ACallThatDoesNotReportAFailureKeepsItsDeadline) {
  auto const running = take();
  bool done = false;
  for (std::uint64_t nth = 0; !done; ++nth) {
    ASSERT_LT(nth, 100U) << "it never succeeds";
    net::io_context brief;
    try {
      failing_allocation const fail{nth};
      async_admit(brief, queue, {.kv_demand = 1, .max_wait = 2ms}, keep());
      done = true;
    } catch (std::bad_alloc const&) {
    }
    brief.run_for(5s);
    ASSERT_EQ(outcomes.size(), done ? 1U : 0U) << "nth = " << nth;
  }
}

TEST_F(AsyncMemory, AParkedHandOverThatDiesKeepsNoPlaceInLine) {
  struct counting_policy : kvlane::fcfs {
    explicit counting_policy(std::shared_ptr<int> c = {}) : alive{std::move(c)} {}
    std::shared_ptr<int> alive;
  };
  auto const counted = std::make_shared<int>(0);
  net::cancellation_signal signal;
  {
    kvlane::basic_admission_queue<counting_policy> watched{{.lanes = 1}, counting_policy{counted}};
    auto running = watched.try_admit({.kv_demand = 1});
    net::io_context brief;
    scripted_executor const executor{brief};
    async_admit(executor, watched, {.kv_demand = 1},
                net::bind_cancellation_slot(signal.slot(), [](admission const&) { FAIL(); }));
    executor.says().refusing = 1'000'000;
    running->release();
  }
  EXPECT_EQ(counted.use_count(), 1) << "the state of the queue still lives in the slot";
}

TEST_F(AsyncMemory, AParkedHandOverDiesWithItsContext) {
  auto running = take();
  auto const witness = std::make_shared<int>(0);
  {
    net::io_context brief;
    scripted_executor const executor{brief};
    async_admit(executor, queue, {.kv_demand = 1}, [witness](admission const&) { FAIL(); });
    executor.says().refusing = 1'000'000;
    running.release();
    EXPECT_EQ(queue.snapshot().lanes_busy, 1U);
  }
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
}

TEST_F(AsyncMemory, AnExecutorThatDropsTheHandOverGivesTheLeaseBack) {
  auto running = take();
  scripted_executor const executor{context};
  auto const witness = std::make_shared<int>(0);
  async_admit(executor, queue, {.kv_demand = 1}, [witness](admission const&) { FAIL(); });
  async_admit(context, queue, {.kv_demand = 1}, keep());
  executor.says().dropping = 1;
  running.release();
  EXPECT_EQ(witness.use_count(), 1);
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncMemory, AnExecutorThatDropsAnImmediateOutcomeDoesToo) {
  scripted_executor const executor{context};
  executor.says().dropping = 1;
  auto const witness = std::make_shared<int>(0);
  async_admit(executor, queue, {.kv_demand = 1}, [witness](admission const&) { FAIL(); });
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(queue.snapshot().lanes_busy, 0U);
}

}  // namespace
