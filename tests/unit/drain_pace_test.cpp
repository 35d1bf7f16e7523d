#include <kvlane/detail/drain_pace.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace {

using namespace std::chrono_literals;
using kvlane::fractional_ms;
using kvlane::time_point;
using kvlane::detail::drain_pace;

constexpr auto from_line = true;
constexpr auto empty_line = false;
constexpr auto beginning = time_point{} + 1h;

TEST(DrainPace, IsUnknownUntilTwoWereAdmittedOutOfTheLine) {
  drain_pace pace;
  EXPECT_EQ(pace.average(), std::nullopt);
  pace.admitted(beginning, from_line);
  EXPECT_EQ(pace.average(), std::nullopt) << "one admission is no gap";
  pace.admitted(beginning + 100ms, from_line);
  EXPECT_EQ(pace.average(), 100ms);
}

TEST(DrainPace, AveragesWithAQuarterOfTheNewestGap) {
  drain_pace pace;
  pace.admitted(beginning, from_line);
  pace.admitted(beginning + 100ms, from_line);
  pace.admitted(beginning + 300ms, from_line);
  EXPECT_EQ(pace.average(), 125ms);
  pace.admitted(beginning + 300ms, from_line);
  EXPECT_EQ(pace.average(), 93.75ms);
}

TEST(DrainPace, TakesNoGapAcrossALineThatWasEmpty) {
  drain_pace pace;
  pace.admitted(beginning, from_line);
  pace.admitted(beginning + 100ms, from_line);
  pace.line_emptied();
  pace.admitted(beginning + 10h, from_line);
  EXPECT_EQ(pace.average(), 100ms);
  pace.admitted(beginning + 10h + 500ms, from_line);
  EXPECT_EQ(pace.average(), 200ms) << "and goes on with the next period";
}

TEST(DrainPace, AdmissionsWithNobodyWaitingAreNoPace) {
  drain_pace pace;
  pace.admitted(beginning, empty_line);
  pace.admitted(beginning + 100ms, empty_line);
  EXPECT_EQ(pace.average(), std::nullopt);
  pace.admitted(beginning + 200ms, from_line);
  EXPECT_EQ(pace.average(), std::nullopt) << "the gap began while nobody waited";
}

TEST(DrainPace, SendsEachRefusedRequestAwayOneGapLonger) {
  drain_pace pace;
  pace.admitted(beginning, from_line);
  pace.admitted(beginning + 100ms, from_line);
  EXPECT_EQ(pace.spread(1s), 1000ms);
  pace.refused();
  EXPECT_EQ(pace.spread(1s), 1100ms);
  pace.refused();
  pace.refused();
  EXPECT_EQ(pace.spread(1s), 1300ms);
}

TEST(DrainPace, StartsAgainWithEveryAdmission) {
  drain_pace pace;
  pace.admitted(beginning, from_line);
  pace.admitted(beginning + 100ms, from_line);
  pace.refused();
  pace.admitted(beginning + 200ms, from_line);
  EXPECT_EQ(pace.spread(1s), 1000ms);
  pace.refused();
  EXPECT_EQ(pace.spread(1s), 1100ms);
  pace.admitted(beginning + 300ms, empty_line);
  EXPECT_EQ(pace.spread(1s), 1000ms);
}

TEST(DrainPace, SpreadsByNothingWhileThePaceIsUnknown) {
  drain_pace pace;
  pace.refused();
  pace.refused();
  EXPECT_EQ(pace.spread(1s), 1000ms);
}

}  // namespace
