#include "line_formats.hpp"
#include "trace_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using replay::bad_lines;
using replay::nanoseconds;
using replay::trace;
using replay::trace_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

trace read(std::string const& text, bad_lines bad = bad_lines::refuse) {
  std::istringstream in{text};
  return replay::read_trace(in, "some/where/t.txt", bad);
}

std::string complaint_about(std::string const& text) {
  try {
    (void)read(text);
  } catch (trace_error const& error) {
    return error.what();
  }
  return "no complaint";
}

/// What is said about the third line of an Azure trace.
std::string complaint_about_azure_line(std::string const& line) {
  return complaint_about("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n" + line + "\n");
}
std::string azure_complaint(std::string const& reason) {
  return "some/where/t.txt:3: " + reason + "\nMend the file, or leave such lines out with --skip-bad.";
}
std::string complaint_about_mooncake_line(std::string const& line) {
  return complaint_about(R"({"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]})"
                         "\n" +
                         line + "\n");
}
std::string mooncake_complaint(std::string const& reason) {
  return "some/where/t.txt:2: " + reason + "\nMend the file, or leave such lines out with --skip-bad.";
}

TEST(TraceReader, ReadsMooncakeLines) {
  auto const t = read(R"({"timestamp": 1000, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]})"
                      "\n"
                      R"({"timestamp": 4027, "input_length": 512, "output_length": 0, "hash_ids": [0]})"
                      "\n");
  EXPECT_EQ(t.requests.title, "real: Mooncake JSONL, t.txt");
  ASSERT_EQ(t.requests.requests.size(), 2U);
  auto const& [first, second] = std::tie(t.requests.requests[0], t.requests.requests[1]);
  EXPECT_EQ(first.arrival, 0ns) << "time counts from the first arrival";
  EXPECT_EQ(first.prompt_tokens, 700U);
  EXPECT_EQ(first.reply_tokens, 5U);
  EXPECT_THAT(first.blocks, ElementsAre(0, 1));
  EXPECT_EQ(second.arrival, 3027ms);
  EXPECT_EQ(second.reply_tokens, 0U);
}

TEST(TraceReader, ReadsAzureLinesToTheLastDigitOfTheirMoment) {
  auto const t = read("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                      "2023-11-16 18:15:46.6805900,374,44\n"
                      "2023-11-16 18:15:50.9951691,396,109\n");
  EXPECT_EQ(t.requests.title, "real: Azure CSV, t.txt");
  ASSERT_EQ(t.requests.requests.size(), 2U);
  EXPECT_EQ(t.requests.requests[1].arrival, 4'314'579'100ns);
  EXPECT_EQ(t.requests.requests[1].prompt_tokens, 396U);
  EXPECT_EQ(t.requests.requests[1].reply_tokens, 109U);
  EXPECT_TRUE(t.requests.requests[1].blocks.empty());
}

TEST(TraceReader, FollowsMomentsAcrossMidnightAndIntoTheNextYear) {
  auto const t = read("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                      "2023-12-31 23:59:59.9999999,1,1\n"
                      "2024-01-01 00:00:00,1,1\n"
                      "2024-02-29 00:00:00.5,1,1\n");
  ASSERT_EQ(t.requests.requests.size(), 3U);
  EXPECT_EQ(t.requests.requests[1].arrival, 100ns);
  EXPECT_EQ(t.requests.requests[2].arrival, std::chrono::days{59} + 500ms + 100ns);
}

TEST(TraceReader, KnowsTheTimeSince1970) {
  EXPECT_EQ(replay::parse_moment("1970-01-01 00:00:01.000000001"), 1'000'000'001ns);
  EXPECT_EQ(replay::parse_moment("2023-11-16 18:15:46.6805900"), 1'700'158'546'680'590'000ns);
  EXPECT_EQ(replay::parse_moment("2023-11-16 18:15:46.6805900+00:00"), 1'700'158'546'680'590'000ns);
}

TEST(TraceReader, TakesCrLfEmptyLinesAMarkAtTheBeginningAndAMissingLastEnd) {
  auto const t = read("\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\r\n\r\n2023-11-16 "
                      "00:00:00.0,1,2\r\n\r\n2023-11-16 00:00:01.0,3,4");
  ASSERT_EQ(t.requests.requests.size(), 2U);
  EXPECT_EQ(t.requests.requests[1].reply_tokens, 4U);
}

TEST(TraceReader, SortsByArrivalAndKeepsTheOrderOfTheFileOtherwise) {
  auto const t = read("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 00:00:02,1,0\n2023-11-16 "
                      "00:00:01,2,0\n2023-11-16 00:00:02,3,0\n");
  std::vector<std::uint32_t> prompts;
  for (auto const& r : t.requests.requests) prompts.push_back(r.prompt_tokens);
  EXPECT_THAT(prompts, ElementsAre(2, 1, 3));
}

TEST(TraceReader, SaysWhatIsWrongWithAnAzureLine) {
  EXPECT_EQ(complaint_about_azure_line("2023-11-16 18:15:46.0,-5,44"),
            azure_complaint("ContextTokens is '-5'; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(complaint_about_azure_line("2023-11-16 18:15:46.0,5,4294967296"),
            azure_complaint("GeneratedTokens is '4294967296'; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(
      complaint_about_azure_line("2023-11-16 18:15:46.0,5,99999999999999999999999"),
      azure_complaint("GeneratedTokens is '99999999999999999999999'; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(complaint_about_azure_line("2023-11-16 18:15:46.0,5.5,4"),
            azure_complaint("ContextTokens is '5.5'; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(complaint_about_azure_line("2023-11-16 18:15:46.0,,4"),
            azure_complaint("ContextTokens is ''; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(complaint_about_azure_line("2023-11-16 18:15:46.0,5"),
            azure_complaint("2 fields; 3 are needed: TIMESTAMP,ContextTokens,GeneratedTokens"));
}

TEST(TraceReader, RefusesMomentsThatDoNotExist) {
  for (auto const* const moment :
       {"", "today", "2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-11-16 24:00:00", "2023-11-16 00:60:00",
        "2023-11-16 00:00:60", "2023-11-16T00:00:00", "2023-11-16 00:00", "2023-11-16 00:00:00.",
        "2023-11-16 00:00:00.1234567890", "2023-11-16 00:00:00.12x", "2023-11-16 00:00:00.-1", "2023-11-16 00:00:00Z",
        "1969-12-31 00:00:00", "2200-01-01 00:00:00", "-023-11-16 00:00:00"})
    EXPECT_EQ(complaint_about_azure_line(std::string{moment} + ",1,1"),
              azure_complaint("TIMESTAMP is '" + std::string{moment} +
                              "'; a moment such as 2023-11-16 18:15:46.6805900 is needed"));
}

TEST(TraceReader, SaysWhatIsWrongWithAMooncakeLine) {
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": -5, "output_length": 5, "hash_ids": []})"),
      mooncake_complaint("input_length is -5; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": -1, "input_length": 0, "output_length": 5, "hash_ids": []})"),
      mooncake_complaint("timestamp is -1; a whole number from 0 to 4000000000000 is needed"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1e3, "input_length": 0, "output_length": 5, "hash_ids": []})"),
      mooncake_complaint("timestamp is 1000.0; a whole number from 0 to 4000000000000 is needed"));
  EXPECT_EQ(complaint_about_mooncake_line(
                R"({"timestamp": 1, "input_length": 4294967296, "output_length": 5, "hash_ids": []})"),
            mooncake_complaint("input_length is 4294967296; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": "7", "output_length": 5, "hash_ids": []})"),
      mooncake_complaint("input_length is \"7\"; a whole number from 0 to 4294967295 is needed"));
  EXPECT_EQ(complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 7, "hash_ids": [5]})"),
            mooncake_complaint("output_length is missing"));
  EXPECT_EQ(complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 7, "output_length": 5, "hash_ids": 5})"),
            mooncake_complaint("hash_ids is 5; a list is needed"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 7, "output_length": 5, "hash_ids": [-1]})"),
      mooncake_complaint("a hash id is -1; a whole number from 0 to 18446744073709551615 is needed"));
  EXPECT_EQ(complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 7)"),
            mooncake_complaint("not JSON (character 35)"));
  EXPECT_EQ(complaint_about_mooncake_line("[1, 2]"), mooncake_complaint("not a JSON object"));
}

TEST(TraceReader, RefusesHashIdsThatNameNoPrefix) {
  EXPECT_EQ(complaint_about_mooncake_line(
                R"({"timestamp": 1, "input_length": 1025, "output_length": 5, "hash_ids": [0, 2]})"),
            mooncake_complaint("hash_ids has 2 entries; 1025 tokens make 3 blocks of 512"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 513, "output_length": 5, "hash_ids": [7, 1]})"),
      mooncake_complaint("hash id 1 stands for another prefix in an earlier line"));
  EXPECT_EQ(
      complaint_about_mooncake_line(R"({"timestamp": 1, "input_length": 514, "output_length": 5, "hash_ids": [0, 1]})"),
      mooncake_complaint("hash id 1 stands for another prefix in an earlier line"));
  EXPECT_EQ(complaint_about_mooncake_line(
                R"({"timestamp": 1, "input_length": 1024, "output_length": 5, "hash_ids": [7, 7]})"),
            mooncake_complaint("a hash id occurs twice in hash_ids"));
}

TEST(TraceReader, ShowsTheFirstTenBadLinesAndTheNumberOfTheRest) {
  std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (auto i = 0; i != 12; ++i) text += "x\n";
  auto const said = complaint_about(text);
  EXPECT_THAT(said, HasSubstr("some/where/t.txt:11: 1 fields"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("some/where/t.txt:12:")));
  EXPECT_THAT(said, HasSubstr("\n... and 2 more\n"));
}

TEST(TraceReader, SkipsBadLinesOnlyWhenToldToAndCountsThem) {
  auto const t = read("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 00:00:00,1,1\nx\n2023-11-16 00:00:01,2,2\n",
                      bad_lines::skip);
  EXPECT_EQ(t.requests.requests.size(), 2U);
  EXPECT_EQ(t.requests.skipped_lines, 1U);
  EXPECT_THAT(t.complaints,
              ElementsAre("some/where/t.txt:3: 1 fields; 3 are needed: TIMESTAMP,ContextTokens,GeneratedTokens"));
}

TEST(TraceReader, SaysWhatToDoAboutFilesWithoutRequests) {
  EXPECT_EQ(complaint_about(""), "some/where/t.txt: the file is empty; a trace has a request in each line");
  EXPECT_EQ(complaint_about("\n \n"), "some/where/t.txt: the file is empty; a trace has a request in each line");
  EXPECT_EQ(complaint_about("TIMESTAMP,ContextTokens,GeneratedTokens\n"),
            "some/where/t.txt: no request in it (0 bad lines); a trace has a request in each line");
  EXPECT_EQ(
      complaint_about("policy,arrival_s\n"),
      "some/where/t.txt:1: neither Mooncake JSONL (a line begins with '{') nor a known CSV (the first line of "
      "Azure's is 'TIMESTAMP,ContextTokens,GeneratedTokens'; of S-LoRA's "
      "'policy,arrival_s,client,input_tokens,output_tokens,first_token_latency_s,request_latency_s'; of vLLM's "
      "'arrival_s,queued_s,scheduled_s,first_token_s,last_token_s,input_tokens,output_tokens,prompt_blocks16'; of "
      "ServeGen's 'arrival_s,client,input_tokens,output_tokens'); other formats have to be converted");
  std::istringstream only_bad{"TIMESTAMP,ContextTokens,GeneratedTokens\nx\n"};
  EXPECT_THROW((void)replay::read_trace(only_bad, "t", bad_lines::skip), trace_error);
}

TEST(TraceReader, SaysWhatToDoAboutAFileThatIsNotThere) {
  try {
    (void)replay::read_trace_file("/no/such/trace.csv", bad_lines::refuse);
    FAIL();
  } catch (trace_error const& error) {
    EXPECT_STREQ(error.what(),
                 "/no/such/trace.csv: cannot be opened (No such file or directory); give the path of a trace, or "
                 "--synthetic for made-up requests");
  }
  try {
    (void)replay::read_trace_file("/", bad_lines::refuse);
    FAIL();
  } catch (trace_error const& error) {
    EXPECT_STREQ(error.what(), "/: is a directory; give the trace files in it");
  }
}

}  // namespace
