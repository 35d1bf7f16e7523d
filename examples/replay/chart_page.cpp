#include "chart_page.hpp"

#include "page_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>

namespace replay {

namespace {

using json = nlohmann::ordered_json;

bool is_log(chart_axis const& a) { return a.scale == chart_scale::logarithmic; }

/// Six digits are more than a screen shows, and keep the page small.
json number(double value, chart_axis const& axis) {
  if (!std::isfinite(value) || (is_log(axis) && value <= 0)) return nullptr;
  if (value == 0) return 0;
  auto const unit = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  auto const rounded = std::round(value * unit) / unit;
  return std::isfinite(rounded) ? json(rounded) : json(value);
}

json json_of(std::vector<double> const& values, chart_axis const& axis) {
  auto all = json::array();
  for (auto const v : values) all.push_back(number(v, axis));
  return all;
}

json json_of(chart_axis const& a) {
  json j = {{"label", a.label}, {"unit", a.unit}, {"log", is_log(a)}};
  if (a.most) j["most"] = *a.most;
  return j;
}

json json_of(chart_view const& v, chart const& c) {
  auto all = json::array();
  for (auto const& s : v.series)
    all.push_back({{"name", s.name}, {"reference", s.role == series_role::reference}, {"y", json_of(s.y, c.y)}});
  return {{"x", json_of(v.x, c.x)}, {"series", std::move(all)}};
}

json json_of(chart const& c) {
  auto views = json::array();
  for (auto const& v : c.views) views.push_back(json_of(v, c));
  json j = {{"section", c.section},
            {"title", c.title},
            {"note", c.note},
            {"kind", c.kind == chart_kind::points ? "points" : "lines"},
            {"wide", c.width == chart_width::full},
            {"x", json_of(c.x)},
            {"y", json_of(c.y)}};
  if (c.choice) j["choice"] = *c.choice;
  j["views"] = std::move(views);
  return j;
}

json json_of(chart_page const& p) {
  auto about = json::array();
  for (auto const& f : p.about) about.push_back({{"name", f.name}, {"text", f.text}, {"code", f.is_code}});
  auto choices = json::array();
  for (auto const& c : p.choices) choices.push_back({{"label", c.label}, {"options", c.options}, {"chosen", c.chosen}});
  auto charts = json::array();
  for (auto const& c : p.charts) charts.push_back(json_of(c));
  return {{"about", std::move(about)}, {"choices", std::move(choices)}, {"charts", std::move(charts)}};
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::string as_html(std::string text) {
  using namespace std::string_view_literals;
  for (auto const& [what, with] : {std::pair{"&"sv, "&amp;"sv}, {"<"sv, "&lt;"sv}, {">"sv, "&gt;"sv}})
    text = replaced(std::move(text), what, with);
  return text;
}

/// JSON in which no text can end the element that it stands in. '<' stands nowhere but in strings.
std::string as_element(json const& j) {
  return replaced(j.dump(-1, ' ', false, json::error_handler_t::replace), "<", "\\u003c");
}

}  // namespace

chart scatter_of(scatter_settings s, std::vector<scatter_cloud> const& clouds) {
  auto const shown = [&](double v, chart_axis const& a) { return is_log(a) ? std::max(v, s.least) : v; };
  std::vector<std::tuple<double, double, std::size_t>> points;
  for (std::size_t i = 0; i != clouds.size(); ++i)
    for (auto const& [x, y] : clouds[i].points)
      if (std::isfinite(x) && std::isfinite(y)) points.emplace_back(shown(x, s.x), shown(y, s.y), i);
  std::ranges::sort(points);
  constexpr auto gap = std::numeric_limits<double>::quiet_NaN();
  chart_view all;
  for (auto const& c : clouds) all.series.push_back({.name = c.name, .y = std::vector<double>(points.size(), gap)});
  for (auto const& [x, y, cloud] : points) {
    all.series[cloud].y[all.x.size()] = y;
    all.x.push_back(x);
  }
  all.series.push_back({.name = std::move(s.diagonal), .y = all.x, .role = series_role::reference});
  return {.title = std::move(s.title),
          .note = std::move(s.note),
          .x = std::move(s.x),
          .y = std::move(s.y),
          .kind = chart_kind::points,
          .views = {std::move(all)}};
}

void demand_charts() {
  if (page_text().empty())
    throw no_charts{
        fmt::format("--report: this build has no charts, because npm could not bring the chart library when it was "
                    "built; install npm, make sure that it reaches its registry, remove {} and build again "
                    "(--json needs none of that)",
                    page_source())};
}

std::string html_of(chart_page const& p) {
  demand_charts();
  auto text = replaced(std::string{page_text()}, "@TITLE@", as_html(p.title));
  // The data come last and once: what looks like a mark in them stays as it is.
  auto const mark = text.rfind("@DATA@");
  return text.replace(mark, std::string_view{"@DATA@"}.size(), as_element(json_of(p)));
}

}  // namespace replay
