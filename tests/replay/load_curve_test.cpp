#include "load_curve.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using replay::load_curve;

kvlane::queue_snapshot with(std::uint64_t waiting, std::uint32_t lanes, std::uint64_t tokens) {
  kvlane::queue_snapshot s;
  s.waiting = waiting;
  s.lanes_busy = lanes;
  s.kv_tokens_used = tokens;
  return s;
}

TEST(LoadCurve, IsEmptyBeforeTimePasses) { EXPECT_TRUE(load_curve{}.points().empty()); }

TEST(LoadCurve, WeighsWhatHeldByHowLongItDid) {
  load_curve curve;
  curve.pass(4ms, with(10, 1, 100));
  curve.pass(6ms, with(0, 2, 50));
  curve.pass(5ms, with(3, 3, 3));
  auto const points = curve.points();
  ASSERT_EQ(curve.interval(), 10ms);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].waiting, 4);
  EXPECT_DOUBLE_EQ(points[0].lanes_busy, 1.6);
  EXPECT_DOUBLE_EQ(points[0].kv_tokens, 70);
  EXPECT_DOUBLE_EQ(points[1].waiting, 3) << "the last interval is shorter";
}

TEST(LoadCurve, DoublesItsIntervalsRatherThanHaveMoreThan400) {
  load_curve curve;
  for (auto i = 0; i != 400; ++i) curve.pass(10ms, with(i % 2 == 0 ? 0 : 10, 0, 0));
  EXPECT_EQ(curve.points().size(), 400U);
  curve.pass(1ms, with(7, 0, 0));
  EXPECT_EQ(curve.interval(), 20ms);
  auto const points = curve.points();
  ASSERT_EQ(points.size(), 201U);
  for (auto i = 0U; i != 200; ++i) EXPECT_DOUBLE_EQ(points[i].waiting, 5);
  EXPECT_DOUBLE_EQ(points[200].waiting, 7);
}

TEST(LoadCurve, HoldsAYearInWhichLittleHappens) {
  load_curve curve;
  curve.pass(24h * 365, with(1, 1, 1));
  auto const points = curve.points();
  EXPECT_LE(points.size(), 400U);
  EXPECT_GT(points.size(), 199U);
  EXPECT_GE(curve.interval() * static_cast<std::int64_t>(points.size()), 24h * 365);
  for (auto const& p : points) EXPECT_NEAR(p.waiting, 1, 1e-9);
}

}  // namespace
