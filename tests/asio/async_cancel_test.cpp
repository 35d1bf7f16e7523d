// Per-operation cancellation: exactly one outcome, whoever is faster, and nothing is lost.

#include "support/async_fixture.hpp"
#include "support/calling_observer.hpp"

#include <kvlane/error.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace {

using kvlane::admission;
using kvlane::async_admit;
using kvlane::errc;
using kvlane::test::AsyncAdmit;
using namespace std::chrono_literals;

class AsyncCancel : public AsyncAdmit {
 protected:
  net::cancellation_signal signal;

  void wait(kvlane::request const& r = {.kv_demand = 1}) {
    async_admit(context, queue, r, net::bind_cancellation_slot(signal.slot(), keep()));
  }
};

TEST_F(AsyncCancel, TakesTheRequestOutOfLineAtOnceAndSaysHowLongItHadWaited) {
  auto const running = take();
  wait({.kv_demand = 1, .tag = 5});
  signal.emit(net::cancellation_type::total);
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(outcomes.empty()) << "the handler ran inside emit";
  context.run();
  ASSERT_EQ(refusal(), errc::cancelled);
  EXPECT_EQ(outcomes[0].error().tag(), 5U);
}

TEST_F(AsyncCancel, AllTypesOfCancellationDoTheSame) {
  auto const running = take();
  for (auto const type : {net::cancellation_type::total, net::cancellation_type::partial,
                          net::cancellation_type::terminal, net::cancellation_type::all}) {
    wait();
    signal.emit(type);
    run_ready();
    ASSERT_EQ(refusal(), errc::cancelled);
    outcomes.clear();
  }
}

TEST_F(AsyncCancel, NoneIsNoCancellation) {
  auto running = take();
  wait();
  signal.emit(net::cancellation_type::none);
  EXPECT_EQ(waiting(), 1U);
  running.release();
  context.run();
  EXPECT_TRUE(outcomes.at(0));
}

TEST_F(AsyncCancel, TwiceIsOnce) {
  auto const running = take();
  wait();
  signal.emit(net::cancellation_type::total);
  signal.emit(net::cancellation_type::total);
  context.run();
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST_F(AsyncCancel, TheFollowersMoveUp) {
  auto running = queue.try_admit({.kv_demand = 4'000});
  queue.update([](auto& l) { l.lanes = 2; });
  async_admit(context, queue, {.kv_demand = 4'000}, net::bind_cancellation_slot(signal.slot(), keep()));
  // The first does not fit beside the one that runs, and is overtaken no more: so it holds the second back.
  queue.update([](auto& l) { l.max_overtakes = 0; });
  bool follower_runs = false;
  async_admit(context, queue, {.kv_demand = 1}, [&](admission const& a) { follower_runs = bool{a}; });
  run_ready();
  EXPECT_FALSE(follower_runs);
  signal.emit(net::cancellation_type::total);
  context.run();
  EXPECT_TRUE(follower_runs);
}

TEST_F(AsyncCancel, AnOutcomeThatIsOnItsWayStands) {
  auto running = take();
  wait();
  running.release();
  signal.emit(net::cancellation_type::total);
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0]) << "a lease that had been handed over was taken back";
}

TEST_F(AsyncCancel, AnImmediateOutcomeStands) {
  wait();
  signal.emit(net::cancellation_type::total);
  context.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0]);
}

TEST_F(AsyncCancel, AfterTheHandlerHasRunItMeansNothing) {
  wait();
  context.run();
  signal.emit(net::cancellation_type::total);
  EXPECT_TRUE(outcomes.at(0));
}

TEST_F(AsyncCancel, AfterTheQueueHasGoneItMeansNothing) {
  auto brief = std::make_unique<kvlane::admission_queue>();
  auto running = brief->try_admit({.kv_demand = 1});
  async_admit(context, *brief, {.kv_demand = 1}, net::bind_cancellation_slot(signal.slot(), keep()));
  brief.reset();
  running = {};
  signal.emit(net::cancellation_type::total);
  context.run();
  EXPECT_EQ(refusal(), errc::shutting_down);
}

TEST_F(AsyncCancel, TheSlotMayServeTheNextOperationWhileTheLastOneWaits) {
  auto running = take();
  wait();
  wait();
  signal.emit(net::cancellation_type::total);  // the slot belongs to the second
  EXPECT_EQ(waiting(), 1U);
  running.release();
  context.run();
  ASSERT_EQ(outcomes.size(), 2U);
}

TEST_F(AsyncCancel, ASignalThatIsKeptKeepsNoPlaceInLine) {
  auto counted = std::make_shared<int>(0);
  {
    struct counting_policy : kvlane::fcfs {
      explicit counting_policy(std::shared_ptr<int> c = {}) : alive{std::move(c)} {}
      std::shared_ptr<int> alive;
    };
    kvlane::basic_admission_queue<counting_policy> brief{{}, counting_policy{counted}};
    auto running = brief.try_admit({.kv_demand = 1});
    async_admit(context, brief, {.kv_demand = 1}, net::bind_cancellation_slot(signal.slot(), keep()));
    running = {};
    context.run();
    outcomes.clear();
  }
  EXPECT_EQ(counted.use_count(), 1) << "the state of the queue still lives in the slot";
}

TEST_F(AsyncCancel, NorDoesOneOfAnOperationWhoseOutcomeCameWhileItStarted) {
  struct counting_policy : kvlane::fcfs {
    explicit counting_policy(std::shared_ptr<int> c = {}) : alive{std::move(c)} {}
    std::shared_ptr<int> alive;
  };
  auto const counted = std::make_shared<int>(0);
  {
    kvlane::test::calling_observer observer;
    kvlane::basic_admission_queue<counting_policy, kvlane::test::calling_observer> watched{
        {}, counting_policy{counted}, observer};
    auto running = watched.try_admit({.kv_demand = 1});
    observer.when_queued([&] {
      running->release();
      context.poll();
      EXPECT_EQ(outcomes.size(), 1U);
    });
    async_admit(context, watched, {.kv_demand = 1}, net::bind_cancellation_slot(signal.slot(), keep()));
    outcomes.clear();
  }
  EXPECT_EQ(counted.use_count(), 1) << "the state of the queue still lives in the slot";
}

/// A handler whose executor asks for cancellation at the moment when the operation has been set up.
TEST_F(AsyncCancel, AskedForWhileTheOperationStartsItComesAfterJoining) {
  // The queue's clock is read while the operation joins: the earliest moment at which a signal may come.
  struct emitting_clock {
    std::shared_ptr<std::function<void()>> hook = std::make_shared<std::function<void()>>();
    kvlane::time_point operator()() const noexcept {
      if (auto const f = std::exchange(*hook, nullptr)) f();
      return std::chrono::steady_clock::now();
    }
  };
  emitting_clock clock;
  kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, emitting_clock> brief{
      {}, {}, {}, clock};
  auto running = brief.try_admit({.kv_demand = 1});
  *clock.hook = [this] {
    // From another thread, as a signal might come; it must not wait for the queue's lock, which is held here.
    std::thread{[this] { signal.emit(net::cancellation_type::total); }}.join();
  };
  async_admit(context, brief, {.kv_demand = 1}, net::bind_cancellation_slot(signal.slot(), keep()));
  EXPECT_EQ(brief.snapshot().waiting, 0U);
  context.run();
  EXPECT_EQ(refusal(), errc::cancelled);
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)

using namespace net::experimental::awaitable_operators;

TEST_F(AsyncCancel, ATimerThatIsFasterTakesTheRequestOutOfLine) {
  auto const running = take();
  std::size_t first = 9;
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        net::steady_timer timer{context, 1ms};
        auto const outcome =
            co_await (async_admit(queue, {.kv_demand = 1}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
        first = outcome.index();
      },
      net::detached);
  context.run();
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(waiting(), 0U);
}

TEST_F(AsyncCancel, ALeaseThatLosesTheRaceAtTheLastMomentGoesBack) {
  auto running = take();
  std::size_t first = 9;
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        net::steady_timer timer{context};
        timer.expires_at(net::steady_timer::time_point::max());
        net::post(context, [&] {
          timer.cancel();     // its completion is queued first,
          running.release();  // and then the hand-over: both have won, and one of them is thrown away
        });
        auto const outcome = co_await (async_admit(queue, {.kv_demand = 1}, net::use_awaitable) ||
                                       timer.async_wait(kvlane::test::as_tuple(net::use_awaitable)));
        first = outcome.index();
      },
      net::detached);
  context.run();
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(queue.snapshot().counters.admitted, 2U) << "the hand-over did not take place";
}

TEST_F(AsyncCancel, ACoroutineThatIsCancelledLeavesTheLine) {
  auto const running = take();
  net::co_spawn(
      context,
      [&]() -> net::awaitable<void> {
        co_await net::this_coro::reset_cancellation_state(net::enable_total_cancellation());
        co_await net::this_coro::throw_if_cancelled(false);
        outcomes.push_back(co_await async_admit(queue, {.kv_demand = 1}, net::use_awaitable));
      },
      net::bind_cancellation_slot(signal.slot(), net::detached));
  context.poll();
  ASSERT_EQ(waiting(), 1U);
  signal.emit(net::cancellation_type::total);
  context.run();
  EXPECT_EQ(refusal(), errc::cancelled);
}

#endif

}  // namespace
