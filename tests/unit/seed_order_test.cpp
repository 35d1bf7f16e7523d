#include "support/policy_line.hpp"

#include <kvlane/ordering/seed_order.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using kvlane::departure;
using kvlane::ordering_options;
using kvlane::seed_order;

using seed_order_line = kvlane::test::policy_line<seed_order>;
using tags = std::vector<std::uint64_t>;

static_assert(kvlane::ordering_policy<seed_order>);

/// The options with which `order_candidates` gives the order of this policy.
ordering_options spread(ordering_options options = {}) {
  options.spread_families = true;
  return options;
}

TEST(SeedOrder, OfNobodyPicksNobody) {
  seed_order_line l;
  EXPECT_EQ(l.pick(), 0U);
  EXPECT_TRUE(l.order().empty());
}

TEST(SeedOrder, LetsEqualFamiliesTakeTurns) {
  seed_order_line l;
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  EXPECT_EQ(l.admit(), 1U);
  EXPECT_EQ(l.admit(), 3U) << "the other family has more waiters now";
}

TEST(SeedOrder, SpreadsFamiliesWhateverItIsTold) {
  seed_order_line l{{.spread_families = false}};
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  EXPECT_EQ(l.admit_all(), (tags{1, 3, 2, 4}));
}

TEST(SeedOrder, WeighsOnlyThoseWhoFit) {
  seed_order_line l;
  l.join({.demand = 1, .prompt = {1, 1}});
  l.join({.demand = 1, .prompt = {2, 1}});
  l.join({.demand = 99, .prompt = {2, 2}});
  EXPECT_EQ(l.pick(99), 2U) << "a family of two";
  EXPECT_EQ(l.pick(98), 1U) << "of two that fit the older one";
  EXPECT_EQ(l.order(), (tags{2, 3, 1})) << "shown is the order of all";
}

TEST(SeedOrder, WeighsThoseBelowTheFloorAndPicksThemNot) {
  seed_order_line l;
  l.join({.priority = 1, .prompt = {1, 1}});
  l.join({.priority = 1, .prompt = {2, 1}});
  l.join({.priority = 0, .prompt = {2, 2}});
  EXPECT_EQ(l.pick(1, 1), 2U);
  EXPECT_EQ(l.pick(1, 2), 0U);
}

TEST(SeedOrder, FollowsARescoredWaiter) {
  seed_order_line l;
  l.join({});
  l.join({});
  l.rescore(2, 1);
  EXPECT_EQ(l.pick(), 2U);
}

TEST(SeedOrder, RefusesOptionsThatMakeNoSense) { EXPECT_THROW(seed_order{{.band_turns = 0}}, std::invalid_argument); }

TEST(SeedOrder, StopsShowingTheLineWhenTold) {
  seed_order_line l;
  l.join({});
  l.join({});
  int shown = 0;
  l.policy().for_each_in_order([&](kvlane::waiter_base const&) { return ++shown < 1; });
  EXPECT_EQ(shown, 1);
}

class SeedOrderOptions : public testing::TestWithParam<ordering_options> {};

TEST_P(SeedOrderOptions, PickTheFirstOfTheFittingCandidatesAtEveryStep) {
  constexpr auto first_seed = 900U;
  for (auto seed = first_seed; seed != first_seed + 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random{seed};
    seed_order_line l{GetParam()};
    for (int step = 0; step != 300; ++step) {
      random_event(l, random);
      ASSERT_EQ(l.order(), l.expected_order()) << "step " << step;
      auto const tokens = random() % 25;
      auto const floor = static_cast<std::uint32_t>(random() % 3);
      ASSERT_EQ(l.pick(tokens, floor), l.first_fitting(l.expected_order(tokens), tokens, floor)) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Agree, SeedOrderOptions,
                         testing::Values(spread(), spread({.group_prefixes = false}),
                                         spread({.aging_cost_per_turn = 0, .band_turns = 3}),
                                         spread({.aging_cost_per_turn = 1, .band_turns = 1})),
                         [](auto const& suite) { return "Set" + std::to_string(suite.index); });

}  // namespace
