#include "replay/small_workloads.hpp"
#include "synthetic.hpp"
#include "workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using replay::make_synthetic;
using replay::reshape;
using replay::testing::workload_of;

TEST(Workload, IsTakenAsItIsUnlessSomethingElseIsAskedFor) {
  auto const w = reshape(workload_of({{.at = 5ms, .prompt = 1}, {.at = 7ms, .prompt = 2}}), {});
  EXPECT_EQ(w.title, "by hand");
  EXPECT_EQ(w.requests[0].arrival, 0ms);
  EXPECT_EQ(w.requests[1].arrival, 2ms);
}

TEST(Workload, IsCutSpedUpAndSaysSo) {
  auto const w = reshape(workload_of({{.at = 5ms, .prompt = 1}, {.at = 7ms, .prompt = 2}, {.at = 9ms, .prompt = 3}}),
                         {.limit = 2, .speed = 4});
  EXPECT_EQ(w.title, "by hand, first 2 requests, 4 times as fast");
  ASSERT_EQ(w.requests.size(), 2U);
  EXPECT_EQ(w.requests[1].arrival, 500us);
}

TEST(Workload, SpreadsArrivalsBySeedAndSaysSo) {
  replay::workload bucket;
  for (auto i = 0U; i != 100; ++i)
    bucket.requests.push_back({.arrival = 0ms, .prompt_tokens = i, .reply_tokens = 1, .blocks = {}});
  auto const once = reshape(bucket, {.spread = 3s, .seed = 5});
  auto const again = reshape(bucket, {.spread = 3s, .seed = 5});
  auto const otherwise = reshape(bucket, {.spread = 3s, .seed = 6});
  EXPECT_EQ(once.title, ", arrivals spread by up to 3000 ms (seed 5)");
  auto const arrivals = [](auto const& w) {
    std::vector<replay::nanoseconds> all;
    for (auto const& r : w.requests) all.push_back(r.arrival);
    return all;
  };
  EXPECT_EQ(arrivals(once), arrivals(again));
  EXPECT_NE(arrivals(once), arrivals(otherwise));
  EXPECT_TRUE(std::ranges::is_sorted(arrivals(once)));
  EXPECT_EQ(arrivals(once).front(), 0ms);
  EXPECT_LT(arrivals(once).back(), 3s);
  EXPECT_GT(arrivals(once).back(), 2s);
}

TEST(Workload, RefusesASpeedThatLastsForYears) {
  EXPECT_THROW((void)reshape(workload_of({{.at = 0ms, .prompt = 1}, {.at = 1000ms, .prompt = 1}}), {.speed = 1e-9}),
               std::invalid_argument);
}

TEST(Synthetic, GivesEqualStreamsForEqualSeeds) {
  auto const a = make_synthetic({.chats = 50, .seed = 3});
  auto const b = make_synthetic({.chats = 50, .seed = 3});
  auto const c = make_synthetic({.chats = 50, .seed = 4});
  EXPECT_EQ(a.title, "synthetic, seed 3");
  ASSERT_EQ(a.requests.size(), b.requests.size());
  auto const equal = [](auto const& x, auto const& y) {
    return x.arrival == y.arrival && x.blocks == y.blocks && x.reply_tokens == y.reply_tokens;
  };
  EXPECT_TRUE(std::ranges::equal(a.requests, b.requests, equal));
  EXPECT_FALSE(std::ranges::equal(a.requests, c.requests, equal));
}

TEST(Synthetic, MakesPromptsThatAnIdNamesWhollyAndThatShareSystemPrompts) {
  auto const w = make_synthetic({.chats = 200, .families = 3});
  std::map<std::uint64_t, std::uint64_t> previous;
  std::map<std::uint64_t, int> first_blocks;
  for (auto const& r : w.requests) {
    ASSERT_EQ(r.blocks.size(), (r.prompt_tokens + 511U) / 512U);
    ASSERT_GE(r.reply_tokens, 1U);
    ++first_blocks[r.blocks.front()];
    for (std::size_t i = 1; i != r.blocks.size(); ++i)
      ASSERT_EQ(previous.emplace(r.blocks[i], r.blocks[i - 1]).first->second, r.blocks[i - 1]);
  }
  EXPECT_EQ(first_blocks.size(), 3U) << "system prompts have at least 4000 tokens by default";
}

TEST(Synthetic, LetsThePromptsOfAChatGrowByReplyAndNewTokens) {
  auto const w = make_synthetic({.chats = 1, .families = 1, .turns = 50});
  ASSERT_GT(w.requests.size(), 2U);
  for (std::size_t i = 1; i != w.requests.size(); ++i) {
    auto const& before = w.requests[i - 1];
    auto const& turn = w.requests[i];
    EXPECT_GT(turn.prompt_tokens, before.prompt_tokens + before.reply_tokens);
    EXPECT_GE(turn.arrival, before.arrival + 5s);
    auto const whole = before.prompt_tokens / 512;
    EXPECT_TRUE(std::equal(before.blocks.begin(), before.blocks.begin() + whole, turn.blocks.begin()));
  }
}

TEST(Synthetic, NamesSettingsThatMakeNoSense) {
  try {
    (void)make_synthetic({.families = 0});
    FAIL();
  } catch (std::invalid_argument const& error) {
    EXPECT_STREQ(error.what(), "synthetic requests: families is 0; it must be from 1 to 1000000");
  }
  EXPECT_THROW((void)make_synthetic({.chats_per_second = -1}), std::invalid_argument);
  EXPECT_THROW((void)make_synthetic({.burst = 0.5}), std::invalid_argument);
}

}  // namespace
