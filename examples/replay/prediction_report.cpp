#include "prediction_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

namespace replay {

namespace {

constexpr double target_error = 0.4;
constexpr double target_multiple = 1.7;
constexpr double target_share = 0.05;

std::string part_of(std::size_t part, std::size_t whole) { return fmt::format("{} of {}", part, whole); }

}  // namespace

std::string table_of(prediction_trial const& t) {
  auto text =
      fmt::format("{}\nnothing is simulated; judged: {} of {} requests, those that waited for more than {:g} s\n",
                  t.title, t.judged, t.requests, seconds(least_wait));
  text += fmt::format("{:<16}{:>8}{:>8}{:>8}{:>8}", "error [%]", "median", "bias", "p90", "blind");
  for (auto const l : judged_limits)
    text += fmt::format("{:>20}{:>16}", fmt::format("refused wrongly {:g}s", seconds(l)), "let in late");
  text += '\n';
  for (auto const& s : t.scores) {
    text += fmt::format("{:<16}{:>8.1f}{:>+8.1f}{:>8.1f}{:>8.1f}", s.name, s.median_error * 100, s.bias * 100,
                        s.p90_error * 100, s.blind * 100);
    for (auto const& o : s.limits)
      text += fmt::format("{:>20}{:>16}", part_of(o.wrongly, o.refused), part_of(o.late, o.let_in));
    text += '\n';
  }
  for (auto const& s : t.scores) text += fmt::format("{:<16}knows {}\n", s.name, s.source);
  return text;
}

std::string table_of(overload_trial const& t) {
  auto text =
      fmt::format("{}\nengine: {}\nkvlane's queue, fcfs, {:g} times what can be served, max_wait {:g} s; {} requests\n",
                  t.title, t.engine, overload, seconds(overload_max_wait), t.requests);
  text += fmt::format("{:<20}{:>9}{:>16}{:>7}{:>17}{:>7}{:>20}{:>7}{:>11}{:>7}{:>11}\n", "", "refused", "probes, wrong",
                      "[%]", "let in, late", "[%]", "probes [s], waited", "p95", "missed by", "p95", "tokens/s");
  for (auto const& o : t.outcomes) {
    auto const& r = o.result;
    auto const probed = [&](std::string_view format, double value) {
      return r.probes == 0 ? std::string{"-"} : fmt::format(fmt::runtime(format), value);
    };
    text += fmt::format("{:<20}{:>9}{:>16}{:>7}{:>17}{:>7.1f}{:>20}{:>7}{:>11}{:>7}{:>11.1f}\n",
                        fmt::format("{}{}", o.predictor, o.strict ? ", strict" : ""), o.refused(),
                        part_of(r.probes_in_time, r.probes), probed("{:.1f}", o.wrong() * 100),
                        part_of(r.refused_for(kvlane::errc::timed_out), o.let_in()), o.late() * 100,
                        probed("{:.1f}", seconds(r.probe_wait.p50)), probed("{:.1f}", seconds(r.probe_wait.p95)),
                        probed("{:+.1f}", seconds(r.prediction_miss.p50)),
                        probed("{:+.1f}", seconds(r.prediction_miss.p95)), r.output_per_second());
  }
  return text;
}

std::string verdict_on(prediction_trial const& measured, std::span<overload_trial const> simulated) {
  auto const error_of = [&](std::string_view name) {
    auto const found = std::ranges::find(measured.scores, name, &predictor_score::name);
    return found == measured.scores.end() ? 0.0 : found->median_error;
  };
  auto const line = [](std::string const& what, double is, double target) {
    return fmt::format("{}: {:.3f}, target {:g}: {}\n", what, is, target, is <= target ? "met" : "NOT MET");
  };
  auto const mine = error_of("work_left");
  auto text = line("work_left, median error", mine, target_error);
  if (error_of("clairvoyant") > 0)
    text += line("work_left, median error as a multiple of the clairvoyant's", mine / error_of("clairvoyant"),
                 target_multiple);
  for (auto const& t : simulated)
    for (auto const& o : t.outcomes)
      if (o.predictor == "work_left" && !o.strict) {
        text +=
            line(fmt::format("work_left on {}, share of refusals that are wrong", t.machine), o.wrong(), target_share);
        text += line(fmt::format("work_left on {}, share of those let in that are late", t.machine), o.late(),
                     target_share);
      }
  return text;
}

nlohmann::ordered_json json_of(prediction_trial const& measured, std::span<overload_trial const> simulated) {
  using json = nlohmann::ordered_json;
  auto scores = json::array();
  for (auto const& s : measured.scores) {
    auto limits = json::array();
    for (auto const& o : s.limits)
      limits.push_back({{"limit_s", seconds(o.limit)},
                        {"refused", o.refused},
                        {"refused_wrongly", o.wrongly},
                        {"let_in", o.let_in},
                        {"let_in_late", o.late}});
    scores.push_back({{"predictor", s.name},
                      {"knows", s.source},
                      {"median_error", s.median_error},
                      {"bias", s.bias},
                      {"p90_error", s.p90_error},
                      {"blind", s.blind},
                      {"limits", std::move(limits)}});
  }
  auto runs = json::array();
  for (auto const& t : simulated) {
    auto outcomes = json::array();
    for (auto const& o : t.outcomes)
      outcomes.push_back({{"predictor", o.predictor},
                          {"strict", o.strict},
                          {"refused", o.refused()},
                          {"probes", o.result.probes},
                          {"probes_in_time", o.result.probes_in_time},
                          {"wrong", o.wrong()},
                          {"let_in", o.let_in()},
                          {"timed_out", o.result.refused_for(kvlane::errc::timed_out)},
                          {"late", o.late()},
                          {"probe_wait_p50_s", seconds(o.result.probe_wait.p50)},
                          {"probe_wait_p95_s", seconds(o.result.probe_wait.p95)},
                          {"miss_p50_s", seconds(o.result.prediction_miss.p50)},
                          {"miss_p95_s", seconds(o.result.prediction_miss.p95)},
                          {"output_tokens_per_s", o.result.output_per_second()}});
    runs.push_back({{"title", t.title},
                    {"engine", t.engine},
                    {"requests", t.requests},
                    {"overload", overload},
                    {"max_wait_s", seconds(overload_max_wait)},
                    {"outcomes", std::move(outcomes)}});
  }
  return {{"measured",
           {{"title", measured.title},
            {"requests", measured.requests},
            {"judged", measured.judged},
            {"scores", std::move(scores)}}},
          {"simulated", std::move(runs)}};
}

}  // namespace replay
