#include "overload_trial.hpp"

#include "offered_load.hpp"
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

}  // namespace

std::uint64_t overload_outcome::refused() const noexcept {
  return result.refused_for(kvlane::errc::would_time_out) + result.probes;
}
double overload_outcome::wrong() const noexcept {
  return ratio(static_cast<double>(result.probes_in_time), static_cast<double>(result.probes));
}
std::uint64_t overload_outcome::let_in() const noexcept {
  auto others = result.probes;
  for (auto const code : {kvlane::errc::invalid_request, kvlane::errc::never_fits, kvlane::errc::queue_full,
                          kvlane::errc::would_time_out})
    others += result.refused_for(code);
  return result.requests - others;
}
double overload_outcome::late() const noexcept {
  return ratio(static_cast<double>(result.refused_for(kvlane::errc::timed_out)), static_cast<double>(let_in()));
}

overload_trial try_under_overload(workload const& w, machine const& m, std::uint32_t rounds) {
  auto s = settings_of(m);
  auto stream = in_rounds(w, rounds);
  auto const speed = overload * measure_capacity(stream, s).speed_at_capacity;
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
