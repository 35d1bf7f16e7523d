#include "clients.hpp"
#include "replay/small_workloads.hpp"
#include "simulation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace {

using namespace std::chrono_literals;
using kvlane::errc;
using replay::client_crowd;
using replay::ending;
using replay::policy;
using replay::simulate_in_detail;
using replay::testing::round_settings;
using replay::testing::workload_of;

TEST(RetryingClients, ComeBackWhenTheyWereToldTo) {
  client_crowd clients{{.retry = true}};
  EXPECT_EQ(clients.back_after(1, errc::queue_full, 7s), 7s);
  EXPECT_EQ(clients.back_after(2, errc::would_time_out, 60s), 60s);
}

TEST(RetryingClients, ComeBackSoonWhenTheyWereToldNothingOrToWaitMoreThanAMinute) {
  client_crowd clients{{.retry = true}};
  for (std::optional<replay::nanoseconds> const told : {std::optional<replay::nanoseconds>{}, {61s}, {0s}})
    for (auto i = 0; i != 50; ++i) {
      auto const first = clients.back_after(1, errc::timed_out, told).value();
      EXPECT_GE(first, 375ms);
      EXPECT_LE(first, 500ms);
      auto const second = clients.back_after(2, errc::would_wait, told).value();
      EXPECT_GE(second, 750ms);
      EXPECT_LE(second, 1s);
    }
  EXPECT_NE(clients.back_after(1, errc::timed_out, {}), clients.back_after(1, errc::timed_out, {})) << "not together";
}

TEST(RetryingClients, GiveUpAfterTwoRetriesOrWhereComingBackDoesNotHelp) {
  client_crowd clients{{.retry = true}};
  EXPECT_EQ(clients.back_after(3, errc::queue_full, 1s), std::nullopt);
  EXPECT_EQ(clients.back_after(1, errc::never_fits, 1s), std::nullopt);
  EXPECT_EQ(clients.back_after(1, errc::invalid_request, 1s), std::nullopt);
  client_crowd others{{.retry = false}};
  EXPECT_EQ(others.back_after(1, errc::queue_full, 1s), std::nullopt);
}

TEST(RetryingClients, AreBackInOrderOfTime) {
  client_crowd clients{{.retry = true}};
  clients.comes_back(5s, 1);
  clients.comes_back(3s, 9);
  clients.comes_back(3s, 2);
  EXPECT_EQ(clients.next(), 3s);
  EXPECT_EQ(clients.take(2s), std::nullopt);
  EXPECT_EQ(clients.take(4s), 2U);
  EXPECT_EQ(clients.take(4s), 9U);
  EXPECT_EQ(clients.take(4s), std::nullopt);
  EXPECT_EQ(clients.take(5s), 1U);
  EXPECT_EQ(clients.next(), std::nullopt);
}

/// A lane that is taken for 205 ms, and nobody may wait.
class FullLine : public ::testing::Test {
 protected:
  FullLine() { settings_.limits.max_waiting = 0; }

  replay::simulation_settings settings_ = round_settings();
  replay::workload two_ = workload_of({{.prompt = 200}, {.at = 100ms, .prompt = 50}});
};

TEST_F(FullLine, TurnsAwayWhoDoesNotComeBack) {
  auto const r = simulate_in_detail(two_, policy::fcfs, settings_);
  EXPECT_EQ(r.fates[1].end, ending::refused);
  EXPECT_EQ(r.fates[1].tries, 1U);
  EXPECT_EQ(r.result.refused_for(errc::queue_full), 1U);
}

TEST_F(FullLine, ServesWhoComesBackWhenItIsEmpty) {
  settings_.clients.retry = true;
  auto const r = simulate_in_detail(two_, policy::fcfs, settings_);
  auto const& fate = r.fates[1];
  EXPECT_EQ(fate.end, ending::completed);
  EXPECT_EQ(fate.tries, 2U);
  EXPECT_GE(fate.arrived, 475ms);
  EXPECT_LE(fate.arrived, 600ms);
  EXPECT_EQ(*fate.first_token - fate.arrived, 55ms);
  EXPECT_EQ(r.result.wait.max, 0ns) << "it has not stood in line";
  EXPECT_EQ(r.result.first_token.max, std::max<replay::nanoseconds>(205ms, *fate.first_token - 100ms))
      << "but its client has waited since the first try";
  EXPECT_EQ(r.result.refused_for(errc::queue_full), 0U) << "in the end it was not refused";
}

TEST_F(FullLine, TurnsAwayTheThirdTryForGood) {
  settings_.clients.retry = true;
  two_.requests[0].prompt_tokens = 60'000;
  auto const r = simulate_in_detail(two_, policy::fcfs, settings_);
  EXPECT_EQ(r.fates[1].end, ending::refused);
  EXPECT_EQ(r.fates[1].tries, 3U);
  EXPECT_EQ(r.result.refused_for(errc::queue_full), 1U);
}

TEST_F(FullLine, ShowsThatARefusalWasWrongWhenEachIsProbed) {
  settings_.limits.max_wait = 150ms;
  settings_.probes = replay::refusal_probes{.share = 1, .of_full_lines = true, .leave = true};
  auto const r = simulate_in_detail(two_, policy::fcfs, settings_);
  EXPECT_TRUE(r.fates[1].let_in);
  EXPECT_EQ(r.fates[1].admitted, 205ms);
  EXPECT_TRUE(r.fates[1].had_token_within(160ms));
  EXPECT_FALSE(r.fates[1].had_token_within(150ms));
  EXPECT_FALSE(r.fates[0].let_in);
}

TEST_F(FullLine, LosesProbesWhenTheirWaitIsOver) {
  settings_.limits.max_wait = 50ms;
  settings_.probes = replay::refusal_probes{.share = 1, .of_full_lines = true, .leave = true};
  auto const r = simulate_in_detail(two_, policy::fcfs, settings_);
  EXPECT_TRUE(r.fates[1].let_in);
  EXPECT_EQ(r.fates[1].end, ending::timed_out);
  EXPECT_EQ(r.fates[1].admitted, std::nullopt);
  EXPECT_EQ(r.result.refused_for(errc::timed_out), 1U);
}

}  // namespace
