#include "machines.hpp"
#include "offered_load.hpp"
#include "replay/small_workloads.hpp"
#include "sweep.hpp"
#include "sweep_report.hpp"
#include "synthetic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using replay::ending;
using replay::figures_of;
using replay::policy;
using replay::request_fate;
using replay::run_details;
using replay::sweep;
using replay::testing::round_settings;
using replay::testing::workload_of;
using ::testing::HasSubstr;

/// One of each ending, with max_wait 1 s in mind; work of 10 + 5 tokens each where there was any.
run_details one_of_each() {
  auto const ran = [](ending end, replay::nanoseconds first_token) {
    return request_fate{.end = end,
                        .arrived = 0s,
                        .tries = 1,
                        .admitted = first_token - 5ms,
                        .first_token = first_token,
                        .computed_tokens = 10,
                        .generated_tokens = 5};
  };
  run_details d;
  d.fates = {ran(ending::completed, 1s),
             ran(ending::completed, 1001ms),
             ran(ending::cut_off, 500ms),
             {.end = ending::timed_out, .why = kvlane::errc::timed_out, .tries = 2},
             {.end = ending::refused, .why = kvlane::errc::queue_full, .tries = 3},
             {.end = ending::refused, .why = kvlane::errc::would_time_out, .tries = 1},
             {.end = ending::refused, .why = kvlane::errc::never_fits, .tries = 1},
             {.end = ending::refused, .why = kvlane::errc::invalid_request, .tries = 1}};
  d.result.run_time = 4s;
  return d;
}

replay::workload eight_requests() {
  auto w = workload_of({});
  w.requests.resize(8, {.prompt_tokens = 20, .reply_tokens = 5});
  return w;
}

TEST(SweepFigures, CountEachRequestOnce) {
  auto const f = figures_of(eight_requests(), one_of_each(), 1s);
  EXPECT_EQ(f.requests, 8U);
  EXPECT_EQ(f.good, 1U);
  EXPECT_EQ(f.late, 1U);
  EXPECT_EQ(f.cut_off, 1U);
  EXPECT_EQ(f.timed_out, 1U);
  EXPECT_EQ(f.refused_early, 2U);
  EXPECT_EQ(f.impossible, 2U);
  EXPECT_EQ(f.tries, 11U);
  EXPECT_DOUBLE_EQ(f.good_per_second(), 0.25);
  EXPECT_EQ(f.good_tokens, 25U);
  EXPECT_DOUBLE_EQ(f.good_tokens_per_second(), 6.25);
  EXPECT_DOUBLE_EQ(f.share(f.refused_early), 0.25);
}

TEST(SweepFigures, CountTheWorkForThoseWhoWereLateOrCutAsWasted) {
  auto d = one_of_each();
  d.fates[0].recomputed_tokens = 15;
  d.result.recomputed_tokens = 15;
  auto const f = figures_of(eight_requests(), d, 1s);
  EXPECT_EQ(f.computed_tokens, 60U);
  EXPECT_EQ(f.wasted_tokens, 30U);
  EXPECT_DOUBLE_EQ(f.wasted_share(), 0.5);
  EXPECT_DOUBLE_EQ(f.recomputed_share(), 0.25);
}

TEST(SweepFigures, CountFirstTokensFromTheFirstTryAndBeingInTimeFromTheLast) {
  auto d = one_of_each();
  d.fates[1].arrived = 900ms;  // came back, and had its token 101 ms later
  auto const f = figures_of(eight_requests(), d, 1s);
  EXPECT_EQ(f.good, 2U);
  EXPECT_EQ(f.first_token.max, 1001ms);
  EXPECT_EQ(f.first_token.p50, 1s);
  // Waits of 995, 96 and 495 ms: below 1024, 128 and 512.
  EXPECT_EQ(f.wait_ms.counts()[11], 1U);
  EXPECT_EQ(f.wait_ms.counts()[8], 1U);
  EXPECT_EQ(f.wait_ms.counts()[10], 1U);
  EXPECT_EQ(f.wait_ms.count(), 3U);
}

TEST(SweepFigures, TellHowManyOfThoseLetInWereGood) {
  auto d = one_of_each();
  d.fates[0].let_in = d.fates[3].let_in = true;
  auto const f = figures_of(eight_requests(), d, 1s);
  EXPECT_EQ(f.let_in, 2U);
  EXPECT_EQ(f.let_in_good, 1U);
}

TEST(SweepFigures, TellHowEquallyClientsWereServed) {
  auto w = eight_requests();
  auto const d = one_of_each();
  EXPECT_EQ(figures_of(w, d, 1s).fairness, std::nullopt) << "no clients";
  for (auto& r : w.requests) r.client = 1;
  EXPECT_EQ(figures_of(w, d, 1s).fairness, std::nullopt) << "one client";
  for (std::size_t i = 4; i != 8; ++i) w.requests[i].client = 2;
  EXPECT_DOUBLE_EQ(figures_of(w, d, 1s).fairness.value(), 0.5) << "one of two got all";
  // One of two requests against one of four: shares 1/2 and 1/4.
  auto both = d;
  both.fates[4] = both.fates[0];
  w.requests[2].client = w.requests[3].client = std::nullopt;
  EXPECT_DOUBLE_EQ(figures_of(w, both, 1s).fairness.value(), 0.75 * 0.75 / (2 * (0.25 + 0.0625)));
}

/// Ten requests of 105 ms each, one a second, on one lane.
replay::sweep_settings small_sweep() {
  replay::sweep_settings s;
  s.simulation = round_settings();
  s.simulation.limits.max_wait = 300ms;
  s.simulation.reports = replay::engine_reports::nothing;
  s.policies = {policy::fcfs, policy::no_admission};
  s.loads = {0.5, 4};
  s.rounds = 1;
  return s;
}

replay::workload one_a_second() {
  auto w = workload_of({});
  for (auto i = 0; i != 10; ++i) w.requests.push_back({.arrival = i * 1s, .prompt_tokens = 100, .reply_tokens = 1});
  return w;
}

TEST(Sweep, MeasuresTheCapacityByABurst) {
  auto const o = sweep(one_a_second(), small_sweep());
  EXPECT_EQ(o.burst_time, 1050ms);
  EXPECT_DOUBLE_EQ(o.capacity(), 10 / 1.05);
}

TEST(Sweep, LetsRequestsComeAtEachLoadForEachPolicy) {
  auto const o = sweep(one_a_second(), small_sweep());
  ASSERT_EQ(o.runs.size(), 4U);
  EXPECT_EQ(o.runs[0].used, policy::fcfs);
  EXPECT_EQ(o.runs[0].load, 0.5);
  EXPECT_EQ(o.runs[1].used, policy::no_admission);
  EXPECT_EQ(o.runs[3].load, 4);
  // 9 gaps in twice the time of the burst, 233 ms each: nobody waits.
  EXPECT_EQ(o.runs[0].figures.good, 10U);
  EXPECT_EQ(o.runs[0].figures.first_token.max, 105ms);
  EXPECT_EQ(o.runs[0].figures.run.run_time, 2205ms);
  EXPECT_DOUBLE_EQ(o.runs[0].figures.good_per_second(), 10 / 2.205);
}

TEST(Sweep, ShowsWhoIsServedInTimeUnderOverload) {
  auto const o = sweep(one_a_second(), small_sweep());
  // Arrivals every 29.17 ms, served every 105 ms: number i starts after i * 75.83 ms in line. Of those served as they come
  // number 2 has its token after 256.7 ms, number 3 after 332.5 ms.
  auto const& all = o.runs[3].figures;
  EXPECT_EQ(all.good, 3U);
  EXPECT_EQ(all.late, 7U);
  EXPECT_EQ(all.run.run_time, 1050ms);
  EXPECT_EQ(all.computed_tokens, 1010U);
  EXPECT_EQ(all.wasted_tokens, 707U);
  // In kvlane's line those leave whose wait reaches 300 ms. Number 3 starts after 227.5 ms.
  auto const& queued = o.runs[2].figures;
  EXPECT_EQ(queued.good, 3U);
  EXPECT_EQ(queued.good + queued.late + queued.timed_out, 10U);
  EXPECT_GT(queued.timed_out, 0U);
  EXPECT_LT(queued.wasted_tokens, 707U);
}

TEST(Sweep, HasACurveOfEachRun) {
  auto const run = sweep(one_a_second(), small_sweep()).runs[3];
  ASSERT_EQ(run.interval, 10ms);
  ASSERT_EQ(run.points.size(), 105U);
  EXPECT_DOUBLE_EQ(run.points[0].lanes_busy, 1);
  EXPECT_DOUBLE_EQ(run.points[104].kv_tokens, 100);
}

TEST(Sweep, RepeatsAStreamWithOtherPrompts) {
  auto const w =
      replay::in_rounds(workload_of({{.at = 0s, .prompt = 1024, .blocks = {0, 7}}, {.at = 2s, .prompt = 5}}), 3);
  ASSERT_EQ(w.requests.size(), 6U);
  EXPECT_EQ(w.requests[2].arrival, 4s);
  EXPECT_EQ(w.requests[5].arrival, 10s);
  EXPECT_EQ(w.requests[2].blocks, (std::vector<std::uint64_t>{8, 15}));
  EXPECT_EQ(w.requests[4].blocks, (std::vector<std::uint64_t>{16, 23}));
  EXPECT_THAT(w.title, HasSubstr("3 rounds"));
}

TEST(Sweep, GivesTheSameBytesAgainAndWithMoreThreads) {
  replay::sweep_settings s;
  s.simulation = replay::settings_of(replay::machines().front());
  s.simulation.limits.max_waiting.reset();
  s.simulation.limits.max_wait = 10s;
  s.simulation.limits.lanes = 4;
  s.simulation.clients.retry = true;
  s.simulation.probes = replay::refusal_probes{.of_full_lines = true, .leave = true};
  for (auto const p : replay::all_policies())
    if (p != policy::slora && p != policy::vllm) s.policies.push_back(p);
  s.loads = {1, 3};
  s.rounds = 2;
  auto const w = replay::make_synthetic({.chats = 40, .families = 10});
  auto const once = sweep(w, s);
  auto const again = sweep(w, s);
  s.threads = 3;
  auto const together = sweep(w, s);
  EXPECT_EQ(json_of(s, {once}).dump(), json_of(s, {again}).dump());
  EXPECT_EQ(json_of(s, {once}).dump(), json_of(s, {together}).dump());
  EXPECT_EQ(table_of(once, s, false), table_of(together, s, false));
  for (auto const& r : once.runs) {
    auto const& f = r.figures;
    EXPECT_EQ(f.good + f.late + f.cut_off + f.timed_out + f.refused_early + f.impossible, f.requests)
        << name_of(r.used);
    EXPECT_LE(r.points.size(), 400U);
  }
}

TEST(Sweep, RefusesWhatMakesNoSense) {
  auto const refused = [](auto change) {
    auto s = small_sweep();
    change(s);
    EXPECT_THROW((void)sweep(one_a_second(), s), std::invalid_argument);
  };
  refused([](auto& s) { s.simulation.limits.max_wait = kvlane::forever; });
  refused([](auto& s) { s.loads = {0}; });
  refused([](auto& s) { s.loads = {std::numeric_limits<double>::quiet_NaN()}; });
  refused([](auto& s) { s.loads.clear(); });
  refused([](auto& s) { s.rounds = 0; });
  refused([](auto& s) { s.threads = 0; });
  refused([](auto& s) { s.policies = {policy::vllm}; });
  EXPECT_THROW((void)sweep(workload_of({{.prompt = 1}, {.prompt = 1}}), small_sweep()), std::invalid_argument);
}

TEST(SweepReport, HasOneRowForEachRunAndSaysWhatColumnsMean) {
  auto const s = small_sweep();
  auto const o = sweep(one_a_second(), s);
  auto const table = table_of(o, s, false);
  EXPECT_THAT(
      table,
      HasSubstr("by hand\ncapacity: 9.524 requests/s (10 requests at once, served as they came, take 1.050 s)\n"));
  EXPECT_THAT(table, HasSubstr("\n 0.5  fcfs                       4.535  100.0     0.5 "));
  EXPECT_THAT(table, HasSubstr("\n   4  no_admission               2.857   30.0     0.3     0.0    0.0   70.0   0.0 "));
  EXPECT_EQ(table.find("decided/s"), std::string::npos);
  EXPECT_THAT(table_of(o, s, true), HasSubstr("decided/s\n"));
  EXPECT_THAT(legend_of(s), HasSubstr("first token came within 0.3 s"));
  EXPECT_THAT(legend_of(s), HasSubstr("At most 32 overtakes"));
}

TEST(SweepReport, WritesCurvesAndHistograms) {
  auto const s = small_sweep();
  auto const json = json_of(s, {sweep(one_a_second(), s)});
  EXPECT_EQ(json["format"], "kvlane-sweep-1");
  EXPECT_EQ(json["settings"]["loads"].size(), 2U);
  auto const& run = json["workloads"][0]["runs"][3];
  EXPECT_EQ(run["policy"], "no_admission");
  EXPECT_EQ(run["good"], 3);
  EXPECT_EQ(run["late"], 7);
  EXPECT_DOUBLE_EQ(run["offered_per_s"].get<double>(), 4 * 10 / 1.05);
  EXPECT_EQ(run["series"]["time_s"].size(), 105U);
  EXPECT_DOUBLE_EQ(run["series"]["time_s"][2].get<double>(), 0.02);
  EXPECT_EQ(run["waits"][0]["count"], 10) << "all were admitted at once";
  EXPECT_TRUE(run["waits"].back()["up_to_s"].is_null());
  EXPECT_TRUE(run["fairness"].is_null());
}

}  // namespace
