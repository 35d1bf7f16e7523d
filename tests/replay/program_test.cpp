#include "program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct outcome {
  int status;
  std::string out;
  std::string err;
};

outcome run(std::vector<std::string> arguments) {
  std::vector<char const*> argv{"kvlane-replay"};
  for (auto const& a : arguments) argv.push_back(a.c_str());
  std::ostringstream out;
  std::ostringstream err;
  auto const status = replay::run_program(static_cast<int>(argv.size()), argv.data(), {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

/// A file that lives as long as the test, under a name that no other test uses.
class temporary_file {
 public:
  explicit temporary_file(std::string const& ending, std::string const& content = {})
      : path_{::testing::TempDir() + "kvlane_replay_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ending} {
    std::ofstream{path_, std::ios::binary} << content;
  }
  temporary_file(temporary_file const&) = delete;
  temporary_file& operator=(temporary_file const&) = delete;
  ~temporary_file() { std::remove(path_.c_str()); }

  [[nodiscard]] std::string const& path() const { return path_; }
  [[nodiscard]] std::string content() const {
    std::ifstream in{path_, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

 private:
  std::string path_;
};

constexpr auto azure_lines =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.0,374,44\n2023-11-16 18:15:47.0,396,109\n";

TEST(Program, PrintsATableForEachInputWithAColumnForEachPolicy) {
  temporary_file const trace{".csv", azure_lines};
  auto const r = run({trace.path(), "--synthetic", "--chats", "5", "--policy", "cache_aware,fcfs"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out,
              HasSubstr("\nreal: Azure CSV, kvlane_replay_PrintsATableForEachInputWithAColumnForEachPolicy.csv\n"));
  EXPECT_THAT(r.out, HasSubstr("\nsynthetic, seed 1\n"));
  EXPECT_THAT(r.out, HasSubstr("cache_aware          fcfs\n"));
  EXPECT_THAT(r.out, HasSubstr("requests                                   2             2\n"));
  EXPECT_THAT(r.out, Not(HasSubstr("refused"))) << "reasons that do not occur have no row";
  EXPECT_THAT(r.out, Not(HasSubstr("skipped")));
  EXPECT_EQ(r.err, "");
}

TEST(Program, ReplaysTheSortingTwinOfAPolicyBesideIt) {
  auto const r = run({"--synthetic", "--chats", "40", "--lanes", "2", "--policy", "cache_aware,cache_aware_scan"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("cache_aware  cache_aware_scan\n"));
}

TEST(Program, ShowsReasonsOfRefusalThatOccur) {
  auto const r = run({"--synthetic", "--chats", "200", "--chats-per-second", "50", "--lanes", "2", "--max-wait", "20",
                      "--max-waiting", "30"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("refused: line is full"));
  EXPECT_THAT(r.out, HasSubstr("line: 30 places, waits up to 20.000 s"));
}

TEST(Program, IsTheSameByteForByteForEqualInputAndSeed) {
  temporary_file const one{".one.json"};
  temporary_file const two{".two.json"};
  auto const run_with = [](std::string const& seed, temporary_file const& json) {
    return run(
        {"--synthetic", "--chats", "60", "--seed", seed, "--spread", "500", "--lanes", "3", "--json", json.path()});
  };
  auto const a = run_with("7", one);
  auto const b = run_with("7", two);
  EXPECT_EQ(a.status, 0) << a.err;
  EXPECT_EQ(a.out, b.out);
  EXPECT_EQ(one.content(), two.content());
  EXPECT_NE(run_with("8", two).out, a.out);
  EXPECT_NE(one.content(), two.content());
}

TEST(Program, WritesTheNumbersOfTheTableAsJson) {
  temporary_file const json{".json"};
  temporary_file const trace{".csv", azure_lines};
  EXPECT_EQ(run({trace.path(), "--json", json.path(), "--policy", "fcfs"}).status, 0);
  auto const text = json.content();
  EXPECT_THAT(text, EndsWith("}\n"));
  auto const parsed = nlohmann::ordered_json::parse(text);
  EXPECT_EQ(parsed.at("settings").at("lanes"), 32);
  EXPECT_TRUE(parsed.at("settings").at("max_wait_s").is_null());
  auto const& run = parsed.at("workloads").at(0).at("policies").at(0);
  EXPECT_EQ(run.at("policy"), "fcfs");
  EXPECT_EQ(run.at("requests"), 2);
  EXPECT_EQ(run.at("output_tokens"), 153);
  EXPECT_EQ(run.begin().key(), "policy") << "keys keep their order";
}

TEST(Program, SaysWhereAFileIsMalformedAndPrintsNothingElse) {
  temporary_file const trace{".csv", std::string{azure_lines} + "2023-11-16 18:15:48.0,-1,2\n"};
  auto const r = run({trace.path()});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err, trace.path() + ":4: ContextTokens is '-1'; a whole number from 0 to 4294967295 is needed\n"
                                  "Mend the file, or leave such lines out with --skip-bad.\n");
}

TEST(Program, CountsSkippedLinesInTheTable) {
  temporary_file const trace{".csv", std::string{azure_lines} + "x\n"};
  auto const r = run({trace.path(), "--skip-bad", "--policy", "fcfs"});
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, HasSubstr("bad lines skipped                          1\n"));
  EXPECT_THAT(r.err, StartsWith("skipped " + trace.path() + ":4: 1 fields"));
}

TEST(Program, ReadsEveryInputBeforeItPrintsAnything) {
  temporary_file const trace{".csv", azure_lines};
  auto const r = run({trace.path(), "/no/such/trace"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, StartsWith("/no/such/trace: cannot be opened"));
}

TEST(Program, SweepsLoadsWithEachPolicy) {
  temporary_file const json{".json"};
  auto const arguments = std::vector<std::string>{
      "sweep",    "--synthetic", "--chats", "30",        "--rounds",   "1", "--loads",   "1,2",
      "--policy", "hrrn,fcfs",   "--json",  json.path(), "--max-wait", "7", "--clients", "retry"};
  auto const r = run(arguments);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("line: 256 places, waits up to 7.000 s"));
  EXPECT_THAT(r.out, HasSubstr("first token came within 7 s"));
  EXPECT_THAT(r.out, HasSubstr("Refused clients come back up to twice"));
  EXPECT_THAT(r.out, HasSubstr("1 in 20 of those to be refused early is let in"));
  EXPECT_THAT(r.out, HasSubstr("\nsynthetic, seed 1\ncapacity: "));
  EXPECT_THAT(r.out, ContainsRegex("\n   1  hrrn .*\n   1  fcfs .*\n\n   2  hrrn .*\n   2  fcfs .*\n"));
  auto const written = nlohmann::json::parse(json.content());
  EXPECT_EQ(written["workloads"][0]["runs"].size(), 4U);
  EXPECT_EQ(written["settings"]["clients"], "retry");
  auto const bytes = json.content();
  EXPECT_EQ(run(arguments).out, r.out);
  EXPECT_EQ(json.content(), bytes);
}

TEST(Program, TellsHowFastDecisionsWereWhenItIsAsked) {
  auto const r = run({"sweep", "--synthetic", "--chats", "10", "--loads", "1", "--policy", "fcfs", "--timing"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("decided/s\n"));
}

TEST(Program, SaysWhatToDoAboutASweepThatMakesNoSense) {
  auto const complaint = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sweep", "--synthetic"});
    auto const r = run(std::move(arguments));
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "");
    return r.err.substr(0, r.err.find('\n'));
  };
  EXPECT_EQ(complaint({"--loads", "0"}),
            "kvlane-replay: these settings make no sense: loads has 0; a load is from 0.01 to 100 times the capacity");
  EXPECT_THAT(complaint({"--max-wait", "inf"}), HasSubstr("max-wait must be above 0 and finite"));
  EXPECT_THAT(complaint({"--policy", "vllm"}), HasSubstr("policy is vllm, which brings an engine of its own"));
  EXPECT_THAT(complaint({"--clients", "pray"}), HasSubstr("--clients"));
}

TEST(Program, SaysWhatToDoAboutACommandLineThatMakesNoSense) {
  auto const complaint = [](std::vector<std::string> arguments) {
    auto const r = run(std::move(arguments));
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "");
    return r.err.substr(0, r.err.find('\n'));
  };
  EXPECT_EQ(complaint({}), "kvlane-replay: nothing to replay: give a TRACE file, or --synthetic for made-up requests");
  EXPECT_EQ(complaint({"--synthetic", "--policy", "fcfs,lifo"}),
            "kvlane-replay: --policy: there is no policy 'lifo'; choose from fcfs, seed_order, cache_aware, "
            "cache_aware_scan, longest_prefix_first, lpm_fcfs_128, heaviest_subtree_first, hrrn, "
            "shortest_uncached_first, seed_order_turn_bound, clairvoyant_sjf, semaphore, no_admission, slora, vllm");
  EXPECT_EQ(complaint({"--synthetic", "--engine", "x"}),
            "kvlane-replay: --engine: there is no engine 'x'; choose from large, slora-llama2-7b-a10g, "
            "vllm-0.19-llama31-8b-rtx4090, and change its constants");
  EXPECT_EQ(complaint({"--synthetic", "--speed", "0"}), "kvlane-replay: --speed is 0; a number above 0 is needed");
  EXPECT_EQ(complaint({"--synthetic", "--speed", "nan"}), "kvlane-replay: --speed is nan; a number above 0 is needed");
  EXPECT_EQ(complaint({"--synthetic", "--limit", "0"}), "kvlane-replay: --limit is 0; at least 1 request is needed");
  EXPECT_EQ(complaint({"--synthetic", "--spread", "-1"}),
            "kvlane-replay: --spread is -1; milliseconds from 0 to 1000000000 are needed");
  EXPECT_EQ(complaint({"--synthetic", "--lanes", "-1"}), "kvlane-replay: Could not convert: --lanes = -1");
  EXPECT_EQ(complaint({"--chats", "5"}), "kvlane-replay: --chats requires --synthetic");
}

TEST(Program, ExplainsLimitsThatMakeNoSense) {
  auto const complaint = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--synthetic");
    auto const r = run(std::move(arguments));
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "");
    return r.err;
  };
  EXPECT_THAT(complaint({"--kv-tokens", "0"}), HasSubstr("kv_capacity is 0"));
  EXPECT_THAT(complaint({"--block-tokens", "0"}), HasSubstr("block_tokens is 0"));
  EXPECT_THAT(complaint({"--growth-reserve", "1000000"}),
              HasSubstr("growth_reserve is 1000000, which leaves nothing of kv_capacity"));
  EXPECT_THAT(complaint({"--max-wait", "-1"}), HasSubstr("max_wait is -1000 ms; a wait is not negative"));
  EXPECT_THAT(complaint({"--lanes", "0"}), HasSubstr("lanes is 0; nothing would ever be admitted"));
  EXPECT_THAT(complaint({"--aging", "2000000"}), HasSubstr("aging_cost_per_turn is 2000000"));
  EXPECT_THAT(complaint({"--prefill-base-ms", "-3"}), HasSubstr("the engine constant prefill-base-ms is -3"));
  EXPECT_THAT(complaint({"--families", "0"}), HasSubstr("families is 0"));
}

TEST(Program, TakesSizesOfTheMachineWhereNoneAreTyped) {
  auto const head = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--synthetic", "--chats", "2", "--policy", "fcfs"});
    auto const r = run(std::move(arguments));
    EXPECT_EQ(r.status, 0) << r.err;
    return r.out.substr(0, r.out.find("\n\n"));
  };
  EXPECT_THAT(head({}), HasSubstr("engine: large, ASSUMED, not measured"));
  EXPECT_THAT(head({}), HasSubstr("32 lanes, 1000000 KV tokens"));
  EXPECT_THAT(head({"--engine", "a10g"}), HasSubstr("times 1.04 (FITTED to the measured run time)"));
  EXPECT_THAT(head({"--engine", "slora-llama2-7b-a10g"}), HasSubstr("1000 lanes, 10000 KV tokens"));
  EXPECT_THAT(head({"--engine", "rtx4090", "--lanes", "8"}), HasSubstr("8 lanes, 41408 KV tokens"));
  EXPECT_THAT(head({"--engine", "a10g", "--decode-base-ms", "5"}), HasSubstr("; changed by options"));
}

TEST(Program, ComparesKvlaneWithServersThatDecideWithoutIt) {
  auto const r = run(
      {"--synthetic", "--chats", "40", "--system-tokens", "500", "--engine", "rtx4090", "--policy", "fcfs,slora,vllm"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("fcfs         slora          vllm\n"));
}

TEST(Program, SaysWhereMeasurementsAreLookedFor) {
  for (std::string const command : {"validate", "predict"}) {
    auto const r = run({command, "--traces", "/no/such/folder"});
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, StartsWith("kvlane-replay: " + command +
                                  ": there is no lmsys_arena_fcfs_measured.csv in /no/such/folder; "
                                  "the measurements are not part of the project: name their folder with --traces or in "
                                  "KVLANE_TRACES\n"));
  }
}

TEST(Program, SaysWhyItCannotWriteJson) {
  auto const r = run({"--synthetic", "--chats", "2", "--json", "/no/such/folder/x.json"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err, "/no/such/folder/x.json: cannot be written (No such file or directory); give --json a path in a "
                   "folder that exists\n");
}

TEST(Program, ShowsProgressAndRunTimesOnlyOnStderr) {
  auto const quiet = run({"--synthetic", "--chats", "5", "--quiet"});
  auto const watched = run({"--synthetic", "--chats", "5", "--progress"});
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, watched.out);
  EXPECT_THAT(watched.err, HasSubstr("fcfs: "));
  EXPECT_THAT(watched.err,
              ContainsRegex("cache_aware: .* s; core: [0-9]+ decisions in .* calls, [0-9]+ thousand a second"));
}

TEST(Program, HelpsAndNamesItsAssumptions) {
  auto const r = run({"--help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, HasSubstr("--max-overtakes"));
  EXPECT_THAT(r.out, HasSubstr("ASSUMED"));
  EXPECT_THAT(r.out, HasSubstr("buckets of about 3000 ms"));
}

}  // namespace
