#include "sweep.hpp"

#include "offered_load.hpp"
#include "yardsticks/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace replay {

namespace {

/// As many workers as there are threads take the places from 0 to `count` one after the other.
template <class Work>
void share_out(std::size_t count, std::uint32_t threads, Work const& work) {
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  std::exception_ptr failure;
  auto const worker = [&] {
    try {
      for (auto i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      std::lock_guard const lock{failing};
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (auto i = std::min<std::size_t>(threads, count); i > 1; --i) others.emplace_back(worker);
    worker();
  }
  if (failure) std::rethrow_exception(failure);
}

sweep_run run_once(workload const& w, policy p, double load, simulation_settings const& s) {
  auto const details = simulate_in_detail(w, p, s);
  return {.used = p,
          .load = load,
          .figures = figures_of(w, details, s.limits.max_wait),
          .interval = details.curve.interval(),
          .points = details.curve.points()};
}

}  // namespace

void validate(sweep_settings const& s) {
  validate(s.simulation);
  auto const& l = s.simulation.limits;
  if (l.max_wait == kvlane::forever || l.max_wait <= kvlane::duration::zero())
    throw std::invalid_argument{"max-wait must be above 0 and finite: who gets a first token within it is well served"};
  for (auto const load : s.loads)
    if (!(load >= 0.01 && load <= 100))
      throw std::invalid_argument{fmt::format("loads has {}; a load is from 0.01 to 100 times the capacity", load)};
  if (s.loads.empty() || s.policies.empty()) throw std::invalid_argument{"loads or policy is empty; there is no run"};
  if (s.rounds == 0) throw std::invalid_argument{"rounds is 0; the stream comes at least once"};
  if (s.threads == 0 || s.threads > 256)
    throw std::invalid_argument{fmt::format("threads is {}; from 1 to 256 make sense", s.threads)};
  for (auto const p : s.policies)
    if (is_server(p))
      throw std::invalid_argument{fmt::format(
          "policy is {}, which brings an engine of its own; a sweep compares decisions before one and the same engine",
          name_of(p))};
}

double sweep_outcome::capacity() const noexcept { return per_second(requests, burst_time); }

sweep_outcome sweep(workload w, sweep_settings const& s) {
  validate(s);
  w = in_rounds(std::move(w), s.rounds);
  auto const capacity = measure_capacity(w, s.simulation);
  sweep_outcome all{.title = w.title, .requests = w.requests.size(), .burst_time = capacity.burst_time, .runs = {}};
  std::vector<workload> at_load;
  for (auto const load : s.loads) at_load.push_back(reshape(w, {.speed = load * capacity.speed_at_capacity}));
  all.runs.resize(s.loads.size() * s.policies.size());
  share_out(all.runs.size(), s.threads, [&](std::size_t i) {
    auto const load = i / s.policies.size();
    all.runs[i] = run_once(at_load[load], s.policies[i % s.policies.size()], s.loads[load], s.simulation);
  });
  return all;
}

}  // namespace replay
