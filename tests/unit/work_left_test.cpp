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
  pace.made(10, 1, at(0ms));
  pace.made(10, 1, at(900ms));
  EXPECT_EQ(pace.tokens_per_ms(at(900ms)), std::nullopt);
  pace.made(10, 1, at(1000ms));
  EXPECT_DOUBLE_EQ(pace.tokens_per_ms(at(1000ms)).value(), 0.03);
}

TEST(DecodePace, IsThatOfTheLastFiveSeconds) {
  decode_pace pace;
  for (auto t = 0ms; t != 20s; t += 100ms) pace.made(50, 1, at(t));
  for (auto t = 20'000ms; t != 30s; t += 100ms) pace.made(100, 1, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(30s)).value(), 1.0, 0.03);
}

TEST(DecodePace, LeavesOutTheTimeInWhichNobodyRuns) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, 1, at(t));
  auto const before = pace.tokens_per_ms(at(2s)).value();
  pace.pause();
  for (auto t = 3'602'000ms; t != 3'604s; t += 100ms) pace.made(100, 1, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(3'604s)).value(), before, 0.06);
}

TEST(DecodePace, IsForgottenWhenTheEngineHasSaidNothingForLong) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, 1, at(t));
  EXPECT_NE(pace.tokens_per_ms(at(6'900ms)), std::nullopt);
  EXPECT_EQ(pace.tokens_per_ms(at(6'901ms)), std::nullopt);
}

TEST(DecodePace, StandsAClockThatGoesBack) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(100, 1, at(t));
  pace.made(100, 1, at(500ms));
  EXPECT_NEAR(pace.tokens_per_ms(at(2s)).value(), 2'100 / 1'900.0, 0.01);
}

TEST(DecodePace, GrowsWithTheNumberOfReplies) {
  decode_pace pace;
  for (auto t = 0ms; t != 2s; t += 100ms) pace.made(20, 4, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(2s)).value(), 0.2, 0.02);
  EXPECT_NEAR(pace.tokens_per_ms(4, at(2s)).value(), 0.2, 0.02);
  EXPECT_NEAR(pace.tokens_per_ms(8, at(2s)).value(), 0.4, 0.04);
}

TEST(DecodePace, ABatchThatGrewIsNotTakenForASlowOne) {
  decode_pace pace;
  // One reply, then ten, each with a token in 20 ms.
  for (auto t = 0ms; t != 2s; t += 20ms) pace.made(1, 1, at(t));
  for (auto t = 2'000ms; t != 4s; t += 20ms) pace.made(10, 10, at(t));
  EXPECT_NEAR(pace.tokens_per_ms(at(4s)).value(), 0.275, 0.01);
  EXPECT_NEAR(pace.tokens_per_ms(10, at(4s)).value(), 0.5, 0.01);
}

// -- the work left

class WorkLeft : public testing::Test {
 protected:
  /// Lane `lane` makes a token each 10 ms from `made + 1` on, for two seconds.
  void run(kvlane::lane_id lane, std::uint64_t reserved, std::uint64_t made) {
    for (int i = 1; i <= 200; ++i) left.progressed(lane, reserved, made + static_cast<std::uint64_t>(i), now += 10ms);
  }
  [[nodiscard]] double seconds(kvlane::replies_ahead const& ahead) const {
    return std::chrono::duration<double>{left.predicted_wait(ahead, now).value()}.count();
  }
  /// Behind one who runs, with so much reserved for it.
  [[nodiscard]] double seconds(std::uint64_t reserved) const { return seconds({.running = reserved, .runners = 1}); }

  work_left left;
  time_point now = at(0ms);
};

TEST_F(WorkLeft, PredictsNothingWithoutProgress) {
  left.ended(100, 100);
  EXPECT_EQ(left.predicted_wait({.running = 1'000, .runners = 1}, now), std::nullopt);
}

TEST_F(WorkLeft, IsWhatIsReservedLessWhatIsMadeOverThePace) {
  run(0, 512, 0);  // 200 of 512 tokens, 100 tokens in a second
  EXPECT_NEAR(seconds(512), 3.12, 0.05);
  EXPECT_NEAR(seconds({.running = 512, .waiting = 300, .runners = 1}), 6.12, 0.05);
}

TEST_F(WorkLeft, LearnsHowMuchOfTheReservationsRepliesNeed) {
  run(0, 512, 0);
  for (int i = 0; i != 200; ++i) left.ended(512, 128);
  EXPECT_NEAR(left.share(), 0.25, 0.05);
  // The one that runs has outlived that, so nothing is left of it; of the others a quarter.
  EXPECT_NEAR(seconds(512 + 1'000), left.share() * 10, 0.9);
}

TEST_F(WorkLeft, AReplyForWhichNothingWasReservedTeachesNothing) {
  run(0, 0, 0);
  EXPECT_DOUBLE_EQ(left.share(), 1);
  EXPECT_DOUBLE_EQ(seconds(0), 0);
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

TEST_F(WorkLeft, OnceRepliesHaveEndedTheLongOnesThatRunCountLittle) {
  for (int i = 0; i != 200; ++i) left.ended(100, 100);
  run(0, 100, 0);
  run(1, 100, 0);
  EXPECT_LT(left.share(), 1.01) << "two of twice the length are no more than the ended ones have taught already";
}

TEST_F(WorkLeft, IsNothingForRepliesThatAreOverdue) {
  run(0, 100, 0);
  EXPECT_GE(seconds(100), 0);
  EXPECT_LT(seconds(100), 2);
}

TEST_F(WorkLeft, DoesNotCountWhatTheOthersStillHaveToMakeWhenOneIsAdmitted) {
  // Four replies of 400 tokens, half made: 400 tokens in a second. In the long run half of each of the other three is still
  // to be made when somebody follows one.
  for (int i = 1; i <= 200; ++i) {
    now += 10ms;
    for (kvlane::lane_id lane = 0; lane != 4; ++lane) left.progressed(lane, 400, static_cast<std::uint64_t>(i), now);
  }
  EXPECT_NEAR(seconds({.running = 1'600, .waiting = 4'000, .runners = 4}), (800 + 4'000 - 600) / 400.0, 0.2);
  EXPECT_NEAR(seconds({.running = 1'600, .waiting = 0, .runners = 4}), (800 - 600) / 400.0, 0.05);
}

TEST_F(WorkLeft, CountsOnTheLanesThatHaveJustBeenFilled) {
  run(0, 512, 0);  // 100 tokens in a second, on one lane
  auto const alone = seconds({.running = 512, .waiting = 5'120, .runners = 1});
  auto const with_others = seconds({.running = 5'120, .waiting = 5'120, .runners = 10});
  EXPECT_NEAR(alone, (312 + 5'120) / 100.0, 0.5);
  EXPECT_NEAR(with_others, (5'120 - 200 + 5'120 - 2'304) / 1'000.0, 0.1);
}

TEST_F(WorkLeft, TakesTheNextBatchForOneLikeTheLastWhileNobodyRuns) {
  run(0, 512, 0);
  left.released(0, true);
  EXPECT_NEAR(seconds({.running = 0, .waiting = 1'000, .runners = 0}), 10, 0.1);
}

TEST_F(WorkLeft, ALaneThatIsGivenBackTakesItsProgressAlong) {
  auto const left_to_make = [&](kvlane::replies_ahead const& ahead) {
    return seconds(ahead) * 1'000 * left.pace().tokens_per_ms(ahead.runners, now).value();
  };
  run(0, 512, 0);
  run(1, 512, 0);
  left.released(0, false);
  EXPECT_NEAR(left_to_make({.running = 512, .runners = 1}), 512 - 200, 1e-6);
  run(0, 512, 0);  // the lane's next reply begins at 0
  EXPECT_NEAR(left_to_make({.running = 1'024, .runners = 2}), 1'024 - 400 - 256, 1e-6);
}

TEST_F(WorkLeft, ProgressThatGoesBackIsIgnored) {
  run(0, 512, 0);
  auto const before = seconds(512);
  left.progressed(0, 512, 3, now);
  EXPECT_DOUBLE_EQ(seconds(512), before);
}

}  // namespace
