#include "replay/small_workloads.hpp"
#include "replay_run.hpp"
#include "simulation.hpp"

#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace {

using namespace std::chrono_literals;
using kvlane::errc;
using replay::policy;
using replay::simulate;
using replay::testing::round_settings;
using replay::testing::workload_of;

TEST(Engine, ServesOneRequestInTheTimeWorkedOutByHand) {
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 3}}), policy::fcfs, round_settings());
  EXPECT_EQ(r.first_token.max, 15ms);         // prefill 5 + 10
  EXPECT_EQ(r.run_time, 15ms + 11ms + 11ms);  // the other two tokens
  EXPECT_EQ(r.wait.max, 0ms);
  EXPECT_EQ(r.output_tokens, 3U);
  EXPECT_EQ(r.prompt_tokens, 10U);
  EXPECT_EQ(r.completed, 1U);
  EXPECT_DOUBLE_EQ(r.lanes_used, 1.0);
}

TEST(Engine, DecodesTheSlowerTheMoreKvTokensAreInUse) {
  auto s = round_settings();
  s.engine.decode_per_kv_token_us = 100;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 3}}), policy::fcfs, s);
  EXPECT_EQ(r.run_time, 15ms + (11ms + 1100us) + (11ms + 1200us));
}

TEST(Engine, LetsTheSecondWaitForTheOnlyLane) {
  auto const w = workload_of({{.at = 0ms, .prompt = 10, .reply = 2}, {.at = 1ms, .prompt = 20, .reply = 1}});
  auto const r = simulate(w, policy::fcfs, round_settings());
  EXPECT_EQ(r.wait.max, 25ms);         // 15 + 11 - 1
  EXPECT_EQ(r.first_token.max, 50ms);  // and 5 + 20
  EXPECT_EQ(r.wait.p50, 0ms);
  EXPECT_EQ(r.wait.mean, 12500us);
  EXPECT_EQ(r.run_time, 51ms);
  EXPECT_EQ(r.longest_line, 1U);
}

TEST(Engine, PrefillsNewcomersBetweenTwoDecodeSteps) {
  auto s = round_settings();
  s.limits.lanes = 2;
  auto const w = workload_of({{.at = 0ms, .prompt = 10, .reply = 3}, {.at = 1ms, .prompt = 20, .reply = 2}});
  auto const r = simulate(w, policy::fcfs, s);
  // Prefill until 15, decode until 26; prefill of the second until 51; decode of both until 63.
  EXPECT_EQ(r.first_token.max, 50ms);
  EXPECT_EQ(r.wait.max, 0ms);
  EXPECT_EQ(r.run_time, 63ms);
  EXPECT_DOUBLE_EQ(r.lanes_used, (63.0 + 62.0) / (2 * 63.0));
  EXPECT_DOUBLE_EQ(r.kv_used, (12 * 63.0 + 22 * 62.0) / (1e6 * 63.0));
}

TEST(Engine, HandsALaneOnBeforeItLooksAtWhoArrivesAtThatMoment) {
  auto const w = workload_of({{.at = 0ms, .prompt = 10}, {.at = 1ms, .prompt = 10}, {.at = 15ms, .prompt = 1}});
  auto const r = simulate(w, policy::fcfs, round_settings());
  EXPECT_EQ(r.first_token.max, 29ms);  // of the second: 15 + 15 - 1
  EXPECT_EQ(r.wait.max, 15ms);         // of the third
  EXPECT_EQ(r.most_overtaken, 0U);
}

TEST(Engine, ExpiresAWaitBeforeItHandsOverALaneAtThatMoment) {
  auto s = round_settings();
  auto const w = workload_of({{.at = 0ms, .prompt = 10}, {.at = 5ms, .prompt = 10}});
  s.limits.max_wait = 10ms;
  auto const late = simulate(w, policy::fcfs, s);
  EXPECT_EQ(late.refused_for(errc::timed_out), 1U);
  EXPECT_EQ(late.run_time, 15ms);
  s.limits.max_wait = 10ms + 1ns;
  EXPECT_EQ(simulate(w, policy::fcfs, s).refused_for(errc::timed_out), 0U);
}

TEST(Engine, ExpiresAWaitAtItsMomentThoughNothingElseHappensThen) {
  auto s = round_settings();
  s.limits.max_wait = 3ms;
  s.limits.max_waiting = 1;
  // The second waits until 4; only then there is room for the third.
  auto const w = workload_of(
      {{.at = 0ms, .prompt = 10}, {.at = 1ms, .prompt = 10}, {.at = 3ms, .prompt = 10}, {.at = 4ms, .prompt = 10}});
  auto const r = simulate(w, policy::fcfs, s);
  EXPECT_EQ(r.refused_for(errc::queue_full), 1U);
  EXPECT_EQ(r.refused_for(errc::timed_out), 2U);
  EXPECT_EQ(r.admitted, 1U);
}

TEST(Engine, LearnsFromCompletedRequestsAndRefusesHopelessOnesAtOnce) {
  auto s = round_settings();
  s.limits.max_wait = 50ms;
  auto const w = workload_of({{.at = 0ms, .prompt = 100}, {.at = 200ms, .prompt = 100}, {.at = 201ms, .prompt = 1}});
  EXPECT_EQ(simulate(w, policy::fcfs, s).refused_for(errc::would_time_out), 1U);
}

TEST(Engine, AnswersAnEmptyReplyWithItsPrefill) {
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 0}}), policy::fcfs, round_settings());
  EXPECT_EQ(r.run_time, 15ms);
  EXPECT_EQ(r.output_tokens, 0U);
  EXPECT_EQ(r.completed, 1U);
}

TEST(Engine, EndsRepliesAtTheCeiling) {
  auto s = round_settings();
  s.max_tokens = 4;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 100}}), policy::fcfs, s);
  EXPECT_EQ(r.output_tokens, 4U);
  EXPECT_EQ(r.completed, 1U);
  EXPECT_EQ(r.cut_off, 0U);
}

TEST(Engine, MayCostNothing) {
  auto s = round_settings();
  s.engine = {};
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 3}, {.at = 0ms, .prompt = 10, .reply = 3}}),
                          policy::fcfs, s);
  EXPECT_EQ(r.run_time, 0ms);
  EXPECT_EQ(r.completed, 2U);
  EXPECT_EQ(r.output_per_second(), 0.0);
}

TEST(Engine, ComputesOnlyWhatIsNotCachedAndAtLeastOneToken) {
  auto const w = workload_of({{.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                              {.at = 0ms, .prompt = 1024, .blocks = {1, 2}},
                              {.at = 0ms, .prompt = 1000, .blocks = {1, 3}}});
  auto const r = simulate(w, policy::fcfs, round_settings());
  EXPECT_EQ(r.prompt_tokens, 3048U);
  EXPECT_EQ(r.hit_tokens, 1023U + 512U);
  EXPECT_EQ(r.run_time, 1029ms + 6ms + 493ms);
}

TEST(Engine, PreemptsTheNewestWhenAReplyCannotGrowAndComputesItsTokensAgain) {
  auto s = round_settings();
  s.limits.lanes = 2;
  s.limits.kv_capacity = 26;
  auto const w = workload_of({{.at = 0ms, .prompt = 10, .reply = 10}, {.at = 0ms, .prompt = 10, .reply = 10}});
  auto const r = simulate(w, policy::fcfs, s);
  // Both reserve 12. Prefills until 30, then steps of 12 ms for both; at 66 they have 4 tokens each, hold 13, and need 14.
  // The second goes. The first ends at 66 + 6 * 11 = 132. The second computes 14 tokens until 151 and has 5 then.
  EXPECT_EQ(r.preempted, 1U);
  EXPECT_EQ(r.recomputed_tokens, 14U);
  EXPECT_EQ(r.run_time, 151ms + 5 * 11ms);
  EXPECT_EQ(r.completed, 2U);
  EXPECT_EQ(r.output_tokens, 20U);
  EXPECT_EQ(r.admitted, 2U) << "readmission is not counted again";
  EXPECT_EQ(r.prompt_tokens, 20U);
  EXPECT_EQ(r.wait.max, 0ms) << "only the wait for the first admission counts";
  EXPECT_EQ(r.first_token.max, 30ms);
}

TEST(Engine, FindsThePromptOfPreemptedWorkInTheCache) {
  auto s = round_settings();
  s.limits.lanes = 2;
  s.limits.kv_capacity = 2 * 514 + 2;
  auto const w = workload_of(
      {{.at = 0ms, .prompt = 512, .reply = 10, .blocks = {1}}, {.at = 0ms, .prompt = 512, .reply = 10, .blocks = {2}}});
  auto const r = simulate(w, policy::fcfs, s);
  EXPECT_EQ(r.preempted, 1U);
  EXPECT_EQ(r.recomputed_tokens, 4U);
  EXPECT_EQ(r.hit_tokens, 0U) << "hits count at the first prefill only";
}

TEST(Engine, CutsOffAReplyThatCanNeverFit) {
  auto s = round_settings();
  s.limits.kv_capacity = 15;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 10}}), policy::fcfs, s);
  // With 6 tokens it needs 16 of 15.
  EXPECT_EQ(r.cut_off, 1U);
  EXPECT_EQ(r.preempted, 0U);
  EXPECT_EQ(r.completed, 0U);
  EXPECT_EQ(r.output_tokens, 6U);
  EXPECT_EQ(r.run_time, 15ms + 5 * 11ms);
}

TEST(Engine, LetsAReplyUseTheCapacityToTheLastToken) {
  auto s = round_settings();
  s.limits.kv_capacity = 15;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 6}}), policy::fcfs, s);
  EXPECT_EQ(r.completed, 1U);
  EXPECT_DOUBLE_EQ(r.kv_used * 15 * 70, 12.0 * (15 + 11 + 11) + 13 * 11 + 14 * 11 + 15 * 11);
}

TEST(Engine, GrowsByWholeBlocks) {
  auto s = round_settings();
  s.limits.kv_capacity = 32;
  s.limits.block_tokens = 16;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 10}}), policy::fcfs, s);
  // 16 tokens until it has 7 of its own and needs 17: 15 + 6 steps. Then 32.
  EXPECT_DOUBLE_EQ(r.kv_used * 32 * 114, 16.0 * (15 + 6 * 11) + 32 * 33);
}

TEST(Simulation, CountsWhatCanNeverRun) {
  auto s = round_settings();
  s.limits.kv_capacity = 100;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 0}, {.at = 0ms, .prompt = 99}, {.at = 0ms, .prompt = 98}}),
                          policy::fcfs, s);
  EXPECT_EQ(r.refused_for(errc::never_fits), 1U);
  EXPECT_EQ(r.refused_for(errc::invalid_request), 1U);
  EXPECT_EQ(r.admitted, 1U);
}

TEST(Simulation, LeavesNothingBehindAndAgreesWithTheCountersOfTheCore) {
  auto s = round_settings();
  s.limits = {
      .lanes = 4, .kv_capacity = 300, .block_tokens = 16, .decode_headroom = 8, .max_waiting = 10, .max_wait = 4s};
  replay::workload w;
  for (std::uint32_t i = 0; i != 300; ++i)
    w.requests.push_back(
        {.arrival = i * 40ms, .prompt_tokens = 20 + i * 37 % 200, .reply_tokens = 1 + i * 101 % 300, .blocks = {}});
  replay::replay_run<kvlane::fcfs> run{w, s, kvlane::fcfs{}};
  auto const r = run.run({});
  auto const q = run.snapshot();
  EXPECT_EQ(q.lanes_busy, 0U);
  EXPECT_EQ(q.kv_tokens_used, 0U);
  EXPECT_EQ(q.waiting, 0U);
  std::uint64_t refused = 0;
  for (auto const n : r.refused) refused += n;
  EXPECT_EQ(r.requests, r.admitted + refused);
  EXPECT_EQ(r.admitted, r.completed + r.cut_off);
  EXPECT_EQ(q.counters.admitted, r.admitted + r.preempted);
  EXPECT_EQ(q.counters.readmitted, r.preempted);
  EXPECT_EQ(q.counters.refused_in_all(), refused + r.cut_off)
      << "a readmission that never fits is a refusal to the core";
  EXPECT_EQ(q.counters.samples_ignored, 0U);
  EXPECT_GT(r.preempted, 0U);
  EXPECT_GT(r.cut_off, 0U);
  EXPECT_GT(r.refused_for(errc::queue_full) + r.refused_for(errc::would_time_out) + r.refused_for(errc::timed_out), 0U);
}

TEST(Simulation, NamesSettingsThatMakeNoSense) {
  auto const complaint = [](auto change) {
    auto s = round_settings();
    change(s);
    try {
      (void)simulate(workload_of({{.at = 0ms, .prompt = 1}}), policy::fcfs, s);
    } catch (std::invalid_argument const& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_EQ(complaint([](auto& s) { s.limits.lanes = 0; }), "lanes is 0; nothing would ever be admitted");
  EXPECT_EQ(complaint([](auto& s) { s.max_tokens = 0; }), "max-tokens is 0; a reply has at least 1 token");
  EXPECT_EQ(complaint([](auto& s) { s.limits.kv_capacity = 0; }),
            "kvlane::limits: kv_capacity is 0; nothing could ever be admitted");
  EXPECT_EQ(complaint([](auto& s) { s.engine.decode_base_ms = -1; }),
            "the engine constant decode-base-ms is -1; a number from 0 to 1000000 is needed");
  EXPECT_NE(complaint([](auto& s) { s.engine.prefill_base_ms = std::numeric_limits<double>::quiet_NaN(); }), "");
  EXPECT_EQ(complaint([](auto& s) { s.ordering.aging_cost_per_turn = 1 << 21; }).substr(0, 24),
            "kvlane::ordering_options");
}

}  // namespace
