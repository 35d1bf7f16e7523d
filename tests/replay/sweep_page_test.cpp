#include "command_line.hpp"
#include "sweep_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace {

using replay::chart;
using replay::chart_page;
using replay::page_of;
using replay::policy;
using replay::series_role;
using replay::sweep_outcome;
using replay::sweep_run;
using replay::sweep_settings;
using replay::typed_line;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsNan;
using ::testing::SizeIs;

using namespace std::chrono_literals;

/// Two loads, given in descending order, and two policies; 10 requests a second are the capacity.
struct two_by_two {
  sweep_settings settings{.policies = {policy::fcfs, policy::hrrn}, .loads = {2, 0.5}};
  sweep_outcome outcome{.title = "by hand", .requests = 100, .burst_time = 10s, .runs = {}};

  two_by_two() {
    settings.simulation.limits = {.lanes = 1, .kv_capacity = 200};
    settings.simulation.limits.max_wait = 30s;
    for (auto const load : settings.loads)
      for (auto const p : settings.policies) {
        auto& r = outcome.runs.emplace_back();
        r.used = p;
        r.load = load;
        r.interval = 10ms;
        r.figures.requests = 100;
      }
  }
  [[nodiscard]] sweep_run& run(double load, policy p) {
    return *std::ranges::find_if(outcome.runs, [&](sweep_run const& r) { return r.load == load && r.used == p; });
  }
  [[nodiscard]] chart_page page() const { return page_of(settings, {outcome}, {.seed = 7, .command_line = "typed"}); }
  [[nodiscard]] chart shown(std::string const& title) const {
    auto const all = page().charts;
    return *std::ranges::find(all, title, &chart::title);
  }
};

TEST(SweepPage, ShowsLoadsInAscendingOrder) {
  two_by_two sweep;
  sweep.run(0.5, policy::hrrn).figures.refused_early = 5;
  sweep.run(2, policy::hrrn).figures.refused_early = 50;
  auto const c = sweep.shown("Refused early");
  ASSERT_THAT(c.views, SizeIs(1));
  EXPECT_THAT(c.views[0].x, ElementsAre(0.5, 2));
  ASSERT_THAT(c.views[0].series, SizeIs(2));
  EXPECT_EQ(c.views[0].series[1].name, "hrrn");
  EXPECT_THAT(c.views[0].series[0].y, ElementsAre(0, 0));
  EXPECT_THAT(c.views[0].series[1].y, ElementsAre(5, 50));
}

TEST(SweepPage, ComparesGoodputWithWhatCouldBeServed) {
  two_by_two sweep;
  auto const c = sweep.shown("Goodput in requests");
  auto const& bound = c.views[0].series.back();
  EXPECT_EQ(bound.role, series_role::reference);
  EXPECT_THAT(bound.y, ElementsAre(5, 10));
}

TEST(SweepPage, AddsUpWaits) {
  two_by_two sweep;
  auto& waits = sweep.run(2, policy::fcfs).figures.wait_ms;
  for (auto const ms : {0U, 1U, 4U, 1'000'000U}) waits.observe(ms);
  auto const c = sweep.shown("Waits in line");
  ASSERT_THAT(c.views, SizeIs(2));
  auto const& v = c.views[1];
  EXPECT_DOUBLE_EQ(v.x[0], 0.001);
  EXPECT_THAT((std::vector<double>{v.series[0].y.begin(), v.series[0].y.begin() + 3}), ElementsAre(50, 50, 75));
  EXPECT_EQ(v.series[0].y.back(), 75) << "the longest wait is beyond the axis";
  EXPECT_THAT(v.series[1].y[0], IsNan()) << "nobody was admitted";
}

TEST(SweepPage, ShowsRunsOfDifferentLengthOverOneTime) {
  two_by_two sweep;
  auto& fine = sweep.run(0.5, policy::fcfs);
  fine.points = {{.waiting = 1, .kv_tokens = 100}, {.waiting = 3, .kv_tokens = 100}, {.waiting = 6, .kv_tokens = 50}};
  auto& coarse = sweep.run(0.5, policy::hrrn);
  coarse.interval = 20ms;
  coarse.points = {{.waiting = 4}, {.waiting = 5}, {.waiting = 6}};
  auto const line = sweep.shown("Requests in line over time").views[0];
  EXPECT_THAT(line.x, ElementsAre(0, DoubleEq(0.02), DoubleEq(0.04)));
  EXPECT_THAT(line.series[0].y, ElementsAre(2, 6, IsNan()));
  EXPECT_THAT(line.series[1].y, ElementsAre(4, 5, 6));
  EXPECT_THAT(sweep.shown("KV tokens over time").views[0].series[0].y, ElementsAre(50, 25, IsNan()));
}

TEST(SweepPage, BeginsWithTheLightestOverload) {
  two_by_two sweep;
  EXPECT_EQ(sweep.page().choices.at(0).chosen, 1);
  EXPECT_THAT(sweep.page().choices.at(0).options, ElementsAre("0.5 × capacity", "2 × capacity"));
  sweep.settings.loads = {1, 0.5};
  EXPECT_EQ(sweep.page().choices.at(0).chosen, 1) << "the highest, where nothing is overloaded";
}

TEST(SweepPage, HasAViewForEachOptionOfAChoice) {
  auto const page = two_by_two{}.page();
  for (auto const& c : page.charts)
    EXPECT_THAT(c.views, SizeIs(c.choice ? page.choices.at(*c.choice).options.size() : 1)) << c.title;
}

TEST(SweepPage, NamesWorkloadsWhereThereAreMany) {
  two_by_two const sweep;
  EXPECT_EQ(sweep.page().charts.front().section, "");
  auto const two = page_of(sweep.settings, {sweep.outcome, sweep.outcome}, {});
  EXPECT_EQ(two.charts.front().section, "by hand");
  EXPECT_EQ(std::ranges::count(two.charts, "by hand", &chart::section), 2);
}

TEST(TypedLine, CanBeTypedAgain) {
  std::vector<char const*> const words{"/some/where/kvlane-replay", "sweep", "--loads", "1,2", "it's here.jsonl", ""};
  EXPECT_EQ(typed_line(static_cast<int>(words.size()), words.data()),
            R"(kvlane-replay sweep --loads 1,2 'it'\''s here.jsonl' '')");
}

}  // namespace
