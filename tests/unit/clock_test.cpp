#include <kvlane/clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using kvlane::duration;
using kvlane::forever;
using kvlane::manual_clock;
using kvlane::saturating_add;
using kvlane::saturating_sub;
using kvlane::steady;
using kvlane::time_point;

constexpr time_point epoch{};
constexpr auto end_of_time = time_point::max();
constexpr auto start_of_time = time_point::min();
constexpr duration tick{1};

static_assert(std::is_nothrow_invocable_r_v<time_point, steady const&>);
static_assert(std::is_nothrow_invocable_r_v<time_point, manual_clock const&>);
static_assert(saturating_add(epoch, 5s) == epoch + 5s, "usable in constant expressions");

TEST(SaturatingAdd, AddsWhereThereIsRoom) {
  EXPECT_EQ(saturating_add(epoch + 1h, 30s), epoch + 1h + 30s);
  EXPECT_EQ(saturating_add(epoch + 1h, -2h), epoch - 1h);
  EXPECT_EQ(saturating_add(epoch + 1h, 0s), epoch + 1h);
}

TEST(SaturatingAdd, StopsAtTheEndOfTime) {
  EXPECT_EQ(saturating_add(end_of_time - tick, tick), end_of_time);
  EXPECT_EQ(saturating_add(end_of_time - tick, 2 * tick), end_of_time);
  EXPECT_EQ(saturating_add(end_of_time, tick), end_of_time);
  EXPECT_EQ(saturating_add(end_of_time, duration::max()), end_of_time);
  EXPECT_EQ(saturating_add(end_of_time - 2 * tick, tick), end_of_time - tick) << "the last moment but one is a moment";
}

TEST(SaturatingAdd, StopsAtTheStartOfTime) {
  EXPECT_EQ(saturating_add(start_of_time + tick, -tick), start_of_time);
  EXPECT_EQ(saturating_add(start_of_time + tick, -2 * tick), start_of_time);
  EXPECT_EQ(saturating_add(epoch - tick, duration::min()), start_of_time);
  EXPECT_EQ(saturating_add(start_of_time + 2 * tick, -tick), start_of_time + tick);
  EXPECT_EQ(saturating_add(epoch, duration::min()), start_of_time);
}

TEST(SaturatingAdd, ForeverFromAnyMomentIsNoDeadline) {
  EXPECT_EQ(saturating_add(epoch + 1h, forever), end_of_time);
  EXPECT_EQ(saturating_add(epoch, forever), end_of_time);
  EXPECT_EQ(saturating_add(epoch - 1h, forever), end_of_time);
  EXPECT_EQ(saturating_add(start_of_time, forever), end_of_time);
}

TEST(SaturatingSub, SubtractsInBothDirections) {
  EXPECT_EQ(saturating_sub(epoch + 3h, epoch + 1h), 2h);
  EXPECT_EQ(saturating_sub(epoch + 1h, epoch + 3h), -2h);
  EXPECT_EQ(saturating_sub(epoch - 1h, epoch + 1h), -2h);
  EXPECT_EQ(saturating_sub(epoch, epoch), 0s);
}

TEST(SaturatingSub, StopsAtWhatADurationCanHold) {
  EXPECT_EQ(saturating_sub(end_of_time - tick, epoch - tick), duration::max());
  EXPECT_EQ(saturating_sub(end_of_time - tick, epoch - 2 * tick), duration::max());
  EXPECT_EQ(saturating_sub(end_of_time - 2 * tick, epoch - tick), duration::max() - tick);
  EXPECT_EQ(saturating_sub(epoch + 1h, start_of_time), duration::max());
  EXPECT_EQ(saturating_sub(start_of_time, epoch + tick), duration::min());
  EXPECT_EQ(saturating_sub(start_of_time, end_of_time), duration::min());
  EXPECT_EQ(saturating_sub(start_of_time + tick, epoch + tick), duration::min());
  EXPECT_EQ(saturating_sub(start_of_time + 2 * tick, epoch + tick), duration::min() + tick);
}

TEST(SaturatingSub, FromNoDeadlineItIsForeverToAnywhere) {
  EXPECT_EQ(saturating_sub(end_of_time, epoch + 1h), forever);
  EXPECT_EQ(saturating_sub(end_of_time, end_of_time), forever);
  EXPECT_EQ(saturating_sub(end_of_time, start_of_time), forever);
}

TEST(ManualClock, StandsStillUntilItIsMoved) {
  manual_clock clock{epoch + 5s};
  EXPECT_EQ(clock(), epoch + 5s);
  EXPECT_EQ(clock(), epoch + 5s);
  clock.advance(250ms);
  EXPECT_EQ(clock(), epoch + 5250ms);
  clock.advance(-1s);
  EXPECT_EQ(clock(), epoch + 4250ms);
  clock.set(epoch + 9s);
  EXPECT_EQ(clock(), epoch + 9s);
}

TEST(ManualClock, StartsWhereThereAreMomentsBeforeIt) { EXPECT_EQ(manual_clock{}(), epoch + 1h); }

TEST(ManualClock, CopiesShareTheirTime) {
  manual_clock mine;
  auto given_away = mine;
  mine.advance(7s);
  EXPECT_EQ(given_away(), epoch + 1h + 7s);
  given_away.set(epoch);
  EXPECT_EQ(mine(), epoch);
}

TEST(ManualClock, ClocksThatAreNoCopiesDoNotShare) {
  manual_clock one;
  manual_clock const other;
  one.advance(1s);
  EXPECT_EQ(other(), epoch + 1h);
}

TEST(Steady, IsTheSteadyClock) {
  auto const before = std::chrono::steady_clock::now();
  auto const told = steady{}();
  auto const after = std::chrono::steady_clock::now();
  EXPECT_LE(before, told);
  EXPECT_LE(told, after);
}

}  // namespace
