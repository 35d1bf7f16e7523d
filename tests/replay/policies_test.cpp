#include "replay/same_reports.hpp"
#include "replay/small_workloads.hpp"
#include "simulation.hpp"
#include "synthetic.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using replay::policy;
using replay::score_updates;
using replay::simulate;
using replay::testing::expect_same_reports;
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

/// Synthetic chats that come much faster than they are served, so that the line is long.
class CrowdedChats : public ::testing::Test {
 protected:
  CrowdedChats() {
    settings_.limits = {
        .lanes = 16, .kv_capacity = 60'000, .block_tokens = 16, .decode_headroom = 0, .max_waiting = 10'000};
    settings_.cache_tokens = 100'000;
  }

  [[nodiscard]] static replay::workload chats(std::uint64_t seed) {
    return replay::make_synthetic(
        {.chats = 120, .families = 15, .turns = 3, .reply_tokens = 120, .chats_per_second = 10, .seed = seed});
  }

  replay::simulation_settings settings_;
};

TEST_F(CrowdedChats, AreServedAlikeByTheIndexAndBySorting) {
  for (auto const seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto const r = expect_same_reports(chats(seed), settings_);
    EXPECT_GT(r.longest_line, 50U);
    EXPECT_GT(r.hit_share(), 0.2);
    EXPECT_GT(r.preempted, 0U);
  }
}

TEST_F(CrowdedChats, AreServedAlikeByTheIndexAndBySortingWhateverTheOrderingOptions) {
  auto const w = chats(4);
  for (auto const& options : {kvlane::ordering_options{.aging_cost_per_turn = 0, .band_turns = 1},
                              kvlane::ordering_options{.band_turns = 7, .spread_families = true},
                              kvlane::ordering_options{.aging_cost_per_turn = 65'536, .group_prefixes = false}}) {
    settings_.ordering = options;
    expect_same_reports(w, settings_);
  }
  settings_.ordering = {};
  settings_.scores = score_updates::never;
  settings_.limits.max_wait = 5s;
  settings_.limits.max_overtakes = 4;
  auto const r = expect_same_reports(w, settings_);
  EXPECT_LT(r.completed + r.cut_off, r.requests) << "some did not want to wait so long";
}

TEST_F(CrowdedChats, CountEachAnswerOfTheCoreAsADecision) {
  auto const w = chats(1);
  settings_.limits.kv_capacity = 10'000'000;  // nobody is preempted
  auto const r = simulate(w, policy::cache_aware, settings_);
  ASSERT_EQ(r.completed, r.requests);
  EXPECT_GE(r.core.decisions, 2 * r.requests) << "each is admitted at once or queued, and released";
  EXPECT_LE(r.core.decisions, 3 * r.requests) << "and the queued ones are admitted";
  EXPECT_GT(r.core.deciding.count(), 0);
  EXPECT_GT(r.core.rescores, 0U);
}

TEST(Policies, HaveNames) {
  for (auto const p : replay::all_policies()) EXPECT_EQ(replay::policy_named(replay::name_of(p)), p);
  EXPECT_EQ(replay::policy_named("lifo"), std::nullopt);
}

}  // namespace
