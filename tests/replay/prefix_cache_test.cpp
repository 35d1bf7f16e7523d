#include "engine_model/prefix_cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace {

using engine_model::prefix_cache;
using blocks = std::vector<std::uint64_t>;

TEST(PrefixCache, FindsTheLongestLeadingRun) {
  prefix_cache cache{{.capacity_tokens = 10'000}};
  cache.insert(blocks{1, 2, 3}, 1536);
  EXPECT_EQ(cache.leading_run(blocks{1, 2, 3}), 3U);
  EXPECT_EQ(cache.leading_run(blocks{1, 2, 4}), 2U);
  EXPECT_EQ(cache.leading_run(blocks{2, 3}), 2U) << "an id stands for its whole prefix, so this prompt cannot exist";
  EXPECT_EQ(cache.leading_run(blocks{4}), 0U);
  EXPECT_EQ(cache.leading_run(blocks{}), 0U);
}

TEST(PrefixCache, ComesToTheSameRunFromAnyGuess) {
  prefix_cache cache{{.capacity_tokens = 10'000}};
  cache.insert(blocks{1, 2, 3}, 1536);
  for (std::size_t guess = 0; guess != 7; ++guess) EXPECT_EQ(cache.leading_run(blocks{1, 2, 3, 4, 5}, guess), 3U);
}

TEST(PrefixCache, CountsTheTokensOfAPartialLastBlock) {
  prefix_cache cache{{.capacity_tokens = 10'000}};
  cache.insert(blocks{1, 2}, 600);
  EXPECT_EQ(cache.used_tokens(), 600U);
  cache.insert(blocks{1, 2}, 600);
  EXPECT_EQ(cache.used_tokens(), 600U);
  cache.insert(blocks{1, 3}, 1024);
  EXPECT_EQ(cache.used_tokens(), 1112U);
  EXPECT_EQ(cache.tokens_in(1, 600), 512U);
  EXPECT_EQ(cache.tokens_in(2, 600), 600U);
}

TEST(PrefixCache, EvictsLeavesFirstTheLeastRecentlyUsedBeforeOthers) {
  prefix_cache cache{{.capacity_tokens = 4 * 512}};
  cache.insert(blocks{1, 2}, 1024);
  cache.insert(blocks{1, 3}, 1024);
  cache.insert(blocks{4}, 512);  // full
  cache.insert(blocks{5}, 512);  // 2 goes: older than 3, and 1 has children
  EXPECT_EQ(cache.leading_run(blocks{1, 2}), 1U);
  EXPECT_EQ(cache.leading_run(blocks{1, 3}), 2U);
  cache.insert(blocks{6}, 512);  // 3 goes, and 1 becomes a leaf
  EXPECT_EQ(cache.leading_run(blocks{1, 3}), 1U);
  EXPECT_EQ(cache.leading_run(blocks{4}), 1U);
  cache.insert(blocks{7}, 512);  // 1 was used with 3, before 4
  EXPECT_EQ(cache.leading_run(blocks{1, 3}), 0U);
  EXPECT_EQ(cache.leading_run(blocks{4}), 1U);
}

TEST(PrefixCache, UsingAPromptKeepsAllOfIt) {
  prefix_cache cache{{.capacity_tokens = 3 * 512}};
  cache.insert(blocks{1, 2}, 1024);
  cache.insert(blocks{3}, 512);
  cache.insert(blocks{1, 2}, 1024);
  cache.insert(blocks{4}, 512);
  EXPECT_EQ(cache.leading_run(blocks{1, 2}), 2U);
  EXPECT_EQ(cache.leading_run(blocks{3}), 0U);
}

TEST(PrefixCache, KeepsTheBeginningOfAPromptThatIsLargerThanItself) {
  prefix_cache cache{{.capacity_tokens = 1100}};
  cache.insert(blocks{9}, 512);
  cache.insert(blocks{1, 2, 3, 4}, 2048);
  EXPECT_EQ(cache.leading_run(blocks{1, 2, 3, 4}), 2U);
  EXPECT_EQ(cache.used_tokens(), 1024U);
}

TEST(PrefixCache, HoldsNothingWithoutCapacity) {
  prefix_cache cache{{.capacity_tokens = 0}};
  cache.insert(blocks{1}, 512);
  EXPECT_EQ(cache.leading_run(blocks{1}), 0U);
  EXPECT_EQ(cache.changes(), 0U);
}

TEST(PrefixCache, SaysWhenItHasChanged) {
  prefix_cache cache{{.capacity_tokens = 1024}};
  cache.insert(blocks{1}, 512);
  EXPECT_EQ(cache.changes(), 1U);
  cache.insert(blocks{1}, 512);
  EXPECT_EQ(cache.changes(), 1U);
  cache.insert(blocks{2, 3}, 1024);  // in come two, out goes one
  EXPECT_EQ(cache.changes(), 4U);
}

TEST(PrefixCache, NeverHoldsMoreThanItsCapacityAndOnlyWholePrefixes) {
  std::mt19937 random{7};
  prefix_cache cache{{.capacity_tokens = 20 * 512}};
  for (auto round = 0; round != 5'000; ++round) {
    // A path down a tree whose nodes have three children; the id is the number of the node.
    blocks prompt;
    std::uint64_t node = 0;
    for (auto depth = random() % 6 + 1; depth != 0; --depth) prompt.push_back(node = node * 3 + 1 + random() % 3);
    cache.insert(prompt, prompt.size() * 512);
    ASSERT_LE(cache.used_tokens(), cache.capacity_tokens());
    ASSERT_EQ(cache.leading_run(prompt), prompt.size());
    ASSERT_EQ(cache.leading_run(prompt, prompt.size()), cache.leading_run(prompt, 0));
  }
}

}  // namespace
