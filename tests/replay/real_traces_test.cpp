#include "replay/recorded_traces.hpp"
#include "replay/same_reports.hpp"
#include "simulation.hpp"
#include "trace_reader.hpp"
#include "workload.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace {

using replay::policy;

constexpr auto conversation = "mooncake_conversation_0000-0900s.jsonl";
constexpr auto tool_use = "mooncake_synthetic_0000-0340s.jsonl";
constexpr auto azure_chat = "azure2023_conv_0000-1200s.csv";

/// Skips where the recorded traces are not at hand: they are not part of the project.
class RealTraces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(replay::testing::recorded_traces() / conversation))
      GTEST_SKIP() << "no recorded traces: set KVLANE_TRACES to the folder that holds " << conversation;
  }

  static replay::workload load(char const* name) {
    return replay::read_trace_file((replay::testing::recorded_traces() / name).string(), replay::bad_lines::refuse)
        .requests;
  }

  /// One request at a time, replies for nothing, 36,000 prompt tokens a second.
  static replay::simulation_settings serial_prefill() {
    replay::simulation_settings s;
    s.limits = {.lanes = 1, .kv_capacity = 1'000'000, .max_waiting = 100'000};
    s.engine = {.prefill_per_token_us = 1000.0 / 36.0};
    return s;
  }

  static double seconds(replay::nanoseconds t) { return std::chrono::duration<double>{t}.count(); }
};

TEST_F(RealTraces, AreReadWithoutABadLine) {
  EXPECT_EQ(load(conversation).requests.size(), 2728U);
  EXPECT_EQ(load(tool_use).requests.size(), 1237U);
  auto const azure = load(azure_chat);
  EXPECT_EQ(azure.requests.size(), 5985U);
  EXPECT_EQ(azure.requests[1].arrival, std::chrono::nanoseconds{4'314'579'000});
  EXPECT_EQ(azure.title, "real: Azure CSV, azure2023_conv_0000-1200s.csv");
}

TEST_F(RealTraces, OfMeasuredAndSampledRequestsAreReadWithoutABadLine) {
  auto const arena = load("lmsys_arena_fcfs_measured.csv");
  EXPECT_EQ(arena.requests.size(), 1500U);
  EXPECT_EQ(arena.requests.front().measured->last_token, std::chrono::nanoseconds{9'415'639'000});
  auto const vllm = load("vllm_rtx4090_llama31-8b.csv");
  EXPECT_EQ(vllm.requests.size(), 300U);
  EXPECT_EQ(vllm.requests.front().blocks.size(), 147U);
  auto const sampled = load("servegen_m-large_sampled.csv");
  EXPECT_EQ(sampled.requests.size(), 4943U);
  EXPECT_TRUE(sampled.title.starts_with("SAMPLED"));
}

TEST_F(RealTraces, GiveTheFirstTokenTimesThatAnotherSimulatorGave) {
  auto const fcfs = simulate(load(conversation), policy::fcfs, serial_prefill());
  EXPECT_NEAR(seconds(fcfs.first_token.mean), 45.4, 0.5);
  EXPECT_NEAR(seconds(fcfs.first_token.p95), 78, 1);
  EXPECT_NEAR(seconds(fcfs.first_token.max), 85, 1);
  EXPECT_NEAR(fcfs.hit_share(), 0.049, 0.001);
}

TEST_F(RealTraces, HitAsOftenAsAnLruOfThatSizeCan) {
  auto const share = [](replay::workload const& w, std::uint64_t cache_tokens) {
    auto s = serial_prefill();
    s.cache_tokens = cache_tokens;
    return simulate(w, policy::fcfs, s).hit_share();
  };
  // Worked out by a separate program that knows nothing but the order of the file.
  auto const chats = load(conversation);
  EXPECT_NEAR(share(chats, 200'000), 0.0387, 0.0001);
  EXPECT_NEAR(share(chats, 1'000'000), 0.0494, 0.0001);
  EXPECT_NEAR(share(chats, 3'000'000), 0.1414, 0.0001);
  EXPECT_NEAR(share(chats, 1'000'000'000'000), 0.3088, 0.0001);
  EXPECT_NEAR(share(load(tool_use), 1'000'000), 0.0274, 0.0001);
}

TEST_F(RealTraces, AreServedSoonerAndHitMoreInTheOrderOfTheCache) {
  auto const w = load(conversation);
  auto const fcfs = simulate(w, policy::fcfs, serial_prefill());
  auto const cache_aware = simulate(w, policy::cache_aware, serial_prefill());
  EXPECT_GT(cache_aware.hit_share(), 1.5 * fcfs.hit_share());
  EXPECT_LT(cache_aware.first_token.mean, fcfs.first_token.mean * 3 / 4);
  EXPECT_LE(cache_aware.most_overtaken, 32U);
}

TEST_F(RealTraces, AreServedAlikeByTheIndexAndBySorting) {
  for (auto const* const name : {conversation, tool_use}) {
    SCOPED_TRACE(name);
    auto w = replay::reshape(load(name), {.limit = 1000, .speed = 4});
    EXPECT_GT(replay::testing::expect_same_reports(w, serial_prefill()).longest_line, 300U);
    replay::simulation_settings batching;
    batching.limits = {.lanes = 16, .kv_capacity = 300'000, .block_tokens = 16, .max_waiting = 100'000};
    EXPECT_GT(replay::testing::expect_same_reports(w, batching).longest_line, 100U);
  }
}

TEST_F(RealTraces, WithoutPrefixesAreServedAlikeByAllPolicies) {
  auto const w = load(azure_chat);
  replay::simulation_settings s;
  s.limits = {.lanes = 8, .kv_capacity = 200'000, .block_tokens = 16, .max_waiting = 100'000};
  auto const fcfs = simulate(w, policy::fcfs, s);
  EXPECT_EQ(simulate(w, policy::cache_aware, s).first_token.mean, fcfs.first_token.mean);
  EXPECT_EQ(fcfs.completed, 5985U);
}

}  // namespace
