#include "offered_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace replay {

namespace {

nanoseconds time_to_serve(workload w, simulation_settings s) {
  for (auto& r : w.requests) r.arrival = nanoseconds::zero();
  s.limits.max_wait = kvlane::forever;
  s.limits.max_waiting = ~0U;
  s.limits.max_waiting_tokens = ~std::uint64_t{0};
  s.probes.reset();
  s.clients = {};
  return simulate(w, policy::fcfs, s).run_time;
}

}  // namespace

workload in_rounds(workload w, std::uint32_t rounds) {
  if (rounds == 1 || w.requests.size() < 2) return w;
  auto const once = w.requests;
  auto const period = once.back().arrival + once.back().arrival / static_cast<std::int64_t>(once.size() - 1);
  std::uint64_t ids = 0;
  for (auto const& r : once)
    for (auto const b : r.blocks) ids = std::max(ids, b + 1);
  for (std::uint32_t i = 1; i < rounds; ++i)
    for (auto r : once) {
      r.arrival += period * i;
      for (auto& b : r.blocks) b += ids * i;
      w.requests.push_back(std::move(r));
    }
  w.title += fmt::format(", {} rounds", rounds);
  return w;
}

capacity_measure measure_capacity(workload const& w, simulation_settings s) {
  if (w.requests.size() < 2 || w.requests.back().arrival <= nanoseconds::zero())
    throw std::invalid_argument{fmt::format("{}: no load can be made of requests that all come at once", w.title)};
  auto const burst_time = time_to_serve(w, std::move(s));
  if (burst_time <= nanoseconds::zero())
    throw std::invalid_argument{"the engine takes no time, so that no load is too high for it; change its constants"};
  return {.burst_time = burst_time,
          .speed_at_capacity = std::chrono::duration<double>{w.requests.back().arrival} / burst_time};
}

}  // namespace replay
