#include "sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

namespace replay {

namespace {

constexpr auto gap = std::numeric_limits<double>::quiet_NaN();

// The page's choices.
constexpr std::size_t by_load = 0;
constexpr std::size_t by_percentile = 1;

double percent(double share) { return share * 100; }

/// The runs of a workload in the order of the page.
class sweep_charts {
 public:
  sweep_charts(sweep_settings const& s, sweep_outcome const& o) : settings_{s}, outcome_{o} {
    for (std::size_t i = 0; i != s.loads.size(); ++i) by_load_.push_back(i);
    std::ranges::sort(by_load_, {}, [&](std::size_t i) { return s.loads[i]; });
  }

  [[nodiscard]] std::vector<chart> all() const;

 private:
  [[nodiscard]] std::span<sweep_run const> runs_at(std::size_t load) const {
    return std::span{outcome_.runs}.subspan(load * settings_.policies.size(), settings_.policies.size());
  }
  [[nodiscard]] chart_axis load_axis() const { return {.label = "load", .unit = "× capacity"}; }

  /// A number of each run, against the load.
  template <class Number>
  [[nodiscard]] chart_view against_load(Number const& number) const {
    chart_view v;
    for (auto const load : by_load_) v.x.push_back(settings_.loads[load]);
    for (std::size_t p = 0; p != settings_.policies.size(); ++p) {
      chart_series s{.name = std::string{name_of(settings_.policies[p])}};
      for (auto const load : by_load_) s.y.push_back(number(runs_at(load)[p]));
      v.series.push_back(std::move(s));
    }
    return v;
  }
  template <class Share>
  [[nodiscard]] chart share_chart(char const* title, char const* note, char const* what, Share const& share) const {
    return {.title = title,
            .note = note,
            .x = load_axis(),
            .y = {.label = what, .unit = "%"},
            .views = {against_load([&](sweep_run const& r) { return percent(share(r.figures)); })}};
  }
  [[nodiscard]] chart goodput() const;
  [[nodiscard]] chart good_tokens() const;
  [[nodiscard]] chart first_token() const;
  [[nodiscard]] chart waits() const;
  template <class Number>
  [[nodiscard]] chart over_time(char const* title, char const* note, chart_axis y, Number const& number) const;

  sweep_settings const& settings_;
  sweep_outcome const& outcome_;
  std::vector<std::size_t> by_load_;  // ascending: places of loads in the settings
};

chart sweep_charts::goodput() const {
  auto const capacity = outcome_.capacity();
  auto view = against_load([](sweep_run const& r) { return r.figures.good_per_second(); });
  chart_series bound{.name = "offered, up to the capacity", .role = series_role::reference};
  for (auto const load : view.x) bound.y.push_back(std::min(load, 1.0) * capacity);
  view.series.push_back(std::move(bound));
  return {.title = "Goodput in requests",
          .note = fmt::format("Whole replies whose first token came within {:g} s. Capacity, by serving {} requests at "
                              "once in order of arrival: {:.3g} a second.",
                              seconds(settings_.simulation.limits.max_wait), outcome_.requests, capacity),
          .x = load_axis(),
          .y = {.label = "good requests", .unit = "per second"},
          .views = {std::move(view)}};
}

/// Short requests may be many and hold few tokens: an order that prefers them wins in one chart and loses in the other.
chart sweep_charts::good_tokens() const {
  return {.title = "Goodput in tokens",
          .note =
              "Tokens of these requests, prompts with their cached parts and replies: who serves short requests first "
              "serves more of them, and perhaps fewer tokens.",
          .x = load_axis(),
          .y = {.label = "good tokens", .unit = "per second"},
          .views = {against_load([](sweep_run const& r) { return r.figures.good_tokens_per_second(); })}};
}

chart sweep_charts::first_token() const {
  chart c{.title = "First token against load",
          .note = "Time to the first token since the first try, of all who got one.",
          .x = load_axis(),
          .y = {.label = "first token", .unit = "s", .scale = chart_scale::logarithmic},
          .choice = by_percentile};
  auto const in_time = seconds(settings_.simulation.limits.max_wait);
  for (auto const which : {&time_summary::p99, &time_summary::p95, &time_summary::p50}) {
    auto v = against_load([&](sweep_run const& r) { return seconds(r.figures.first_token.*which); });
    v.series.push_back(
        {.name = "in time", .y = std::vector<double>(v.x.size(), in_time), .role = series_role::reference});
    c.views.push_back(std::move(v));
  }
  return c;
}

/// Buckets are summed up to their upper bounds. The first one, of no wait at all, counts where a logarithmic axis begins,
/// and the last one has no bound.
chart sweep_charts::waits() const {
  chart c{
      .title = "Waits in line",
      .note =
          "Share of the admitted requests that waited at most so long, from the last try to admission. Who left the "
          "line is not in it.",
      .x = {.label = "wait", .unit = "s", .scale = chart_scale::logarithmic},
      .y = {.label = "admitted requests", .unit = "%", .most = 100},
      .choice = by_load};
  for (auto const load : by_load_) {
    chart_view v;
    for (auto const& r : runs_at(load)) {
      auto const& h = r.figures.wait_ms;
      chart_series s{.name = std::string{name_of(r.used)}};
      v.x.clear();
      auto sum = static_cast<double>(h.counts()[0]);
      for (std::size_t i = 1; i + 1 < h.counts().size(); ++i) {
        sum += static_cast<double>(h.counts()[i]);
        v.x.push_back(static_cast<double>(h.upper_bound(i)) / 1000);
        s.y.push_back(h.count() == 0 ? gap : percent(sum / static_cast<double>(h.count())));
      }
      v.series.push_back(std::move(s));
    }
    c.views.push_back(std::move(v));
  }
  return c;
}

/// The points as means over an interval that is `merged` times as long.
template <class Number>
std::vector<double> thinned(std::vector<load_curve::point> const& points, std::size_t merged, Number const& number) {
  std::vector<double> all;
  for (std::size_t i = 0; i < points.size(); i += merged) {
    auto const end = std::min(i + merged, points.size());
    double sum = 0;
    for (auto j = i; j != end; ++j) sum += number(points[j]);
    all.push_back(sum / static_cast<double>(end - i));
  }
  return all;
}

/// Intervals are powers of two times one length, so that the longest one of a load suits all its runs.
template <class Number>
chart sweep_charts::over_time(char const* title, char const* note, chart_axis y, Number const& number) const {
  chart c{.title = title, .note = note, .x = {.label = "time", .unit = "s"}, .y = std::move(y), .choice = by_load};
  for (auto const load : by_load_) {
    auto const interval = std::ranges::max(runs_at(load), {}, &sweep_run::interval).interval;
    chart_view v;
    std::size_t longest = 0;
    for (auto const& r : runs_at(load)) {
      auto const merged = static_cast<std::size_t>(interval / std::max(r.interval, nanoseconds{1}));
      v.series.push_back(
          {.name = std::string{name_of(r.used)}, .y = thinned(r.points, std::max<std::size_t>(merged, 1), number)});
      longest = std::max(longest, v.series.back().y.size());
    }
    for (std::size_t i = 0; i != longest; ++i) v.x.push_back(seconds(interval) * static_cast<double>(i));
    for (auto& s : v.series) s.y.resize(longest, gap);
    c.views.push_back(std::move(v));
  }
  return c;
}

std::vector<chart> sweep_charts::all() const {
  auto const of_all = [](std::uint64_t sweep_figures::* which) {
    return [which](sweep_figures const& f) { return f.share(f.*which); };
  };
  auto const kv_capacity = static_cast<double>(settings_.simulation.limits.kv_capacity);
  std::vector<chart> charts;
  charts.push_back(goodput());
  charts.push_back(good_tokens());
  charts.push_back(first_token());
  charts.push_back(waits());
  charts.push_back(share_chart("Refused early", "Told at arrival: the line is full, or the predicted wait too long.",
                               "requests", of_all(&sweep_figures::refused_early)));
  charts.push_back(share_chart("Timed out or late", "Waited in vain, or got the first token too late.", "requests",
                               [](sweep_figures const& f) { return f.share(f.timed_out + f.late); }));
  charts.push_back(share_chart("Work for nothing", "Computed tokens that went to requests that were late or cut off.",
                               "computed tokens", [](sweep_figures const& f) { return f.wasted_share(); }));
  charts.push_back(share_chart("Prompt tokens found in the prefix cache", "They need not be computed.", "prompt tokens",
                               [](sweep_figures const& f) { return f.run.hit_share(); }));
  charts.push_back(over_time("Requests in line over time", "Means over equal intervals.", {.label = "in line"},
                             [](load_curve::point const& p) { return p.waiting; }));
  charts.push_back(over_time("KV tokens over time", "Reserved for running requests.",
                             {.label = "KV tokens", .unit = "%", .most = 100},
                             [&](load_curve::point const& p) { return percent(p.kv_tokens / kv_capacity); }));
  if (!outcome_.title.empty()) charts.front().section = outcome_.title;
  return charts;
}

chart_choice choice_of_loads(std::vector<double> loads) {
  std::ranges::sort(loads);
  chart_choice c{.label = "load"};
  for (auto const load : loads) c.options.push_back(fmt::format("{:g} × capacity", load));
  // The lightest overload is where policies begin to differ.
  auto const overload = std::ranges::find_if(loads, [](double load) { return load > 1; });
  c.chosen = static_cast<std::size_t>((overload == loads.end() ? overload - 1 : overload) - loads.begin());
  return c;
}

std::string limits_of(simulation_settings const& s) {
  auto const& l = s.limits;
  return fmt::format("{} lanes, {} KV tokens, {} places in line, waits up to {:g} s, prefix cache of {} tokens; {}",
                     l.lanes, l.kv_capacity, l.places(), seconds(l.max_wait), s.cache_tokens,
                     s.clients.retry ? "refused clients come back up to twice" : "refused clients are gone");
}

}  // namespace

chart_page page_of(sweep_settings const& s, std::vector<sweep_outcome> const& all, sweep_origin const& from) {
  chart_page p{.title = "Policies under rising load"};
  for (auto const& o : all) p.about.push_back({.name = "Workload", .text = o.title});
  p.about.push_back({.name = "Engine", .text = fmt::format("SIMULATED: {}", s.simulation.engine_title)});
  p.about.push_back({.name = "Queue", .text = limits_of(s.simulation)});
  p.about.push_back({.name = "Seed", .text = fmt::format("{}", from.seed)});
  p.about.push_back({.name = "Command", .text = from.command_line, .is_code = true});
  p.choices = {choice_of_loads(s.loads), {.label = "percentile", .options = {"p99", "p95", "p50"}}};
  for (auto const& o : all)
    for (auto& c : sweep_charts{s, o}.all()) p.charts.push_back(std::move(c));
  // One workload is named in the heading.
  if (all.size() == 1) p.charts.front().section.clear();
  return p;
}

}  // namespace replay
