#include "overload_trial.hpp"

#include "simulation.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace replay {

namespace {

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
  stream = reshape(std::move(stream), {.speed = speed});
  s.limits.max_wait = overload_max_wait;
  s.probes = refusal_probes{};
  overload_trial trial{
      .title = stream.title, .engine = title_of(m), .requests = stream.requests.size(), .outcomes = {}};
  auto const add = [&](std::string_view name) {
    trial.outcomes.push_back({.predictor = name, .result = simulate(stream, policy::fcfs, s)});
  };
  add("work_left");
  s.limits.predict_by = kvlane::predictor::ewma_p95;
  add("ewma_p95");
  s.reports = engine_reports::nothing;
  add("none");
  return trial;
}

}  // namespace replay
