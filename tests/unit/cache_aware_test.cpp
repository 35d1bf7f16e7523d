#include "support/policy_line.hpp"

#include <kvlane/ordering/cache_aware.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using kvlane::cache_aware;
using kvlane::departure;
using kvlane::ordering_options;

using cache_aware_line = kvlane::test::policy_line<cache_aware>;
using tags = std::vector<std::uint64_t>;

static_assert(kvlane::ordering_policy<cache_aware>);
static_assert(std::is_default_constructible_v<cache_aware>);

TEST(CacheAware, OfNobodyPicksNobody) {
  cache_aware_line l;
  EXPECT_EQ(l.pick(), 0U);
  EXPECT_TRUE(l.order().empty());
}

TEST(CacheAware, PicksTheFirstOfItsOrder) {
  cache_aware_line l;
  l.join({.saved_cost = 0});
  l.join({.saved_cost = 100});
  l.join({.priority = 1});
  EXPECT_EQ(l.order(), (tags{3, 2, 1}));
  EXPECT_EQ(l.admit_all(), (tags{3, 2, 1}));
}

TEST(CacheAware, PassesOverWhoDoesNotFit) {
  cache_aware_line l;
  l.join({.saved_cost = 100, .demand = 50});
  l.join({.saved_cost = 10, .demand = 5});
  l.join({.demand = 0});
  EXPECT_EQ(l.pick(50), 1U);
  EXPECT_EQ(l.pick(49), 2U);
  EXPECT_EQ(l.pick(4), 3U);
  EXPECT_EQ(l.order(), (tags{1, 2, 3})) << "fitting does not change the order";
}

TEST(CacheAware, PicksNobodyBelowTheFloor) {
  cache_aware_line l;
  l.join({.priority = 2, .demand = 50});
  l.join({.priority = 1, .demand = 5});
  EXPECT_EQ(l.pick(5, 1), 2U);
  EXPECT_EQ(l.pick(5, 2), 0U);
  EXPECT_EQ(l.pick(50, 2), 1U);
  EXPECT_EQ(l.pick(50, 3), 0U);
}

TEST(CacheAware, CountsATurnForEveryAdmissionAndForNothingElse) {
  cache_aware_line l{{.aging_cost_per_turn = 10, .band_turns = 1}};
  auto const old = l.join({});
  l.pass_turns(10);
  auto const cached = l.join({.saved_cost = 100});
  EXPECT_EQ(l.order(), (tags{old, cached})) << "ten turns of ten equal a saved cost of 100, and the older goes first";
  l.rescore(cached, 101);
  EXPECT_EQ(l.order(), (tags{cached, old}));
  for (auto const why : {departure::cancelled, departure::expired, departure::refused}) l.leave(l.join({}), why);
  EXPECT_EQ(l.order(), (tags{cached, old})) << "those who left without running are no turn";
}

TEST(CacheAware, FollowsARescoredWaiter) {
  cache_aware_line l;
  l.join({});
  l.join({});
  EXPECT_EQ(l.pick(), 1U);
  l.rescore(2, 1);
  EXPECT_EQ(l.pick(), 2U);
  l.rescore(2, 0);
  EXPECT_EQ(l.pick(), 1U);
}

TEST(CacheAware, ServesTheHeavierFamilyFirst) {
  cache_aware_line l;
  l.join({.prompt = {9, 9, 9}});
  l.join({.prompt = {1, 2, 3}});
  l.join({.prompt = {1, 2, 4}});
  EXPECT_EQ(l.order(), (tags{2, 3, 1}));
}

TEST(CacheAware, StaysWithTheFamilyServedLastThoughAnotherIsHeavier) {
  cache_aware_line l;
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  EXPECT_EQ(l.admit(), 1U);
  l.join({.prompt = {2, 3}, .enqueued_turn = 0});
  EXPECT_EQ(l.order(), (tags{2, 3, 4, 5}));
}

TEST(CacheAware, RemembersTheLastPromptWhenTheLineHasRunEmpty) {
  cache_aware_line l;
  l.join({.prompt = {7, 1}});
  EXPECT_EQ(l.admit_all(), tags{1});
  l.join({.prompt = {5, 1}});
  l.join({.prompt = {5, 2}});
  l.join({.prompt = {7, 2}});
  EXPECT_EQ(l.order(), (tags{4, 2, 3}));
}

TEST(CacheAware, DoesNotFollowThoseWhoLeftWithoutRunning) {
  cache_aware_line l;
  l.join({.prompt = {7, 1}});
  l.leave(1, departure::cancelled);
  l.join({.prompt = {5, 1}});
  l.join({.prompt = {7, 2}});
  EXPECT_EQ(l.order(), (tags{2, 3}));
}

TEST(CacheAware, AnAdmissionWithoutAPromptLeavesNothingToFollow) {
  cache_aware_line l;
  l.join({.prompt = {7, 1}});
  l.leave(1, departure::admitted);
  l.pass_turns(1);
  l.join({.prompt = {5, 1}});
  l.join({.prompt = {7, 2}});
  EXPECT_EQ(l.order(), (tags{3, 4}));
}

TEST(CacheAware, WithSpreadFamiliesDoesNotStay) {
  cache_aware_line l{{.spread_families = true}};
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  EXPECT_EQ(l.admit_all(), (tags{1, 3, 2, 4})) << "whoever has more waiting goes first, of equals the older";
}

TEST(CacheAware, WithoutGroupingGoesByScoreAndArrival) {
  cache_aware_line l{{.group_prefixes = false}};
  l.join({.prompt = {9, 9, 9}});
  l.join({.prompt = {1, 2, 3}});
  l.join({.prompt = {1, 2, 4}});
  EXPECT_EQ(l.order(), (tags{1, 2, 3}));
}

TEST(CacheAware, GroupsBlocksAsItGroupsTokens) {
  cache_aware_line l;
  l.join({.blocks = {9, 9}});
  l.join({.blocks = {1, 2}});
  l.join({.blocks = {1, 3}});
  EXPECT_EQ(l.order(), (tags{2, 3, 1}));
}

TEST(CacheAware, StaysWithTheBlocksServedLast) {
  cache_aware_line l;
  l.join({.blocks = {9, 9}});
  l.leave(1, departure::admitted);
  l.join({.blocks = {1, 2}});
  l.join({.blocks = {1, 3}});
  l.join({.blocks = {9, 8}});
  EXPECT_EQ(l.order(), (tags{4, 2, 3}));
}

TEST(CacheAware, TokensAndBlocksAreNeverOneFamilyAndTokensComeFirst) {
  cache_aware_line l;
  l.join({.blocks = {1, 2}});
  l.join({.blocks = {1, 3}});
  l.join({.prompt = {1, 2}});
  EXPECT_EQ(l.order(), (tags{3, 1, 2})) << "though blocks are heavier and came first";
}

TEST(CacheAware, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(cache_aware{{.band_turns = 0}}, std::invalid_argument);
  EXPECT_THROW((cache_aware{{.aging_cost_per_turn = (std::uint64_t{1} << 20) + 1}}), std::invalid_argument);
  EXPECT_NO_THROW((cache_aware{{.aging_cost_per_turn = std::uint64_t{1} << 20}}));
}

TEST(CacheAware, StopsShowingTheLineWhenTold) {
  cache_aware_line l;
  l.join({});
  l.join({});
  int shown = 0;
  l.policy().for_each_in_order([&](kvlane::waiter_base const&) { return ++shown < 1; });
  EXPECT_EQ(shown, 1);
}

class CacheAwareOptions : public testing::TestWithParam<ordering_options> {};

TEST_P(CacheAwareOptions, PickTheFirstOfAllCandidatesThatFitsAtEveryStep) {
  constexpr auto first_seed = 500U;
  for (auto seed = first_seed; seed != first_seed + 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random{seed};
    cache_aware_line l{GetParam()};
    for (int step = 0; step != 300; ++step) {
      random_event(l, random);
      auto const expected = l.expected_order();
      ASSERT_EQ(l.order(), expected) << "step " << step;
      auto const tokens = random() % 25;
      auto const floor = static_cast<std::uint32_t>(random() % 3);
      ASSERT_EQ(l.pick(tokens, floor), l.first_fitting(expected, tokens, floor)) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Agree, CacheAwareOptions,
                         testing::Values(ordering_options{}, ordering_options{.spread_families = true},
                                         ordering_options{.group_prefixes = false},
                                         ordering_options{.aging_cost_per_turn = 0, .band_turns = 3},
                                         ordering_options{.aging_cost_per_turn = 1, .band_turns = 1}),
                         [](auto const& suite) { return "Set" + std::to_string(suite.index); });

}  // namespace
