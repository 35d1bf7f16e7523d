#include "replay/small_workloads.hpp"
#include "simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <vector>

namespace {

using namespace std::chrono_literals;
using replay::policy;
using replay::testing::hand_written;
using replay::testing::round_settings;
using replay::testing::workload_of;
using ::testing::ElementsAre;

/// The requests in the order in which they were admitted.
std::vector<std::size_t> served(replay::workload const& w, policy p,
                                replay::simulation_settings const& s = round_settings()) {
  auto const fates = replay::simulate_in_detail(w, p, s).fates;
  std::vector<std::size_t> order(fates.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return fates[i].admitted.value(); });
  return order;
}

/// All arrive at once; the first runs while the others wait.
replay::workload one_cold_one_warm_one_hot() {
  return workload_of({{.prompt = 1024, .blocks = {1, 2}},
                      {.prompt = 1024, .blocks = {8, 9}},
                      {.prompt = 1024, .blocks = {1, 3}},
                      {.prompt = 1024, .blocks = {1, 2}}});
}

TEST(LongestPrefixFirst, TakesWhoHasMostCached) {
  EXPECT_THAT(served(one_cold_one_warm_one_hot(), policy::longest_prefix_first), ElementsAre(0, 3, 2, 1));
  EXPECT_THAT(served(one_cold_one_warm_one_hot(), policy::fcfs), ElementsAre(0, 1, 2, 3));
}

/// One that runs, `cold` that wait, and behind them one whose prompt is cached by then.
replay::workload hot_one_behind(std::size_t cold) {
  auto w = workload_of({{.prompt = 512, .blocks = {1}}});
  for (std::size_t i = 0; i != cold; ++i)
    w.requests.push_back({.prompt_tokens = 512, .reply_tokens = 1, .blocks = {100 + i}});
  w.requests.push_back({.prompt_tokens = 512, .reply_tokens = 1, .blocks = {1}});
  return w;
}

TEST(LpmFcfs128, TakesWhoHasMostCachedWhileNoMoreThan128Wait) {
  EXPECT_EQ(served(hot_one_behind(127), policy::lpm_fcfs_128)[1], 128U);
}

TEST(LpmFcfs128, ServesALongerLineAsItCame) {
  auto const order = served(hot_one_behind(128), policy::lpm_fcfs_128);
  EXPECT_EQ(order[1], 1U);
  EXPECT_EQ(order[2], 129U) << "128 are left";
  EXPECT_EQ(served(hot_one_behind(128), policy::longest_prefix_first)[1], 129U);
}

TEST(HeaviestSubtreeFirst, WalksToWhereMostWait) {
  auto const w = workload_of({{.prompt = 512, .blocks = {50}},
                              {.prompt = 1024, .blocks = {1, 2}},
                              {.prompt = 1024, .blocks = {3, 4}},
                              {.prompt = 1024, .blocks = {3, 5}},
                              {.prompt = 1536, .blocks = {3, 5, 6}}});
  // Below 3 there are three, of them two below 5, where 6 goes before the prompt that ends there. Then 3-4 is as heavy as
  // 3-5 and came earlier. Then 1 is as heavy as 3 and came earlier.
  EXPECT_THAT(served(w, policy::heaviest_subtree_first), ElementsAre(0, 4, 2, 1, 3));
}

TEST(HeaviestSubtreeFirst, PassesOverWhoDoesNotFit) {
  auto s = round_settings();
  s.limits.lanes = 2;
  s.limits.kv_capacity = 2040;
  auto const w = workload_of({{.prompt = 512, .reply = 100, .blocks = {50}},
                              {.prompt = 512, .blocks = {51}},
                              {.prompt = 1536, .blocks = {3, 4, 5}},
                              {.prompt = 1536, .blocks = {3, 4, 6}},
                              {.prompt = 512, .blocks = {1}}});
  // With the first running 1526 are free, and those below 3 need 1538.
  EXPECT_THAT(served(w, policy::heaviest_subtree_first, s), ElementsAre(0, 1, 4, 2, 3));
}

TEST(HeaviestSubtreeFirst, ServesPromptsWithoutBlocksAsTheyCame) {
  auto const w = workload_of({{.prompt = 10}, {.prompt = 20}, {.prompt = 5}});
  EXPECT_THAT(served(w, policy::heaviest_subtree_first), ElementsAre(0, 1, 2));
}

/// The first runs until 1005 ms; then the second has waited that long for 2002 tokens of work.
replay::workload small_one_behind_large_one(std::chrono::milliseconds arrival) {
  return workload_of({{.prompt = 1000}, {.prompt = 2000}, {.at = arrival, .prompt = 100}});
}

TEST(Hrrn, WeighsTheWaitAgainstTheWork) {
  // 100 ms for 102 tokens against 1005 ms for 2002.
  EXPECT_THAT(served(small_one_behind_large_one(905ms), policy::hrrn), ElementsAre(0, 2, 1));
  // 50 ms for 102 tokens.
  EXPECT_THAT(served(small_one_behind_large_one(955ms), policy::hrrn), ElementsAre(0, 1, 2));
  EXPECT_THAT(served(small_one_behind_large_one(955ms), policy::shortest_uncached_first), ElementsAre(0, 2, 1));
}

TEST(ShortestUncachedFirst, DoesNotCountWhatIsCached) {
  auto const w = workload_of({{.prompt = 1024, .blocks = {1, 2}}, {.prompt = 100}, {.prompt = 1024, .blocks = {1, 2}}});
  EXPECT_THAT(served(w, policy::shortest_uncached_first), ElementsAre(0, 2, 1));
  auto s = round_settings();
  s.cost_per_token = 0;  // then it does not know
  EXPECT_THAT(served(w, policy::shortest_uncached_first, s), ElementsAre(0, 1, 2));
}

TEST(ClairvoyantSjf, KnowsHowLongRepliesWillBe) {
  auto const w = workload_of({{.prompt = 10}, {.prompt = 10, .reply = 50}, {.prompt = 14, .reply = 5}});
  EXPECT_THAT(served(w, policy::clairvoyant_sjf), ElementsAre(0, 2, 1));
  EXPECT_THAT(served(w, policy::shortest_uncached_first), ElementsAre(0, 1, 2)) << "all replies look alike to it";
}

TEST(ClairvoyantSjf, KnowsWhereRepliesAreCut) {
  auto s = round_settings();
  s.max_tokens = 5;
  auto const w = workload_of({{.prompt = 10}, {.prompt = 10, .reply = 50}, {.prompt = 14, .reply = 5}});
  EXPECT_THAT(served(w, policy::clairvoyant_sjf, s), ElementsAre(0, 1, 2));
}

TEST(SeedOrderTurnBound, ServesThoseOf32TurnsFirstThoughNobodyHasPassedThem) {
  auto s = round_settings();
  s.cost_per_token = 1000;  // a cached prompt is worth more than 40 turns
  // 40 that take 15 ms each, when the first has ended after 1029 ms; then one whose prompt is cached.
  auto w = workload_of({{.prompt = 1024, .blocks = {1, 2}}});
  for (auto i = 0; i != 40; ++i) w.requests.push_back({.prompt_tokens = 10, .reply_tokens = 1});
  w.requests.push_back({.arrival = 1530ms, .prompt_tokens = 1024, .reply_tokens = 1, .blocks = {1, 2}});
  // By then 34 have been admitted out of the line.
  EXPECT_EQ(served(w, policy::seed_order, s)[35], 41U);
  EXPECT_EQ(served(w, policy::seed_order_turn_bound, s)[41], 41U);
}

TEST(SeedOrderTurnBound, IsTheSeedOrderBefore) {
  EXPECT_THAT(served(one_cold_one_warm_one_hot(), policy::seed_order_turn_bound), ElementsAre(0, 3, 2, 1));
}

TEST(SeedOrderTurnBound, LetsAWaiterBePassedMoreOftenThanKvlaneDoes) {
  auto s = round_settings();
  s.limits.max_overtakes = 2;
  auto w = workload_of({{.prompt = 512, .blocks = {1}}, {.prompt = 512, .blocks = {2}}});
  for (auto i = 0; i != 10; ++i) w.requests.push_back({.prompt_tokens = 512, .reply_tokens = 1, .blocks = {1}});
  EXPECT_EQ(served(w, policy::seed_order, s)[3], 1U);
  EXPECT_EQ(served(w, policy::seed_order_turn_bound, s)[11], 1U);
}

}  // namespace
