#include "replay/small_workloads.hpp"
#include "simulation.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using replay::policy;
using replay::score_updates;
using replay::simulate;
using replay::testing::round_settings;
using replay::testing::workload_of;

/// Two families of four equal prompts of 1024 tokens that arrive by turns, and a cache with room for one prompt: a hit is
/// 1023 tokens.
class TwoFamilies : public ::testing::Test {
 protected:
  TwoFamilies() { settings_.cache_tokens = 1024; }

  [[nodiscard]] std::uint64_t hits(policy p) const {
    auto const r = simulate(by_turns_, p, settings_);
    EXPECT_EQ(r.completed, 8U);
    EXPECT_EQ(r.hit_tokens % 1023, 0U);
    return r.hit_tokens / 1023;
  }

  replay::simulation_settings settings_ = round_settings();
  replay::workload by_turns_ = workload_of({{.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {3, 4}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {3, 4}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {3, 4}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                                            {.at = 0ms, .prompt = 1024, .blocks = {3, 4}}});
};

TEST_F(TwoFamilies, MissEachTimeWhenTheyAreServedAsTheyCome) { EXPECT_EQ(hits(policy::fcfs), 0U); }

TEST_F(TwoFamilies, AreServedOneAfterTheOtherWhenScoresFollowTheCache) {
  EXPECT_EQ(hits(policy::cache_aware), 6U);
  EXPECT_EQ(hits(policy::seed_order), 6U);
  EXPECT_EQ(simulate(by_turns_, policy::cache_aware, settings_).most_overtaken, 3U);
}

TEST_F(TwoFamilies, AreKeptTogetherByCacheAwareAloneWhenScoresStayAsTheyWere) {
  settings_.scores = score_updates::never;
  // The first was admitted out of an empty line, so the walk begins with the other, larger family.
  EXPECT_EQ(hits(policy::cache_aware), 5U);
  EXPECT_EQ(hits(policy::seed_order), 0U) << "it takes turns between families of like size";
}

TEST_F(TwoFamilies, AreServedAsTheyComeWhenNobodyMayBeOvertaken) {
  settings_.limits.max_overtakes = 0;
  EXPECT_EQ(hits(policy::cache_aware), 0U);
}

TEST_F(TwoFamilies, AreServedAsTheyComeWhenAHitCountsNothing) {
  settings_.cost_per_token = 0;
  settings_.ordering.group_prefixes = false;
  EXPECT_EQ(hits(policy::cache_aware), 0U);
}

TEST(Policies, HaveNames) {
  for (auto const p : {policy::fcfs, policy::seed_order, policy::cache_aware})
    EXPECT_EQ(replay::policy_named(replay::name_of(p)), p);
  EXPECT_EQ(replay::policy_named("lifo"), std::nullopt);
}

}  // namespace
