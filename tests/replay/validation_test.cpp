#include "replay/recorded_traces.hpp"
#include "replay/small_workloads.hpp"
#include "trace_reader.hpp"
#include "validation.hpp"
#include "yardsticks/servers.hpp"
#include "yardsticks/slora_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using replay::machine_named;
using replay::policy;
using ::testing::HasSubstr;

TEST(Machines, AreKnownByNameAndAlias) {
  EXPECT_EQ(machine_named("a10g"), machine_named("slora-llama2-7b-a10g"));
  EXPECT_EQ(machine_named("rtx4090"), machine_named("vllm-0.19-llama31-8b-rtx4090"));
  EXPECT_EQ(machine_named(""), nullptr);
  EXPECT_EQ(machine_named("h100"), nullptr);
}

TEST(Machines, NameWhatIsAssumedAndWhatIsFitted) {
  EXPECT_THAT(title_of(*machine_named("large")), HasSubstr("ASSUMED"));
  for (auto const* const name : {"a10g", "rtx4090"}) EXPECT_THAT(title_of(*machine_named(name)), HasSubstr("FITTED"));
}

TEST(ValidatedFigure, IsJudgedByItsShareOfWhatWasMeasured) {
  EXPECT_TRUE((replay::validated_figure{.measured = 100, .simulated = 109.9}.within_bound()));
  EXPECT_TRUE((replay::validated_figure{.measured = 100, .simulated = 90.1}.within_bound()));
  EXPECT_FALSE((replay::validated_figure{.measured = 100, .simulated = 110.1}.within_bound()));
  EXPECT_FALSE((replay::validated_figure{.measured = 100, .simulated = 89.9}.within_bound()));
  EXPECT_FALSE((replay::validated_figure{.measured = 0, .simulated = 1}.within_bound()));
  EXPECT_TRUE((replay::validated_figure{.measured = 0, .simulated = 0}.within_bound()));
}

/// Three requests with times as the simulation itself gives them.
replay::workload self_measured(replay::machine const& m) {
  auto w = replay::testing::workload_of({{.at = 0ms, .prompt = 100, .reply = 20},
                                         {.at = 10ms, .prompt = 50, .reply = 5},
                                         {.at = 20ms, .prompt = 9, .reply = 3}});
  auto const outcome = simulate_server(w, *m.own, settings_of(m));
  for (std::size_t i = 0; i != w.requests.size(); ++i) w.requests[i].measured = outcome.times[i];
  return w;
}

TEST(Validation, FindsNoErrorWhereTheServerDidWhatTheSimulationDoes) {
  for (auto const* const name : {"a10g", "rtx4090"}) {
    SCOPED_TRACE(name);
    auto const& m = *machine_named(name);
    auto const v = validate_run(self_measured(m), m);
    EXPECT_EQ(v.figures.size(), 15U);
    for (auto const& f : v.figures) EXPECT_EQ(f.error(), 0) << f.name;
    EXPECT_EQ(replay::verdict_on({&v, 1}), "all 15 figures are within 10 % of what was measured\n");
  }
}

TEST(Validation, NamesWhatIsOutOfBoundAndWhatWasNotMeasured) {
  auto const& m = *machine_named("a10g");
  auto w = self_measured(m);
  for (auto& r : w.requests) {
    r.measured->admitted.reset();
    *r.measured->first_token *= 2;
  }
  auto const v = validate_run(w, m);
  EXPECT_FALSE(v.within_bound());
  EXPECT_EQ(replay::verdict_on({&v, 1}),
            "4 of 11 figures are off by more than 10 %: first token [s], mean of slora; first token [s], p50 of slora; "
            "first token [s], p95 of slora; first token [s], max of slora\n");
  auto const table = table_of(v);
  EXPECT_THAT(table, HasSubstr("-50.00  OUT OF BOUND\n"));
  EXPECT_THAT(table, HasSubstr("run time [s]                           0.588         0.588       +0.00  (fitted)\n"));
  EXPECT_THAT(
      table, HasSubstr("wait                            not measured\nload                            not measured\n"));
  EXPECT_THAT(table, HasSubstr("single requests, error [%]            median           p90\n"
                               "first token                            50.00         50.00\n"
                               "last token                              0.00          0.00\n"));
  EXPECT_EQ(replay::json_of({&v, 1}).at("runs").at(0).at("figures").at(3).at("within_bound"), false);
}

TEST(Validation, ComparesTheLoadWhereItWasSampled) {
  auto const& m = *machine_named("rtx4090");
  replay::measured_load const load{.running = 1.5, .kv_share = 0.5, .longest_line = 4};
  auto const v = validate_run(self_measured(m), m, load);
  ASSERT_EQ(v.figures.size(), 18U);
  EXPECT_EQ(v.figures[15].name, "requests running, mean");
  EXPECT_EQ(v.figures[15].measured, 1.5);
  EXPECT_DOUBLE_EQ(v.figures[15].simulated, v.simulated.lanes_used * 256);
  EXPECT_EQ(v.figures[16].measured, 50);
  EXPECT_EQ(v.figures[17].measured, 4);
}

TEST(LoadSeries, IsSummedUp) {
  std::istringstream in{std::string{replay::load_series_header} +
                        "\n1.0,3392.0,2.0,5,2,13.5\n2.0,0.0,79.0,16,7,86.5\n"};
  auto const load = replay::read_load_series(in, "l.csv");
  EXPECT_EQ(load.running, 10.5);
  EXPECT_EQ(load.longest_line, 7U);
  EXPECT_DOUBLE_EQ(load.kv_share, 0.5);
}

TEST(LoadSeries, SaysWhatIsWrongAndWhere) {
  auto const complaint = [](std::string const& text) {
    std::istringstream in{text};
    try {
      (void)replay::read_load_series(in, "l.csv");
    } catch (replay::trace_error const& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  std::string const head = std::string{replay::load_series_header} + '\n';
  EXPECT_EQ(complaint("x\n"),
            "l.csv: no load series; its first line must be '" + head.substr(0, head.size() - 1) + "'");
  EXPECT_EQ(complaint(head), "l.csv: no sample in it");
  EXPECT_EQ(complaint(head + "1,0,0,5,2,13\n2,0,0,5,2,100.5\n"),
            "l.csv:3: kv_cache_pct is '100.5'; a number from 0 to 100 is needed");
  EXPECT_EQ(complaint(head + "1,0,0,-5,2,13\n"),
            "l.csv:2: running is '-5'; a whole number from 0 to 4294967295 is needed");
  EXPECT_EQ(complaint(head + "1,0,0,5,2,nan\n"), "l.csv:2: kv_cache_pct is 'nan'; a number from 0 to 100 is needed");
}

TEST(Validation, RefusesWorkloadsThatNobodyMeasured) {
  auto const w = replay::testing::workload_of({{.at = 0ms, .prompt = 1}});
  EXPECT_THROW((void)validate_run(w, *machine_named("a10g")), std::invalid_argument);
  EXPECT_THROW((void)validate_run(w, *machine_named("large")), std::invalid_argument);
}

/// Skips where the measurements are not at hand: they are not part of the project.
class MeasuredRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto const& f : replay::measured_files())
      if (!std::filesystem::exists(replay::testing::recorded_traces() / f.name))
        GTEST_SKIP() << "no measurements: set KVLANE_TRACES to the folder that holds " << f.name;
  }
  static std::optional<replay::measured_load> load_of(replay::measured_file const& f) {
    if (f.load_series.empty()) return std::nullopt;
    return replay::read_load_series_file((replay::testing::recorded_traces() / f.load_series).string());
  }
  static replay::workload load(replay::measured_file const& f) {
    auto const path = replay::testing::recorded_traces() / f.name;
    return replay::read_trace_file(path.string(), replay::bad_lines::refuse).requests;
  }
};

TEST_F(MeasuredRuns, AreReproducedWithinTheBoundInEveryFigure) {
  for (auto const& f : replay::measured_files()) {
    auto const v = validate_run(load(f), *machine_named(f.machine), load_of(f));
    EXPECT_TRUE(v.within_bound()) << table_of(v);
    EXPECT_GE(v.figures.size(), 11U);
  }
}

TEST_F(MeasuredRuns, AreSimulatedAlikeEachTime) {
  for (auto const& f : replay::measured_files()) {
    auto const w = load(f);
    auto const& m = *machine_named(f.machine);
    EXPECT_EQ(table_of(validate_run(w, m)), table_of(validate_run(w, m)));
  }
}

TEST_F(MeasuredRuns, OfSloraShowThatClientsTakeTokensFromThePool) {
  auto const w = load(replay::measured_files().front());
  auto const s = settings_of(*machine_named("a10g"));
  replay::slora_server without{{.costs = s.engine, .tokens_per_client = 0}};
  auto const outcome = replay::server_run{w, without, {.max_tokens = s.max_tokens}}.run();
  auto const simulated = std::chrono::duration<double>{outcome.result.first_token.mean}.count();
  EXPECT_LT(simulated, 0.95 * 46.77)
      << "without them more requests run at once, and nobody waits as long as was measured";
}

}  // namespace
