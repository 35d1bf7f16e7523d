#include "overload_trial.hpp"
#include "prediction_report.hpp"
#include "replay/small_workloads.hpp"
#include "simulation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using kvlane::errc;
using replay::engine_reports;
using replay::policy;
using replay::refusal_probes;
using replay::testing::round_settings;
using replay::testing::workload_of;

/// One lane, a token each 11 ms, waits of up to 1 s, and 512 tokens reserved for each reply.
replay::simulation_settings impatient() {
  auto s = round_settings();
  s.limits.decode_headroom = 512;
  s.limits.max_wait = 1s;
  return s;
}

/// Somebody comes after 3 s, when about 270 tokens of a reply have been made: as far as is known, 242 tokens or 2.7 s are left.
replay::workload behind_a_reply_of(std::uint32_t tokens) {
  return workload_of({{.at = 0ms, .prompt = 10, .reply = tokens}, {.at = 3s, .prompt = 10, .reply = 1}});
}

TEST(SimulatedPrediction, RefusesWhoeverIsPredictedToWaitTooLong) {
  auto const r = simulate(behind_a_reply_of(512), policy::fcfs, impatient());
  EXPECT_EQ(r.refused_for(errc::would_time_out), 1U);
  EXPECT_EQ(r.probes, 0U);
}

TEST(SimulatedPrediction, IsNotMadeWhereNothingIsReported) {
  auto s = impatient();
  s.reports = engine_reports::nothing;
  auto const r = simulate(behind_a_reply_of(512), policy::fcfs, s);
  EXPECT_EQ(r.refused_for(errc::would_time_out), 0U);
  EXPECT_EQ(r.refused_for(errc::timed_out), 1U);
}

TEST(SimulatedPrediction, KnowsWhenAReplyEndsWhereLengthsAreTold) {
  auto s = impatient();
  s.reports = engine_reports::reply_lengths;
  EXPECT_EQ(simulate(behind_a_reply_of(300), policy::fcfs, s).completed, 2U);
  EXPECT_EQ(simulate(behind_a_reply_of(512), policy::fcfs, s).refused_for(errc::would_time_out), 1U);
}

TEST(SimulatedPrediction, LengthsThatAreToldDoNotChangeWhatIsReserved) {
  auto s = impatient();
  s.limits.lanes = 2;
  s.limits.kv_capacity = 10 + 512 + 10 + 511;  // one token short of two reservations
  s.reports = engine_reports::reply_lengths;
  s.limits.max_wait = kvlane::forever;
  auto const r = simulate(workload_of({{.at = 0ms, .prompt = 10, .reply = 5}, {.at = 1ms, .prompt = 10, .reply = 5}}),
                          policy::fcfs, s);
  EXPECT_GT(r.wait.max, 0ms) << "both would fit if no more than the replies were reserved";
}

TEST(RefusalProbe, ThatWouldHaveWaitedTooLongShowsThatTheRefusalIsRight) {
  auto s = impatient();
  s.probes = refusal_probes{.share = 1};
  auto const r = simulate(behind_a_reply_of(512), policy::fcfs, s);
  EXPECT_EQ(r.probes, 1U);
  EXPECT_EQ(r.probes_in_time, 0U);
  EXPECT_EQ(r.completed, 2U) << "a probe waits as long as it takes";
  EXPECT_LT(std::chrono::abs(r.prediction_miss.p50), 100ms);
}

TEST(RefusalProbe, ThatGetsInInTimeShowsThatTheRefusalIsWrong) {
  auto s = impatient();
  s.probes = refusal_probes{.share = 1};
  auto const r = simulate(behind_a_reply_of(300), policy::fcfs, s);
  EXPECT_EQ(r.probes, 1U);
  EXPECT_EQ(r.probes_in_time, 1U);
  EXPECT_NEAR(std::chrono::duration<double>{r.prediction_miss.p50}.count(), (512 - 300) * 0.011, 0.1);
}

TEST(RefusalProbe, NobodyIsOneWhereTheirShareIsNone) {
  auto s = impatient();
  s.probes = refusal_probes{.share = 0};
  auto const r = simulate(behind_a_reply_of(300), policy::fcfs, s);
  EXPECT_EQ(r.probes, 0U);
  EXPECT_EQ(r.refused_for(errc::would_time_out), 1U);
}

/// A stream that a machine is given too much of.
replay::workload chat() {
  replay::workload w;
  w.title = "by hand";
  for (int i = 0; i != 40; ++i)
    w.requests.push_back({.arrival = i * 1s, .prompt_tokens = 200, .reply_tokens = 400, .blocks = {}});
  return w;
}

TEST(OverloadTrial, CountsEveryRequestOnce) {
  auto const t = try_under_overload(chat(), *replay::machine_named("a10g"));
  EXPECT_EQ(t.requests, 40 * replay::overload_rounds);
  ASSERT_EQ(t.outcomes.size(), 8U);
  for (auto const& o : t.outcomes) {
    EXPECT_EQ(o.refused() + o.let_in(), t.requests) << o.predictor;
    EXPECT_EQ(o.result.completed + o.result.refused_for(errc::timed_out), o.let_in() + o.result.probes) << o.predictor;
  }
}

TEST(OverloadTrial, IsOneAndPredictionsRefuseInsteadOfLettingWaitInVain) {
  auto const t = try_under_overload(chat(), *replay::machine_named("a10g"));
  auto const& with = t.outcomes.front();
  auto const& without = t.outcomes.back();
  EXPECT_EQ(with.predictor, "work_left");
  EXPECT_EQ(without.predictor, "none");
  EXPECT_EQ(without.refused(), 0U);
  EXPECT_GT(without.late(), 0.3) << "twice as much as can be served";
  EXPECT_GT(with.refused(), 0U);
  EXPECT_LT(with.late(), without.late());
}

TEST(OverloadTrial, GivesTheSameReportEachTime) {
  auto const report = [] {
    auto const t = try_under_overload(chat(), *replay::machine_named("rtx4090"));
    return table_of(t) + replay::json_of(replay::prediction_trial{}, {&t, 1}).dump();
  };
  EXPECT_EQ(report(), report());
}

TEST(OverloadTrial, NeedsTwoArrivals) {
  auto const w = workload_of({{.at = 0ms, .prompt = 1}});
  EXPECT_THROW((void)try_under_overload(w, *replay::machine_named("a10g")), std::invalid_argument);
}

}  // namespace
