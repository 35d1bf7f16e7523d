#include "replay/served_requests.hpp"
#include "yardsticks/server_run.hpp"
#include "yardsticks/vllm_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace {

using namespace std::chrono_literals;
using replay::vllm_server;
using replay::testing::admitted_in;
using replay::testing::arrivals;
using replay::testing::end;
using replay::testing::round_costs;
using replay::testing::tokens_in;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using pair = std::pair<int, int>;

/// So many blocks of 4 tokens for requests (one more holds nothing), 16 tokens in a step.
replay::vllm_settings small_pool(std::uint64_t blocks) {
  return {.costs = round_costs(),
          .kv_tokens = (blocks + 1) * 4,
          .block_tokens = 4,
          .prefix_block_tokens = 4,
          .running = 8,
          .step_tokens = 16};
}

TEST(VllmServer, ComputesALongPromptInPartsAndAnswersWithTheLast) {
  arrivals r{{.prompt = 40, .reply = 2}};
  vllm_server server{small_pool(100)};
  r.arrive_at(server);
  auto const first = server.next_step();
  EXPECT_THAT(admitted_in(first), ElementsAre(0));
  EXPECT_THAT(tokens_in(first), IsEmpty());
  EXPECT_EQ(first->duration, 16ms) << "16 tokens take longer than reading the weights";
  EXPECT_THAT(tokens_in(server.next_step()), IsEmpty());
  auto const last = server.next_step();
  EXPECT_THAT(tokens_in(last), ElementsAre(pair{0, 1}));
  EXPECT_EQ(last->duration, 10ms + 1ms) << "8 tokens are computed while the weights are read";
  EXPECT_THAT(tokens_in(server.next_step()), ElementsAre(pair{0, 2}));
}

TEST(VllmServer, ServesDecodesFirstThenPromptsBegunThenTheLine) {
  arrivals r{{.prompt = 4, .reply = 9}, {.prompt = 20, .reply = 9}, {.prompt = 12, .reply = 9}};
  vllm_server server{small_pool(100)};
  r.arrive_at(server, 0, 1);
  (void)server.next_step();
  r.arrive_at(server, 1, 3);
  auto const second = server.next_step();  // 1 decode, 15 of 20 prompt tokens
  EXPECT_THAT(admitted_in(second), ElementsAre(1));
  EXPECT_THAT(tokens_in(second), ElementsAre(pair{0, 2}));
  auto const third = server.next_step();  // 1 decode, the last 5, and 10 of 12
  EXPECT_THAT(admitted_in(third), ElementsAre(2));
  EXPECT_THAT(tokens_in(third), ElementsAre(pair{0, 3}, pair{1, 1}));
  EXPECT_THAT(tokens_in(server.next_step()), ElementsAre(pair{0, 4}, pair{1, 2}, pair{2, 1}));
}

TEST(VllmServer, AdmitsNobodyPastTheFrontOrPastItsLimitOfRequests) {
  arrivals r{{.prompt = 8, .reply = 9}, {.prompt = 40, .reply = 9}, {.prompt = 1, .reply = 9}};
  vllm_server server{small_pool(11)};
  r.arrive_at(server);
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(0))
      << "the whole of the second needs 10 blocks, 9 are free; its first part would fit";
  auto settings = small_pool(100);
  settings.running = 1;
  arrivals two{{.prompt = 4, .reply = 9}, {.prompt = 4, .reply = 9}};
  vllm_server narrow{settings};
  two.arrive_at(narrow);
  EXPECT_THAT(admitted_in(narrow.next_step()), ElementsAre(0));
}

TEST(VllmServer, PreemptsTheLatestWhenBlocksRunOutAndAdmitsNobodyInThatStep) {
  // Two blocks each, all four are taken.
  arrivals r{{.prompt = 8, .reply = 9}, {.prompt = 8, .reply = 9}, {.prompt = 1, .reply = 1}};
  vllm_server server{small_pool(4)};
  r.arrive_at(server);
  EXPECT_THAT(admitted_in(server.next_step()), ElementsAre(0, 1));
  auto const tight = server.next_step();  // the first needs a third block for its ninth token
  EXPECT_EQ(tight->preempted, 1U);
  EXPECT_THAT(admitted_in(tight), IsEmpty()) << "one block is free, and the third needs one";
  EXPECT_THAT(tokens_in(tight), ElementsAre(pair{0, 2}));
  EXPECT_EQ(server.load().waiting, 2U);
  EXPECT_EQ(server.load().kv_tokens_used, 12U);
  EXPECT_THAT(admitted_in(server.next_step()), IsEmpty()) << "the preempted one is first, and needs three";
}

TEST(VllmServer, ComputesPreemptedWorkAgainButForWhatIsStillCached) {
  auto const hits_of_second = [](std::uint32_t reply_of_first) {
    arrivals r{{.prompt = 8, .reply = reply_of_first}, {.prompt = 8, .reply = 6}};
    vllm_server server{small_pool(5)};
    r.arrive_at(server);
    end(server.next_step(), server);
    // Both need a third block, and one is free: the second goes until the first has ended.
    auto step = server.next_step();
    EXPECT_EQ(step->preempted, 1U);
    end(step, server);
    while (admitted_in(step = server.next_step()).empty()) end(step, server);
    EXPECT_EQ(step->admitted.front().who, &r[1]);
    EXPECT_THAT(tokens_in(step), ElementsAre(pair{1, 2})) << "a prompt and one token, computed in one step";
    return step->admitted.front().hit_tokens;
  };
  EXPECT_EQ(hits_of_second(5), 8U) << "the first ends with 12 tokens in 3 blocks";
  EXPECT_EQ(hits_of_second(6), 4U) << "for its 13th it has overwritten the block that ended the second one's prompt";
}

TEST(VllmServer, PreemptsTheOneThatGrowsIfItIsTheLatest) {
  arrivals r{{.prompt = 8, .reply = 9}};
  vllm_server server{small_pool(2)};
  r.arrive_at(server);
  (void)server.next_step();
  EXPECT_FALSE(server.next_step()) << "it alone cannot go on; such a request must not arrive";
  EXPECT_FALSE(server.can_ever_run(r[0]));
  EXPECT_TRUE((vllm_server{small_pool(4)}.can_ever_run(r[0]))) << "the last of 17 tokens is never read";
}

TEST(VllmServer, SharesTheBlocksOfACommonPrefix) {
  arrivals r{{.prompt = 8, .reply = 9, .blocks = {1, 2}}, {.prompt = 12, .reply = 9, .blocks = {1, 2, 3}}};
  vllm_server server{small_pool(5)};
  r.arrive_at(server);
  auto const both = server.next_step();
  ASSERT_THAT(admitted_in(both), ElementsAre(0, 1));
  EXPECT_EQ(both->admitted[1].hit_tokens, 8U);
  EXPECT_EQ(server.load().kv_tokens_used, 12U);
  EXPECT_THAT(tokens_in(both), ElementsAre(pair{0, 1}, pair{1, 1}));
}

TEST(VllmServer, ComputesAtLeastOneTokenOfAPromptThatIsCachedWhole) {
  arrivals r{{.prompt = 8, .reply = 1, .blocks = {1, 2}}, {.prompt = 8, .reply = 1, .blocks = {1, 2}}};
  vllm_server server{small_pool(9)};
  r.arrive_at(server, 0, 1);
  end(server.next_step(), server);
  r.arrive_at(server, 1, 2);
  auto const step = server.next_step();
  EXPECT_EQ(step->admitted.front().hit_tokens, 4U);
}

TEST(VllmServer, CutsTheLargerBlocksOfATraceIntoItsOwn) {
  auto settings = small_pool(20);
  settings.prefix_block_tokens = 16;
  // The second block of each prompt is a partial one.
  arrivals r{{.prompt = 22, .reply = 1, .blocks = {1, 2}}, {.prompt = 22, .reply = 1, .blocks = {1, 2}}};
  vllm_server server{settings};
  r.arrive_at(server, 0, 1);
  for (auto step = server.next_step(); step; step = server.next_step()) end(step, server);
  r.arrive_at(server, 1, 2);
  EXPECT_EQ(server.next_step()->admitted.front().hit_tokens, 20U);
}

TEST(VllmServer, LetsARequestFinishThatWasPreemptedWithItsLastTokenOnTheWay) {
  arrivals r{{.prompt = 8, .reply = 1}, {.prompt = 4, .reply = 9}, {.prompt = 4, .reply = 1}};
  vllm_server server{small_pool(4)};
  r.arrive_at(server);
  EXPECT_THAT(tokens_in(server.next_step()), ElementsAre(pair{0, 1}, pair{1, 1}, pair{2, 1}));
  EXPECT_EQ(server.next_step()->preempted, 1U) << "planned before the prompts are computed: the second needs a block";
  server.finish(r[0]);
  EXPECT_THAT(admitted_in(server.next_step()), IsEmpty()) << "there is room for the third, but its reply is complete";
  server.finish(r[2]);
  EXPECT_EQ(server.load().waiting, 0U);
}

TEST(VllmServer, PlansAStepAheadSoThatAnArrivalMissesTheOneThatIsPlanned) {
  auto const w = replay::testing::workload_of({{.at = 0ms, .prompt = 8, .reply = 5}, {.at = 1ms, .prompt = 4}});
  auto const admitted = [&](std::uint32_t steps_ahead) {
    vllm_server server{small_pool(100)};
    auto const outcome = replay::server_run{w, server, {.max_tokens = 100, .steps_ahead = steps_ahead}}.run();
    EXPECT_EQ(outcome.times[1].admitted, 10ms) << "when the step has ended that ran when it came";
    return *outcome.times[1].first_token;
  };
  // Steps of 11 ms, 12 with both. One ahead: admitted at 11, done at 23. Two: the step from 11 to 22 was planned at 0.
  EXPECT_EQ(admitted(1), 22ms);
  EXPECT_EQ(admitted(2), 33ms);
}

}  // namespace
