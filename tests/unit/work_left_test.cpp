#include <kvlane/work_left.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace {

using kvlane::decode_pace;
using kvlane::fractional_ms;
using kvlane::time_point;
using kvlane::work_left;
using namespace std::chrono_literals;

time_point at(std::chrono::milliseconds since_start) { return time_point{} + 1h + since_start; }

// -- the pace of an engine

TEST(DecodePace, IsUnknownUntilTheEngineHasBeenSeenForASecond) {
  decode_pace pace;
  EXPECT_EQ(pace.tokens_per_ms(at(0ms)), std::nullopt);
  pace.made(10, at(0ms));
  pace.made(10, at(900ms));
  EXPECT_EQ(pace.tokens_per_ms(at(900ms)), std::nullopt);
  pace.made(10, at(1000ms));
  EXPECT_DOUBLE_EQ(pace.tokens_per_ms(at(1000ms)).value(), 0.03);
}

TEST(DecodePace, IsThatOfTheLastFiveSeconds) {
  decode_pace pace;
  for (auto t = 0ms; t != 20s; t += 100ms) pace.made(50, at(t));
  for (auto t = 20'000ms; t != 30s; t += 100ms) pace.made(100, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(30s)).value(), 1.0, 0.03);
}

TEST(DecodePace, LeavesOutTheTimeInWhichNobodyRuns) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, at(t));
  auto const before = pace.tokens_per_ms(at(2s)).value();
  pace.pause();
  for (auto t = 3'602'000ms; t != 3'604s; t += 100ms) pace.made(100, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(3'604s)).value(), before, 0.06);
}

TEST(DecodePace, IsForgottenWhenTheEngineHasSaidNothingForLong) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, at(t));
  EXPECT_NE(pace.tokens_per_ms(at(6'900ms)), std::nullopt);
  EXPECT_EQ(pace.tokens_per_ms(at(6'901ms)), std::nullopt);
}

TEST(DecodePace, StandsAClockThatGoesBack) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, at(t));
  pace.made(100, at(500ms));
  EXPECT_NEAR(pace.tokens_per_ms(at(2s)).value(), 2'100 / 1'900.0, 0.01);
}

// -- the work left

class WorkLeft : public testing::Test {
 protected:
  WorkLeft() { left.make_room(4); }

  /// Lane `lane` makes a token each 10 ms from `made + 1` on, for two seconds.
  void run(kvlane::lane_id lane, std::uint64_t reserved, std::uint64_t made) {
    for (int i = 1; i <= 200; ++i) left.progressed(lane, reserved, made + static_cast<std::uint64_t>(i), now += 10ms);
  }
  [[nodiscard]] double seconds(std::uint64_t reserved) const {
    return std::chrono::duration<double>{left.predicted_wait(reserved, now).value()}.count();
  }

  work_left left;
  time_point now = at(0ms);
};

TEST_F(WorkLeft, PredictsNothingWithoutProgress) {
  left.ended(100, 100);
  EXPECT_EQ(left.predicted_wait(1'000, now), std::nullopt);
}

TEST_F(WorkLeft, IsWhatIsReservedLessWhatIsMadeOverThePace) {
  run(0, 512, 0);  // 200 of 512 tokens, 100 tokens in a second
  EXPECT_NEAR(seconds(512), 3.12, 0.05);
  EXPECT_NEAR(seconds(512 + 300), 6.12, 0.05);  // and somebody who waits
}

TEST_F(WorkLeft, LearnsHowMuchOfTheReservationsRepliesNeed) {
  run(0, 512, 0);
  for (int i = 0; i != 200; ++i) left.ended(512, 128);
  EXPECT_NEAR(left.share(), 0.25, 0.05);
  // The one that runs has outlived that, so nothing is left of it; of the others a quarter.
  EXPECT_NEAR(seconds(512 + 1'000), left.share() * 10, 0.9);
}

TEST_F(WorkLeft, TakesTheFirstRepliesForWhatTheyAre) {
  EXPECT_DOUBLE_EQ(left.share(), 1);
  left.ended(512, 256);
  EXPECT_NEAR(left.share(), (256 + 2 * 512) / (3 * 512.0), 1e-9);
}

TEST_F(WorkLeft, LearnsFromRepliesThatOutgrowWhatIsExpectedBeforeTheyEnd) {
  run(0, 100, 0);
  EXPECT_GT(left.share(), 1.2);
  left.released(0, true);
  EXPECT_DOUBLE_EQ(left.share(), 1) << "what was learned from one that has gone without an end is forgotten";
}

TEST_F(WorkLeft, IsNothingForRepliesThatAreOverdue) {
  run(0, 100, 0);
  EXPECT_GE(seconds(100), 0);
  EXPECT_LT(seconds(100), 2);
}

TEST_F(WorkLeft, ALaneThatIsGivenBackTakesItsProgressAlong) {
  run(0, 512, 0);
  run(1, 512, 0);
  left.released(0, false);
  EXPECT_NEAR(seconds(512), (512 - 200) / 100.0, 0.1);
  run(0, 512, 0);  // the lane's next reply begins at 0
  EXPECT_NEAR(seconds(1'024), (1'024 - 400) / 100.0, 0.1);
}

TEST_F(WorkLeft, ProgressThatGoesBackIsIgnored) {
  run(0, 512, 0);
  auto const before = seconds(512);
  left.progressed(0, 512, 3, now);
  EXPECT_DOUBLE_EQ(seconds(512), before);
}

}  // namespace
