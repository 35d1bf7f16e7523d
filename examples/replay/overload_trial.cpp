#include "overload_trial.hpp"

#include "simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace replay {

namespace {

/// Ways to predict.
struct way_to_predict {
  std::string_view name;
  kvlane::predictor predict_by;
  engine_reports reports;
};
constexpr std::array<way_to_predict, 4> ways{
    {{.name = "work_left", .predict_by = kvlane::predictor::work_left, .reports = engine_reports::progress_and_ends},
     {.name = "clairvoyant", .predict_by = kvlane::predictor::work_left, .reports = engine_reports::reply_lengths},
     {.name = "ewma_p95", .predict_by = kvlane::predictor::ewma_p95, .reports = engine_reports::progress_and_ends},
     {.name = "none", .predict_by = kvlane::predictor::work_left, .reports = engine_reports::nothing}}};

double share(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// The stream again and again, each time a mean gap after the last arrival.
workload repeated(workload w, std::size_t rounds) {
  auto const once = w.requests;
  auto const last = once.back().arrival;
  auto const period = last + last / static_cast<std::int64_t>(once.size() - 1);
  for (std::size_t i = 1; i < rounds; ++i)
    for (auto r : once) {
      r.arrival += period * static_cast<std::int64_t>(i);
      w.requests.push_back(std::move(r));
    }
  w.title += fmt::format(", {} rounds", rounds);
  return w;
}

/// How long the machine takes for all requests when none is missing.
nanoseconds time_to_serve(workload w, simulation_settings const& s) {
  for (auto& r : w.requests) r.arrival = nanoseconds::zero();
  return simulate(w, policy::fcfs, s).run_time;
}

}  // namespace

std::uint64_t overload_outcome::refused() const noexcept {
  return result.refused_for(kvlane::errc::would_time_out) + result.probes;
}
double overload_outcome::wrong() const noexcept { return share(result.probes_in_time, result.probes); }
std::uint64_t overload_outcome::let_in() const noexcept {
  auto others = result.probes;
  for (auto const code : {kvlane::errc::invalid_request, kvlane::errc::never_fits, kvlane::errc::queue_full,
                          kvlane::errc::would_time_out})
    others += result.refused_for(code);
  return result.requests - others;
}
double overload_outcome::late() const noexcept { return share(result.refused_for(kvlane::errc::timed_out), let_in()); }

overload_trial try_under_overload(workload const& w, machine const& m, std::size_t rounds) {
  if (w.requests.size() < 2 || w.requests.back().arrival <= nanoseconds::zero())
    throw std::invalid_argument{fmt::format("{}: no load can be made of requests that all come at once", w.title)};
  auto s = settings_of(m);
  auto stream = repeated(w, rounds);
  auto const serving = time_to_serve(stream, s);
  auto const arriving = stream.requests.back().arrival;
  auto const speed = overload * std::chrono::duration<double>{arriving} / std::chrono::duration<double>{serving};
  // A number that fits in a title.
  stream = reshape(std::move(stream), {.speed = std::max(std::round(speed * 1000), 1.0) / 1000});
  s.limits.max_wait = overload_max_wait;
  s.probes = refusal_probes{};
  overload_trial trial{.title = stream.title,
                       .machine = std::string{m.name},
                       .engine = title_of(m),
                       .requests = stream.requests.size(),
                       .outcomes = {}};
  for (auto const& way : ways) {
    s.limits.predict_by = way.predict_by;
    s.reports = way.reports;
    for (auto const overtakes : {kvlane::limits{}.max_overtakes, 0U}) {
      s.limits.max_overtakes = overtakes;
      trial.outcomes.push_back(
          {.predictor = way.name, .strict = overtakes == 0, .result = simulate(stream, policy::fcfs, s)});
    }
  }
  return trial;
}

}  // namespace replay
