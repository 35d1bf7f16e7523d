#include "prediction_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace replay {

namespace {

std::vector<measured_request> measured_requests(workload const& w) {
  std::vector<measured_request> all;
  for (auto const& r : w.requests) {
    auto const& m = r.measured;
    if (!m || !m->queued || !m->admitted || !m->first_token || !m->last_token)
      throw std::invalid_argument{
          fmt::format("{}: it was not measured when each request was queued and admitted, so there are no waits to "
                      "predict",
                      w.title)};
    kvlane::time_point const arrival{r.arrival};
    all.push_back({.queued = arrival + *m->queued,
                   .admitted = arrival + *m->admitted,
                   .first_token = arrival + *m->first_token,
                   .last_token = arrival + *m->last_token,
                   .prompt_tokens = r.prompt_tokens,
                   .reply_tokens = r.reply_tokens});
  }
  // Those of one moment as in the file. (Not std::stable_sort, see sort_by_arrival.)
  std::vector<std::pair<kvlane::time_point, std::size_t>> places;
  for (std::size_t i = 0; i != all.size(); ++i) places.emplace_back(all[i].queued, i);
  std::ranges::sort(places);
  std::vector<measured_request> sorted;
  for (auto const& [queued, place] : places) sorted.push_back(all[place]);
  return sorted;
}

/// Kinds in the order in which they happen at one moment.
enum class kind : std::uint8_t { progressed, ended, queued, admitted };

struct event {
  kvlane::time_point at;
  kind what;
  std::size_t who;

  auto operator<=>(event const&) const = default;
};

std::vector<event> events_of(std::vector<measured_request> const& requests) {
  std::vector<event> all;
  for (std::size_t i = 0; i != requests.size(); ++i) {
    auto const& r = requests[i];
    all.push_back({.at = r.queued, .what = kind::queued, .who = i});
    all.push_back({.at = r.admitted, .what = kind::admitted, .who = i});
    for (auto t = r.first_token; t < r.last_token; t += report_gap)
      all.push_back({.at = t, .what = kind::progressed, .who = i});
    all.push_back({.at = r.last_token, .what = kind::progressed, .who = i});
    all.push_back({.at = r.last_token, .what = kind::ended, .who = i});
  }
  std::ranges::sort(all);
  return all;
}

void tell(trial_predictor& p, event const& e, measured_request const& r) {
  switch (e.what) {
    case kind::queued: return p.queued(e.who, e.at);
    case kind::admitted: return p.admitted(e.who, e.at);
    case kind::progressed: return p.progressed(e.who, r.made(e.at), e.at);
    case kind::ended: return p.ended(e.who, e.at);
  }
}

/// A true wait, and the predicted one.
struct said {
  kvlane::fractional_ms wait;
  std::optional<kvlane::fractional_ms> predicted;

  [[nodiscard]] double error() const { return predicted.value_or(kvlane::fractional_ms{}) / wait - 1; }
};

/// What it says at each arrival of somebody who will really wait.
std::vector<said> listen_to(trial_predictor& p, std::vector<measured_request> const& requests,
                            std::vector<event> const& events) {
  std::vector<said> all;
  for (auto const& e : events) {
    auto const& r = requests[e.who];
    if (e.what == kind::queued && r.wait() > least_wait)
      all.push_back({.wait = r.wait(), .predicted = p.predicted_wait(e.at)});
    tell(p, e, r);
  }
  return all;
}

limit_outcome judge(std::vector<said> const& all, kvlane::duration limit) {
  limit_outcome o{.limit = limit};
  for (auto const& s : all) {
    auto const in_time = s.wait <= limit;
    if (s.predicted && *s.predicted > limit) {
      ++o.refused;
      if (in_time) ++o.wrongly;
    } else {
      ++o.let_in;
      if (!in_time) ++o.late;
    }
  }
  return o;
}

/// The value at place ceil(p * n / 100) in ascending order; 0 where there is none.
double percentile(std::vector<double> values, std::size_t p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[(values.size() * p + 99) / 100 - 1];
}

predictor_score score_of(trial_predictor const& p, std::vector<said> const& all) {
  std::vector<double> errors;
  std::vector<double> sizes;
  for (auto const& s : all) {
    errors.push_back(s.error());
    sizes.push_back(std::abs(s.error()));
  }
  auto const blind = std::ranges::count_if(all, [](said const& s) { return !s.predicted; });
  predictor_score score{.name = std::string{p.name()},
                        .source = std::string{p.source()},
                        .median_error = percentile(sizes, 50),
                        .bias = percentile(errors, 50),
                        .p90_error = percentile(sizes, 90),
                        .blind = all.empty() ? 0 : static_cast<double>(blind) / static_cast<double>(all.size()),
                        .limits = {}};
  for (std::size_t i = 0; i != judged_limits.size(); ++i) score.limits[i] = judge(all, judged_limits[i]);
  return score;
}

}  // namespace

prediction_trial try_predictors(workload const& measured, machine const& m) {
  auto const requests = measured_requests(measured);
  auto const events = events_of(requests);
  kvlane::limits l;
  l.lanes = m.lanes;
  prediction_trial trial{.title = measured.title, .requests = requests.size(), .judged = 0, .scores = {}};
  for (auto const& p : predictors_on_trial(requests, l)) {
    auto const all = listen_to(*p, requests, events);
    trial.judged = all.size();
    trial.scores.push_back(score_of(*p, all));
  }
  return trial;
}

}  // namespace replay
