#include "line_formats.hpp"
#include "trace_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

replay::workload read(std::string const& text) {
  std::istringstream in{text};
  return replay::read_trace(in, "some/where/t.csv", replay::bad_lines::refuse).requests;
}

/// What is said about the second line of a file, without the place and without the advice.
std::string complaint(std::string_view header, std::string const& line) {
  try {
    (void)read(std::string{header} + '\n' + line + '\n');
  } catch (replay::trace_error const& error) {
    std::string const text = error.what();
    constexpr std::string_view place = "some/where/t.csv:2: ";
    EXPECT_EQ(text.substr(0, place.size()), place);
    EXPECT_THAT(text, ::testing::EndsWith("\nMend the file, or leave such lines out with --skip-bad."));
    return text.substr(place.size(), text.find('\n') - place.size());
  }
  return "no complaint";
}

TEST(SloraLines, KeepClientAndMeasuredLatenciesBesideTheRequest) {
  auto const w = read(std::string{replay::slora_header} + "\nFCFS,0.000000,13,13,199,1.182609,9.415639\n"
                                                          "FCFS,0.207938,2,36,137,1.545670,6.773577\n");
  EXPECT_EQ(w.title, "real, with latencies measured on S-LoRA: CSV, t.csv");
  ASSERT_EQ(w.requests.size(), 2U);
  auto const& r = w.requests[1];
  EXPECT_EQ(r.arrival, 207'938us);
  EXPECT_EQ(r.client, 2U);
  EXPECT_EQ(r.prompt_tokens, 36U);
  EXPECT_EQ(r.reply_tokens, 137U);
  EXPECT_THAT(r.blocks, IsEmpty());
  ASSERT_TRUE(r.measured);
  EXPECT_FALSE(r.measured->admitted) << "the file does not tell when a request was admitted";
  EXPECT_EQ(r.measured->first_token, 1'545'670us);
  EXPECT_EQ(r.measured->last_token, 6'773'577us);
}

TEST(SloraLines, SayWhatIsWrong) {
  auto const said = [](std::string const& line) { return complaint(replay::slora_header, line); };
  EXPECT_EQ(said("VTC,0,1,2,3,4,5"), "policy is 'VTC'; only runs of FCFS can be read");
  EXPECT_EQ(said("FCFS,0,1,2,3,4"), "6 fields; 7 are needed: " + std::string{replay::slora_header});
  EXPECT_EQ(said("FCFS,-1,1,2,3,4,5"), "arrival_s is '-1'; seconds such as 17.570318, not negative, are needed");
  EXPECT_EQ(said("FCFS,0,x,2,3,4,5"), "client is 'x'; a whole number from 0 to 4294967295 is needed");
  EXPECT_EQ(said("FCFS,0,1,2,3,-1,-1"),
            "first_token_latency_s is '-1'; seconds such as 17.570318, not negative, are needed");
  EXPECT_EQ(said("FCFS,0,1,2,3,5.1,5.0"), "request_latency_s is before first_token_latency_s");
}

TEST(VllmLines, CountMeasuredTimesFromTheArrivalAndReadRunsOfBlocks) {
  auto const w = read(std::string{replay::vllm_header} + "\n1.0,1.1,1.2,1.5,3.25,47,5,0-1\n"
                                                         "2.0,2.1,2.2,2.5,4.25,84,7,0-1 7 9-10\n");
  EXPECT_EQ(w.title, "real prompts, arrivals drawn at random, with times measured on vLLM: CSV, t.csv");
  EXPECT_EQ(w.block_tokens, 16U);
  ASSERT_EQ(w.requests.size(), 2U);
  auto const& r = w.requests[1];
  EXPECT_EQ(r.arrival, 1s);
  EXPECT_THAT(r.blocks, ElementsAre(0, 1, 7, 9, 10));
  ASSERT_TRUE(r.measured);
  EXPECT_EQ(r.measured->admitted, 200ms);
  EXPECT_EQ(r.measured->first_token, 500ms);
  EXPECT_EQ(r.measured->last_token, 2250ms);
  EXPECT_FALSE(r.client);
}

TEST(VllmLines, SayWhatIsWrong) {
  auto const said = [](std::string const& line) { return complaint(replay::vllm_header, line); };
  EXPECT_EQ(said("1.0,1.1,1.0,1.5,3.0,32,5,0-1"), "scheduled_s is before queued_s");
  EXPECT_EQ(said("1.0,0.9,0.95,0.99,3.0,32,5,0-1"), "first_token_s is before arrival_s");
  EXPECT_EQ(said("1.0,0.9,0.95,1.5,3.0,32,5,0-1"), "no complaint") << "the engine's clock is another one";
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,1.4,32,5,0-1"), "last_token_s is before first_token_s");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,3.0,32,5,0"), "prompt_blocks16 has 1 ids; 32 tokens make 2 whole blocks of 16");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,3.0,32,5,0-99999999999"),
            "prompt_blocks16 has more than the 2 ids that the prompt has whole blocks of 16");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,3.0,32,5,1-0"), "the run of block ids '1-0' goes backwards");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,3.0,32,5,4 4"), "a block id occurs twice in prompt_blocks16");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,3.0,32,5,0-x"),
            "a block id is 'x'; a whole number from 0 to 18446744073709551614 is needed");
  EXPECT_EQ(said("1.0,1.1,1.2,1.5,later,32,5,0-1"),
            "last_token_s is 'later'; seconds such as 17.570318, not negative, are needed");
  auto const two = std::string{replay::vllm_header} + "\n1,1,1,1,1,32,5,0-1\n1,1,1,1,1,32,5,7 1\n";
  EXPECT_THROW((void)read(two), replay::trace_error) << "id 1 stands for another prefix";
}

TEST(ServegenLines, AreCalledSampled) {
  auto const w = read(std::string{replay::servegen_header} + "\n0.000000,80,140,1\n0.000003,104,832,43\n");
  EXPECT_EQ(w.title, "SAMPLED from statistics of real clients, not real requests: ServeGen CSV, t.csv");
  ASSERT_EQ(w.requests.size(), 2U);
  EXPECT_EQ(w.requests[1].arrival, 3us);
  EXPECT_EQ(w.requests[1].client, 104U);
  EXPECT_EQ(w.requests[1].prompt_tokens, 832U);
  EXPECT_FALSE(w.requests[1].measured);
  EXPECT_EQ(complaint(replay::servegen_header, "0,1,2.5,3"),
            "input_tokens is '2.5'; a whole number from 0 to 4294967295 is needed");
}

}  // namespace
