#include "chart_page.hpp"
#include "page_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace {

using replay::chart;
using replay::chart_page;
using replay::chart_scale;
using replay::html_of;
using replay::page_text;
using replay::scatter_of;
using replay::series_role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The data in a page.
nlohmann::json data_of(std::string const& html) {
  std::string_view const begin = R"(<script type="application/json" id="data">)";
  auto const from = html.find(begin) + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

chart_page page_with(chart c) { return {.title = "title", .charts = {std::move(c)}}; }

class ChartPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (page_text().empty()) GTEST_SKIP() << "built without the chart library";
  }
};

TEST_F(ChartPage, HasItsDataInIt) {
  auto const data =
      data_of(html_of(page_with({.title = "one", .views = {{.x = {1, 2}, .series = {{.name = "a", .y = {3, 4.5}}}}}})));
  EXPECT_EQ(data["charts"][0]["title"], "one");
  EXPECT_EQ(data["charts"][0]["views"][0]["x"].dump(), "[1.0,2.0]");
  EXPECT_EQ(data["charts"][0]["views"][0]["series"][0]["y"].dump(), "[3.0,4.5]");
}

TEST_F(ChartPage, AsksNothingOfAnyNetwork) {
  auto const html = html_of(page_with({.title = "one"}));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("<link")));
  EXPECT_THAT(html, Not(HasSubstr("src=\"")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
}

TEST_F(ChartPage, KeepsTheLicenceOfTheLibrary) {
  EXPECT_THAT(std::string{page_text()}, HasSubstr("Permission is hereby granted"));
}

TEST_F(ChartPage, LetsNoTextOutOfItsData) {
  std::string const evil = "</script><script>alert('@DATA@ @TITLE@')</script><!--\xFF";
  auto const html = html_of({.title = evil, .about = {{.name = "Workload", .text = evil}}});
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("<h1>&lt;/script&gt;"));
  // What is not UTF-8 is shown as a replacement character.
  EXPECT_EQ(data_of(html)["about"][0]["text"], "</script><script>alert('@DATA@ @TITLE@')</script><!--\xEF\xBF\xBD");
}

TEST_F(ChartPage, LeavesAGapWhereAnAxisCannotShowANumber) {
  constexpr auto none = std::numeric_limits<double>::quiet_NaN();
  chart c{.title = "one", .views = {{.x = {1, 2, 3}, .series = {{.name = "a", .y = {none, 0, 1e-3}}}}}};
  EXPECT_EQ(data_of(html_of(page_with(c)))["charts"][0]["views"][0]["series"][0]["y"].dump(), "[null,0,0.001]");
  c.y.scale = chart_scale::logarithmic;
  EXPECT_EQ(data_of(html_of(page_with(c)))["charts"][0]["views"][0]["series"][0]["y"].dump(), "[null,null,0.001]");
}

TEST(ScatterOf, SortsAllPointsAndKeepsCloudsApart) {
  auto const c =
      scatter_of({.title = "predicted against true wait", .x = {.label = "true"}, .y = {.label = "predicted"}},
                 {{.name = "a", .points = {{3, 1}, {1, 2}}}, {.name = "b", .points = {{2, 5}}}});
  ASSERT_EQ(c.views.size(), 1);
  auto const& v = c.views.front();
  EXPECT_THAT(v.x, ElementsAre(1, 2, 3));
  ASSERT_EQ(v.series.size(), 3);
  EXPECT_THAT(v.series[0].y, ElementsAre(2, ::testing::IsNan(), 1));
  EXPECT_THAT(v.series[1].y, ElementsAre(::testing::IsNan(), 5, ::testing::IsNan()));
  EXPECT_EQ(v.series[2].y, v.x);
  EXPECT_EQ(v.series[2].role, series_role::reference);
}

TEST(ScatterOf, MovesPointsUpToWhereALogarithmicAxisBegins) {
  auto const c = scatter_of({.title = "t",
                             .x = {.label = "true", .scale = chart_scale::logarithmic},
                             .y = {.label = "predicted", .scale = chart_scale::logarithmic},
                             .least = 0.1},
                            {{.name = "a", .points = {{0, 2}, {4, 0}}}});
  EXPECT_THAT(c.views.front().x, ElementsAre(0.1, 4));
  EXPECT_THAT(c.views.front().series[0].y, ElementsAre(2, 0.1));
}

}  // namespace
