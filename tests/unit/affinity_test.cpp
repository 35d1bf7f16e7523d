#include "support/extremes.hpp"

#include <kvlane/affinity.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace {

using kvlane::saved_cost;
using kvlane::stage_affinity;
using kvlane::test::most;

constexpr auto highest = (std::uint64_t{1} << 48) - 1;

std::uint64_t saved(std::vector<stage_affinity> const& stages) { return saved_cost(stages); }

static_assert(saved_cost(std::array{stage_affinity{.matched_tokens = 3, .cost_per_token = 5}}) == 15,
              "usable in constant expressions");

TEST(SavedCost, IsNothingWithoutStages) { EXPECT_EQ(saved({}), 0U); }

TEST(SavedCost, SumsWhatEachStageSaves) {
  EXPECT_EQ(saved({{.stage = 0, .matched_tokens = 100, .cost_per_token = 16},
                   {.stage = 1, .matched_tokens = 64, .cost_per_token = 8}}),
            1600U + 512U);
}

TEST(SavedCost, TakesTheCostOfRestoringOff) {
  EXPECT_EQ(saved({{.matched_tokens = 100, .cost_per_token = 16, .restore_cost = 600}}), 1000U);
}

TEST(SavedCost, AStageThatSavesLessThanItCostsCountsNothingAndDoesNotDragOthersDown) {
  EXPECT_EQ(saved({{.matched_tokens = 10, .cost_per_token = 10, .restore_cost = 101},
                   {.matched_tokens = 7, .cost_per_token = 1}}),
            7U);
  EXPECT_EQ(saved({{.matched_tokens = 10, .cost_per_token = 10, .restore_cost = 100}}), 0U);
  EXPECT_EQ(saved({{.restore_cost = most}}), 0U);
}

TEST(SavedCost, OfNoMatchOrNoCostIsNothing) {
  EXPECT_EQ(saved({{.matched_tokens = 0, .cost_per_token = most}}), 0U);
  EXPECT_EQ(saved({{.matched_tokens = most, .cost_per_token = 0}}), 0U);
}

TEST(SavedCost, IsClampedToFortyEightBits) {
  EXPECT_EQ(saved({{.matched_tokens = highest, .cost_per_token = 1}}), highest);
  EXPECT_EQ(saved({{.matched_tokens = highest - 1, .cost_per_token = 1}}), highest - 1);
  EXPECT_EQ(saved({{.matched_tokens = highest + 1, .cost_per_token = 1}}), highest);
  EXPECT_EQ(saved({{.matched_tokens = highest - 1, .cost_per_token = 1}, {.matched_tokens = 1, .cost_per_token = 1}}),
            highest);
  EXPECT_EQ(saved({{.matched_tokens = highest - 1, .cost_per_token = 1}, {.matched_tokens = 2, .cost_per_token = 1}}),
            highest);
}

TEST(SavedCost, DoesNotOverflow) {
  EXPECT_EQ(saved({{.matched_tokens = most, .cost_per_token = most}}), highest);
  EXPECT_EQ(saved({{.matched_tokens = std::uint64_t{1} << 32, .cost_per_token = std::uint64_t{1} << 32}}), highest)
      << "a product of exactly 2^64";
  EXPECT_EQ(saved({{.matched_tokens = most, .cost_per_token = 1}, {.matched_tokens = most, .cost_per_token = 1}}),
            highest);
}

TEST(SavedCost, TheCostOfRestoringCountsAgainstAMatchBeyondAllMeasure) {
  EXPECT_EQ(saved({{.matched_tokens = most, .cost_per_token = 2, .restore_cost = most - 5}}), 5U);
}

}  // namespace
