#include "replay/served_requests.hpp"
#include "yardsticks/projected_peak.hpp"
#include "yardsticks/server_run.hpp"
#include "yardsticks/slora_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace {

using namespace std::chrono_literals;
using replay::kv_course;
using replay::projected_peak;
using replay::slora_server;
using replay::testing::admitted_in;
using replay::testing::arrivals;
using replay::testing::round_costs;
using replay::testing::tokens_in;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A pool of so many tokens, and a look at the line after each third decode step.
replay::slora_settings small_pool(std::uint64_t kv_tokens) {
  return {.costs = round_costs(), .kv_tokens = kv_tokens, .decodes_between = 3, .tokens_per_client = 0};
}

TEST(ProjectedPeak, IsReachedWhenAMemberEnds) {
  std::vector<kv_course> batch{{.held = 20, .left = 1}, {.held = 10, .left = 5}};
  // Both after 1 token: 30 + 2; then the second alone: 10 + 5.
  EXPECT_EQ(projected_peak(batch), 32U);
  EXPECT_EQ(projected_peak({}), 0U);
}

TEST(ProjectedPeak, IsTheMostThatBatchesHoldWhenTheyAreFollowedTokenByToken) {
  constexpr auto seed = 7U;
  SCOPED_TRACE(seed);
  std::mt19937 random{seed};
  for (auto round = 0; round != 500; ++round) {
    std::vector<kv_course> batch(1 + random() % 6);
    for (auto& c : batch) c = {.held = 1 + random() % 50, .left = random() % 12};
    std::uint64_t most = 0;
    for (std::uint64_t t = 0; t != 12; ++t) {
      std::uint64_t now = 0;
      for (auto const& c : batch)
        if (c.left >= t) now += c.held + t;
      most = std::max(most, now);
    }
    EXPECT_EQ(projected_peak(batch), most);
  }
}

TEST(SloraServer, AdmitsFromTheFrontWhileTheProjectedPeakStaysBelowThePool) {
  // Each of them will hold 15 tokens at most.
  arrivals three{{.prompt = 10, .reply = 5}, {.prompt = 10, .reply = 5}, {.prompt = 10, .reply = 5}};
  slora_server roomy{small_pool(31)};
  three.arrive_at(roomy);
  EXPECT_THAT(admitted_in(roomy.next_step()), ElementsAre(0, 1));

  arrivals again{{.prompt = 10, .reply = 5}, {.prompt = 10, .reply = 5}};
  slora_server full{small_pool(30)};
  again.arrive_at(full);
  EXPECT_THAT(admitted_in(full.next_step()), ElementsAre(0)) << "the peak must stay below the pool";
}

TEST(SloraServer, NeverLooksPastTheFront) {
  arrivals r{{.prompt = 10, .reply = 50}, {.prompt = 90, .reply = 5}, {.prompt = 1, .reply = 1}};
  slora_server server{small_pool(100)};
  r.arrive_at(server);
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(0));
  for (auto i = 0; i != 8; ++i) EXPECT_THAT(admitted_in(server.next_step()), IsEmpty());
}

TEST(SloraServer, PrefillsAMiniBatchInAStepOfItsOwnAndThenDecodesTogether) {
  arrivals r{{.prompt = 10, .reply = 5}, {.prompt = 20, .reply = 5}};
  slora_server server{small_pool(100)};
  r.arrive_at(server);
  auto const prefill = server.next_step();
  EXPECT_EQ(prefill->duration, 5ms + 30ms);
  EXPECT_THAT(tokens_in(prefill), ElementsAre(std::pair{0, 1}, std::pair{1, 1}));
  auto const decode = server.next_step();
  EXPECT_EQ(decode->duration, 10ms + 2ms);
  EXPECT_THAT(tokens_in(decode), ElementsAre(std::pair{0, 2}, std::pair{1, 2}));
}

TEST(SloraServer, LooksAtTheLineOnlyAfterSomeDecodeStepsAndThenBeforeEach) {
  arrivals r{{.prompt = 10, .reply = 30}, {.prompt = 10, .reply = 5}};
  slora_server server{small_pool(100)};
  r.arrive_at(server, 0, 1);
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(0));
  EXPECT_THAT(admitted_in(server.next_step()), IsEmpty());
  r.arrive_at(server, 1, 2);
  EXPECT_THAT(admitted_in(server.next_step()), IsEmpty());
  EXPECT_THAT(admitted_in(server.next_step()), IsEmpty());
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(1)) << "after the third decode step";

  arrivals late{{.prompt = 10, .reply = 30}, {.prompt = 10, .reply = 5}};
  slora_server patient{small_pool(100)};
  late.arrive_at(patient, 0, 1);
  for (auto i = 0; i != 6; ++i) (void)patient.next_step();
  late.arrive_at(patient, 1, 2);
  EXPECT_THAT(admitted_in(patient.next_step()), ElementsAre(1)) << "nobody came after the third: it looks each time";
}

TEST(SloraServer, KeepsTokensForTheAdapterOfEachClientOfTheBatch) {
  auto settings = small_pool(40);
  settings.tokens_per_client = 5;
  // 15 + 15 tokens, and 5 or 10 for adapters.
  arrivals one_client{{.prompt = 10, .reply = 5, .client = 1}, {.prompt = 10, .reply = 5, .client = 1}};
  slora_server sharing{settings};
  one_client.arrive_at(sharing);
  EXPECT_THAT(admitted_in(sharing.next_step()), ElementsAre(0, 1));
  arrivals two_clients{{.prompt = 10, .reply = 5, .client = 1}, {.prompt = 10, .reply = 5, .client = 2}};
  slora_server apart{settings};
  two_clients.arrive_at(apart);
  EXPECT_THAT(admitted_in(apart.next_step()), ElementsAre(0));
}

TEST(SloraServer, BoundsThePromptTokensOfAPrefill) {
  auto settings = small_pool(1000);
  settings.batch_prompt_tokens = 25;
  arrivals r{{.prompt = 10, .reply = 5}, {.prompt = 15, .reply = 5}, {.prompt = 1, .reply = 5}};
  slora_server server{settings};
  r.arrive_at(server);
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(0, 1));
}

TEST(SloraServer, KnowsWhatCouldNeverRun) {
  slora_server server{small_pool(30)};
  arrivals r{{.prompt = 20, .reply = 9}, {.prompt = 20, .reply = 10}};
  EXPECT_TRUE(server.can_ever_run(r[0]));
  EXPECT_FALSE(server.can_ever_run(r[1]));
}

TEST(SloraServer, GivesTheTimesWorkedOutByHand) {
  auto const w = replay::testing::workload_of({{.at = 0ms, .prompt = 10, .reply = 2}, {.at = 1ms, .prompt = 20}});
  slora_server server{small_pool(1000)};
  auto const outcome = replay::server_run{w, server, {.max_tokens = 100}}.run();
  // Prefill until 15, decode until 26 (the line is not looked at), then nobody runs: prefill until 51.
  EXPECT_EQ(outcome.times[0].first_token, 15ms);
  EXPECT_EQ(outcome.times[0].last_token, 26ms);
  EXPECT_EQ(outcome.times[1].admitted, 25ms);
  EXPECT_EQ(outcome.times[1].last_token, 50ms);
  EXPECT_EQ(outcome.result.run_time, 51ms);
  EXPECT_EQ(outcome.result.output_tokens, 3U);
}

}  // namespace
