#include "replay/small_workloads.hpp"
#include "simulation.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using replay::ending;
using replay::policy;
using replay::simulate_in_detail;
using replay::testing::round_settings;
using replay::testing::workload_of;

/// Two that need 19 tokens of KV each in the end, and 30 are there.
class TwoThatGrow : public ::testing::Test {
 protected:
  TwoThatGrow() {
    settings_.limits.lanes = 2;
    settings_.limits.kv_capacity = 30;
    settings_.limits.decode_headroom = 10;
    settings_.cache_tokens = 0;
  }

  replay::simulation_settings settings_ = round_settings();
  replay::workload both_ = workload_of({{.prompt = 10, .reply = 10}, {.prompt = 10, .reply = 10}});
};

TEST_F(TwoThatGrow, RunOneAfterTheOtherUnderKvlane) {
  auto const r = simulate_in_detail(both_, policy::fcfs, settings_);
  EXPECT_GT(*r.fates[1].admitted, *r.fates[0].first_token);
  EXPECT_EQ(r.result.preempted, 0U);
}

TEST_F(TwoThatGrow, RunTogetherBehindASemaphoreUntilOneLosesItsKv) {
  auto const r = simulate_in_detail(both_, policy::semaphore, settings_);
  EXPECT_EQ(r.fates[1].admitted, 0ns);
  EXPECT_EQ(r.result.preempted, 1U);
  EXPECT_EQ(r.result.completed, 2U);
  EXPECT_EQ(r.fates[0].recomputed_tokens, 0U);
  // With 6 tokens of reply each, the next step needs 16 + 16.
  EXPECT_EQ(r.fates[1].recomputed_tokens, 16U);
}

TEST(Semaphore, IsFirstComeFirstServedInALineOfAsManyPlacesAsKvlanes) {
  auto s = round_settings();
  s.limits.max_waiting = 2;
  // The last one finds no place, the one before a cached prompt and nobody who cares.
  auto const w = workload_of({{.prompt = 1024, .blocks = {1, 2}},
                              {.prompt = 1024, .blocks = {3, 4}},
                              {.prompt = 1024, .blocks = {1, 2}},
                              {.prompt = 1}});
  auto const r = simulate_in_detail(w, policy::semaphore, s);
  EXPECT_LT(*r.fates[1].admitted, *r.fates[2].admitted);
  EXPECT_EQ(r.fates[3].end, ending::refused);
  EXPECT_EQ(r.fates[3].why, kvlane::errc::queue_full);
}

TEST(Semaphore, RefusesNobodyForAPrediction) {
  auto s = round_settings();
  s.limits.max_wait = 20ms;
  auto w = workload_of({});
  for (auto i = 0; i != 40; ++i) w.requests.push_back({.arrival = i * 20ms, .prompt_tokens = 95, .reply_tokens = 2});
  auto const semaphore = simulate_in_detail(w, policy::semaphore, s).result;
  EXPECT_EQ(semaphore.refused_for(kvlane::errc::would_time_out), 0U);
  EXPECT_GT(semaphore.refused_for(kvlane::errc::timed_out), 20U);
}

TEST(NoAdmission, RunsEverythingAtOnceForAsLongAsItTakes) {
  auto s = round_settings();
  s.limits.max_wait = 1ms;
  s.limits.max_waiting = 0;
  auto const w = workload_of({{.prompt = 100}, {.prompt = 100}, {.prompt = 100}});
  auto const r = simulate_in_detail(w, policy::no_admission, s);
  for (auto const& fate : r.fates) {
    EXPECT_EQ(fate.admitted, 0ns);
    EXPECT_EQ(fate.end, ending::completed);
  }
  EXPECT_EQ(r.fates[2].first_token, 315ms) << "three prefills of 105 ms";
}

TEST(NoAdmission, WaitsForKvForAsLongAsItTakes) {
  auto s = round_settings();
  s.limits.max_wait = 1ms;
  s.limits.kv_capacity = 150;
  auto const r = simulate_in_detail(workload_of({{.prompt = 100}, {.prompt = 100}}), policy::no_admission, s);
  EXPECT_EQ(r.fates[1].admitted, 105ms);
  EXPECT_EQ(r.fates[1].end, ending::completed);
}

}  // namespace
