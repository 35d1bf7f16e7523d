#include "sweep_figures.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace replay {

namespace {

void count_ending(sweep_figures& f, request_fate const& fate, kvlane::duration max_wait) {
  switch (fate.end) {
    case ending::completed: ++(fate.had_token_within(max_wait) ? f.good : f.late); return;
    case ending::cut_off: ++f.cut_off; return;
    case ending::timed_out: ++f.timed_out; return;
    case ending::refused:
      ++(fate.why == kvlane::errc::invalid_request || fate.why == kvlane::errc::never_fits ? f.impossible
                                                                                           : f.refused_early);
      return;
  }
}

void count_work(sweep_figures& f, request_fate const& fate, kvlane::duration max_wait) {
  auto const work = fate.computed_tokens + fate.recomputed_tokens + fate.generated_tokens;
  f.computed_tokens += work;
  if (!fate.good(max_wait)) f.wasted_tokens += work;
}

std::optional<double> fairness_between_clients(workload const& w, std::vector<request_fate> const& fates,
                                               kvlane::duration max_wait) {
  struct tokens {
    double offered = 0, served = 0;
  };
  std::map<std::uint32_t, tokens> clients;
  for (std::size_t i = 0; i != fates.size(); ++i) {
    auto const& r = w.requests[i];
    if (!r.client) continue;
    auto& c = clients[*r.client];
    auto const size = static_cast<double>(r.prompt_tokens) + r.reply_tokens;
    c.offered += size;
    if (fates[i].good(max_wait)) c.served += size;
  }
  if (clients.size() < 2) return std::nullopt;
  double sum = 0;
  double squares = 0;
  for (auto const& [id, c] : clients) {
    auto const share = ratio(c.served, c.offered);
    sum += share;
    squares += share * share;
  }
  if (squares == 0) return std::nullopt;
  return sum * sum / (static_cast<double>(clients.size()) * squares);
}

}  // namespace

double sweep_figures::good_per_second() const noexcept { return per_second(good, run.run_time); }
double sweep_figures::good_tokens_per_second() const noexcept { return per_second(good_tokens, run.run_time); }
double sweep_figures::share(std::uint64_t of_requests) const noexcept {
  return ratio(static_cast<double>(of_requests), static_cast<double>(requests));
}
double sweep_figures::wasted_share() const noexcept {
  return ratio(static_cast<double>(wasted_tokens), static_cast<double>(computed_tokens));
}
double sweep_figures::recomputed_share() const noexcept {
  return ratio(static_cast<double>(run.recomputed_tokens), static_cast<double>(computed_tokens));
}
double sweep_figures::decisions_per_second() const noexcept {
  return per_second(run.core.decisions, run.core.deciding);
}

sweep_figures figures_of(workload const& w, run_details const& details, kvlane::duration max_wait) {
  sweep_figures f;
  f.requests = details.fates.size();
  f.run = details.result;
  std::vector<nanoseconds> first_tokens;
  for (std::size_t i = 0; i != details.fates.size(); ++i) {
    auto const& fate = details.fates[i];
    count_ending(f, fate, max_wait);
    count_work(f, fate, max_wait);
    if (fate.good(max_wait)) f.good_tokens += w.requests[i].prompt_tokens + std::uint64_t{fate.generated_tokens};
    f.tries += fate.tries;
    if (fate.let_in) ++f.let_in;
    if (fate.let_in && fate.good(max_wait)) ++f.let_in_good;
    if (fate.first_token) first_tokens.push_back(*fate.first_token - w.requests[i].arrival);
    if (fate.admitted) {
      auto const wait = std::chrono::ceil<std::chrono::milliseconds>(*fate.admitted - fate.arrived);
      f.wait_ms.observe(static_cast<std::uint64_t>(wait.count()));
    }
  }
  f.first_token = summarise(std::move(first_tokens));
  f.fairness = fairness_between_clients(w, details.fates, max_wait);
  return f;
}

}  // namespace replay
