#include <kvlane/service_estimator.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kvlane::active_work;
using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::queued_work;
using kvlane::service_estimator;
using kvlane::work;

constexpr work hundred_and_hundred{.prompt_tokens = 100, .decode_tokens = 100};

static_assert(!std::is_copy_constructible_v<queued_work> && std::is_nothrow_move_constructible_v<queued_work>);
static_assert(!std::is_copy_constructible_v<active_work> && std::is_nothrow_move_constructible_v<active_work>);

/// An estimator that has seen 1 ms for a token of either phase.
class ServiceEstimator : public testing::Test {
 protected:
  ServiceEstimator() { EXPECT_TRUE(estimator_.observe_completed(hundred_and_hundred, 100ms, 100ms)); }

  service_estimator estimator_;
};

TEST(FreshServiceEstimator, PredictsNothingAndRefusesNobody) {
  service_estimator estimator;
  EXPECT_EQ(estimator.predicted_wait(), std::nullopt);
  auto const running = estimator.start_active({.prompt_tokens = 1'000'000, .decode_tokens = 1'000'000});
  EXPECT_EQ(estimator.predicted_wait(), std::nullopt);
  EXPECT_TRUE(estimator.reserve_queued(hundred_and_hundred, 0ms)) << "unknown rates never refuse";
}

TEST_F(ServiceEstimator, PredictsTheWorkThatRuns) {
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
  auto running = estimator_.start_active(hundred_and_hundred);
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
  running.release();
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
}

TEST_F(ServiceEstimator, RefusesAWaitBelowThePredictedOne) {
  auto const running = estimator_.start_active(hundred_and_hundred);
  auto const refused = estimator_.reserve_queued({.prompt_tokens = 1}, 199ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::would_time_out);
  EXPECT_EQ(refused.error().predicted_wait(), 200ms);
  EXPECT_EQ(refused.error().message(), "the predicted wait of 200 ms is above the limit of 199 ms");
  EXPECT_EQ(refused.error().facts().retry_after, 1ms) << "come back when the wait is short enough";
  EXPECT_EQ(refused.error().retry_after(), 1s);
  EXPECT_EQ(estimator_.predicted_wait(), 200ms) << "what was refused does not count";
}

TEST_F(ServiceEstimator, AcceptsAWaitThatIsJustLongEnough) {
  auto const running = estimator_.start_active(hundred_and_hundred);
  EXPECT_TRUE(estimator_.reserve_queued({.prompt_tokens = 1}, 200ms)) << "only a wait above the limit is refused";
  EXPECT_TRUE(estimator_.reserve_queued({.prompt_tokens = 1}));
}

TEST_F(ServiceEstimator, DoesNotCountAWorksOwnSizeAgainstIt) {
  EXPECT_TRUE(estimator_.reserve_queued({.prompt_tokens = 1'000'000}, 0ms)) << "nothing is ahead of it";
}

TEST_F(ServiceEstimator, CountsQueuedWorkAgainstTheNext) {
  auto const first = estimator_.reserve_queued({.prompt_tokens = 60, .decode_tokens = 40}, 1s);
  ASSERT_TRUE(first);
  EXPECT_FALSE(estimator_.reserve_queued({.prompt_tokens = 1}, 99ms));
  EXPECT_TRUE(estimator_.reserve_queued({.prompt_tokens = 1}, 100ms));
}

TEST_F(ServiceEstimator, CountsQueuedWorkUntilItIsDroppedAlsoWhenItWasPromoted) {
  estimator_.set_concurrency(2);
  auto waiting = estimator_.reserve_queued({.prompt_tokens = 80, .decode_tokens = 20}, 1s);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(estimator_.predicted_wait(), 50ms);
  {
    auto const running = (*std::move(waiting)).promote();
    EXPECT_EQ(estimator_.predicted_wait(), 50ms);
  }
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
}

TEST_F(ServiceEstimator, QueuedWorkThatIsDroppedLeavesNoTrace) {
  {
    auto const waiting = estimator_.reserve_queued(hundred_and_hundred, 1s);
    EXPECT_EQ(estimator_.predicted_wait(), 200ms);
  }
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
}

TEST_F(ServiceEstimator, AConcurrencyOfNoneCountsAsOne) {
  auto const running = estimator_.start_active(hundred_and_hundred);
  estimator_.set_concurrency(4);
  EXPECT_EQ(estimator_.predicted_wait(), 50ms);
  estimator_.set_concurrency(0);
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
}

TEST_F(ServiceEstimator, ReleasingTwiceGivesBackOnce) {
  auto const other = estimator_.start_active(hundred_and_hundred);
  auto running = estimator_.start_active(hundred_and_hundred);
  running.release();
  running.release();
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
  auto waiting = estimator_.reserve_queued(hundred_and_hundred);
  ASSERT_TRUE(waiting);
  waiting->release();
  waiting->release();
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
}

TEST_F(ServiceEstimator, HandlesCountOnceWhereverTheyAreMoved) {
  auto first = estimator_.start_active(hundred_and_hundred);
  active_work second{std::move(first)};
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
  first.release();
  EXPECT_EQ(estimator_.predicted_wait(), 200ms) << "the handle was moved from";
  second = estimator_.start_active({.prompt_tokens = 7});
  EXPECT_EQ(estimator_.predicted_wait(), 7ms) << "assigning gives the old work back";
  second = active_work{};
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
}

TEST_F(ServiceEstimator, PromotingNothingIsNothing) {
  auto const running = queued_work{}.promote();
  EXPECT_EQ(estimator_.predicted_wait(), 0ms);
}

TEST_F(ServiceEstimator, IgnoresNonsenseAndSaysSo) {
  EXPECT_FALSE(estimator_.observe_completed({}, 0ms, 0ms));
  EXPECT_FALSE(estimator_.observe_completed(hundred_and_hundred, -1ms, 0ms));
  EXPECT_FALSE(estimator_.observe_completed(hundred_and_hundred,
                                            fractional_ms{std::numeric_limits<double>::quiet_NaN()},
                                            fractional_ms{std::numeric_limits<double>::infinity()}));
  auto const running = estimator_.start_active(hundred_and_hundred);
  EXPECT_EQ(estimator_.predicted_wait(), 200ms);
}

TEST_F(ServiceEstimator, SumsBeyondSixtyFourBitsDoNotWrapAround) {
  constexpr auto half = std::uint64_t{1} << 63;
  auto const first = estimator_.start_active({.prompt_tokens = half});
  {
    auto const second = estimator_.start_active({.prompt_tokens = half});
    EXPECT_EQ(estimator_.predicted_wait(), fractional_ms{0x1p64});
    auto const third = estimator_.reserve_queued({.decode_tokens = 2 * half - 1});
    EXPECT_EQ(estimator_.predicted_wait(), fractional_ms{0x1p65});
    EXPECT_FALSE(estimator_.reserve_queued({.prompt_tokens = 1}, 1h));
  }
  EXPECT_EQ(estimator_.predicted_wait(), fractional_ms{0x1p63}) << "and come back exactly";
}

TEST(ServiceEstimatorHandles, OutliveTheEstimator) {
  auto estimator = std::make_unique<service_estimator>();
  auto running = estimator->start_active(hundred_and_hundred);
  auto waiting = estimator->reserve_queued(hundred_and_hundred);
  auto promoted = estimator->reserve_queued(hundred_and_hundred);
  estimator.reset();
  running.release();
  ASSERT_TRUE(promoted);
  auto const late = (*std::move(promoted)).promote();
}

TEST_F(ServiceEstimator, IsSafeToShareBetweenThreads) {
  constexpr int rounds = 2000;
  auto const serve = [&] {
    for (int i = 0; i != rounds; ++i) {
      auto waiting = estimator_.reserve_queued({.prompt_tokens = 3, .decode_tokens = 4}, 1h);
      if (!waiting) continue;
      auto running = (*std::move(waiting)).promote();
      estimator_.set_concurrency(static_cast<std::uint32_t>(i % 3));
      (void)estimator_.observe_completed({.prompt_tokens = 3, .decode_tokens = 4}, 3ms, 4ms);
      EXPECT_GT(estimator_.predicted_wait(), fractional_ms{}) << "the own work is in it";
      auto const also_running = estimator_.start_active({.prompt_tokens = 1});
      if (i % 2 == 0) running.release();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i != 4; ++i) threads.emplace_back(serve);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(estimator_.predicted_wait(), 0ms) << "all work has left";
}

}  // namespace
