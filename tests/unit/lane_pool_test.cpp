#include <kvlane/lane_pool.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

namespace {

using kvlane::ensure_lanes_fit;
using kvlane::lane_id;
using kvlane::lane_pool;

/// Takes `n` lanes; they must be there.
void take(lane_pool& lanes, std::uint32_t n) {
  for (std::uint32_t i = 0; i != n; ++i) ASSERT_TRUE(lanes.try_take());
}

TEST(LanePool, HandsOutTheLowestFreeLane) {
  lane_pool lanes{3};
  EXPECT_EQ(lanes.try_take(), 0U);
  EXPECT_EQ(lanes.try_take(), 1U);
  EXPECT_EQ(lanes.try_take(), 2U);
  lanes.give_back(1);
  lanes.give_back(0);
  EXPECT_EQ(lanes.try_take(), 0U);
  EXPECT_EQ(lanes.try_take(), 1U);
}

TEST(LanePool, HandsOutNothingWhenAllAreBusy) {
  lane_pool lanes{2};
  take(lanes, 2);
  EXPECT_EQ(lanes.try_take(), std::nullopt);
  EXPECT_EQ(lanes.try_take(0), std::nullopt);
  lanes.give_back(1);
  EXPECT_EQ(lanes.try_take(), 1U);
}

TEST(LanePool, CountsBusyAndFreeLanes) {
  lane_pool lanes{3};
  EXPECT_EQ(lanes.size(), 3U);
  EXPECT_EQ(lanes.busy(), 0U);
  EXPECT_EQ(lanes.free(), 3U);
  take(lanes, 2);
  EXPECT_EQ(lanes.busy(), 2U);
  EXPECT_EQ(lanes.free(), 1U);
  EXPECT_TRUE(lanes.is_busy(0));
  EXPECT_TRUE(lanes.is_busy(1));
  EXPECT_FALSE(lanes.is_busy(2));
  EXPECT_FALSE(lanes.is_busy(3)) << "there is no such lane";
  EXPECT_FALSE(lanes.is_busy(UINT32_MAX));
  lanes.give_back(0);
  EXPECT_FALSE(lanes.is_busy(0));
  EXPECT_EQ(lanes.busy(), 1U);
}

TEST(LanePool, HandsOutThePreferredLaneWhereItIsFree) {
  lane_pool lanes{4};
  EXPECT_EQ(lanes.try_take(2), 2U);
  EXPECT_EQ(lanes.try_take(2), 0U) << "busy: the lowest free one instead";
  EXPECT_EQ(lanes.try_take(4), 1U) << "there is no such lane";
  EXPECT_EQ(lanes.try_take(UINT32_MAX), 3U);
}

TEST(LanePool, WithoutLanesHandsOutNothing) {
  lane_pool lanes{0};
  EXPECT_EQ(lanes.free(), 0U);
  EXPECT_EQ(lanes.try_take(), std::nullopt);
  EXPECT_EQ(lanes.try_take(0), std::nullopt);
  EXPECT_FALSE(lanes.is_busy(0));
  lanes.resize(1);
  EXPECT_EQ(lanes.try_take(), 0U);
}

TEST(LanePool, RaisingAddsLanesAboveTheOldOnes) {
  lane_pool lanes{1};
  take(lanes, 1);
  lanes.resize(130);
  EXPECT_EQ(lanes.free(), 129U);
  EXPECT_TRUE(lanes.is_busy(0)) << "busy lanes stay busy when the pool grows";
  for (lane_id lane = 1; lane != 130; ++lane) EXPECT_EQ(lanes.try_take(), lane);
  EXPECT_EQ(lanes.try_take(), std::nullopt);
}

TEST(LanePool, LoweringRevokesNothing) {
  lane_pool lanes{4};
  take(lanes, 4);
  lanes.resize(2);
  EXPECT_EQ(lanes.size(), 2U);
  EXPECT_EQ(lanes.busy(), 4U);
  EXPECT_EQ(lanes.free(), 0U);
  EXPECT_TRUE(lanes.is_busy(3));
}

TEST(LanePool, AfterLoweringIsFreeOnlyWhatAllBusyLanesLeaveOfTheNewSize) {
  lane_pool lanes{4};
  take(lanes, 4);
  lanes.resize(2);
  lanes.give_back(0);
  lanes.give_back(1);
  EXPECT_EQ(lanes.free(), 0U) << "lanes 2 and 3 still run";
  EXPECT_EQ(lanes.try_take(), std::nullopt);
  lanes.give_back(3);
  EXPECT_EQ(lanes.free(), 1U);
  EXPECT_EQ(lanes.try_take(3), 0U) << "a lane above the new size is no longer handed out";
  EXPECT_EQ(lanes.free(), 0U);
  lanes.give_back(2);
  EXPECT_EQ(lanes.try_take(2), 1U);
}

TEST(LanePool, LoweringToNothingAndRaisingAgainKeepsBusyLanesBusy) {
  lane_pool lanes{2};
  take(lanes, 1);
  lanes.resize(0);
  EXPECT_EQ(lanes.free(), 0U);
  lanes.resize(2);
  EXPECT_EQ(lanes.free(), 1U);
  EXPECT_EQ(lanes.try_take(0), 1U);
}

TEST(LanePool, AsManyLanesAsANumberCanHoldWorkLikeFew) {
  lane_pool lanes{UINT32_MAX};
  EXPECT_EQ(lanes.free(), UINT32_MAX);
  EXPECT_EQ(lanes.try_take(), 0U);
  EXPECT_EQ(lanes.try_take(UINT32_MAX - 1), UINT32_MAX - 1);
  EXPECT_EQ(lanes.try_take(UINT32_MAX), 1U) << "lanes are numbered from 0";
  EXPECT_EQ(lanes.free(), UINT32_MAX - 3);
  lanes.give_back(UINT32_MAX - 1);
  EXPECT_FALSE(lanes.is_busy(UINT32_MAX - 1));
}

TEST(LanePool, BehavesLikeASetOfLanesUnderRandomUse) {
  constexpr auto seed = 20240917U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  lane_pool lanes{5};
  std::uint32_t size = 5;
  std::set<lane_id> busy;
  auto const lowest = [&] {
    lane_id lane = 0;
    while (busy.contains(lane)) ++lane;
    return lane;
  };
  for (int step = 0; step != 20'000; ++step) {
    switch (random() % 8) {
      case 0: lanes.resize(size = static_cast<std::uint32_t>(random() % 200)); break;
      case 1:
      case 2:
      case 3:
        if (!busy.empty()) {
          auto const gone = std::next(busy.begin(), static_cast<std::ptrdiff_t>(random() % busy.size()));
          lanes.give_back(*gone);
          busy.erase(gone);
        }
        break;
      default: {
        auto const wish = static_cast<lane_id>(random() % 220);
        auto const wished = random() % 2 == 0;
        auto const got = wished ? lanes.try_take(wish) : lanes.try_take();
        if (busy.size() >= size) {
          ASSERT_EQ(got, std::nullopt) << "step " << step;
        } else {
          ASSERT_EQ(got, wished && wish < size && !busy.contains(wish) ? wish : lowest()) << "step " << step;
          busy.insert(*got);
        }
      }
    }
    ASSERT_EQ(lanes.busy(), busy.size()) << "step " << step;
    ASSERT_EQ(lanes.free(), busy.size() < size ? size - busy.size() : 0) << "step " << step;
  }
}

TEST(EnsureLanesFit, TakesWhatTheEngineHas) {
  EXPECT_NO_THROW(ensure_lanes_fit(8, 8, "--parallel"));
  EXPECT_NO_THROW(ensure_lanes_fit(0, 8, "--parallel"));
  EXPECT_NO_THROW(ensure_lanes_fit(UINT32_MAX, 0, "--parallel")) << "the engine did not tell";
}

TEST(EnsureLanesFit, NamesTheOptionAndBothNumbers) {
  try {
    ensure_lanes_fit(9, 8, "--parallel");
    FAIL() << "nine lanes of eight were taken";
  } catch (std::invalid_argument const& e) {
    EXPECT_STREQ(e.what(), "--parallel is 9, but the engine has 8 lanes");
  }
}

#ifndef NDEBUG
TEST(LanePoolDeathTest, GivingBackALaneThatIsNotBusyIsABugInTheCaller) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  lane_pool lanes{2};
  EXPECT_DEATH(lanes.give_back(0), "a lane was given back that is not busy");
  EXPECT_DEATH(lanes.give_back(1000), "a lane was given back that is not busy");
}
#endif

}  // namespace
