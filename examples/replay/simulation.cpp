#include "simulation.hpp"

#include "replay_run.hpp"
#include "yardsticks/servers.hpp"

#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/ordering/cache_aware_scan.hpp>
#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace replay {

namespace {

constexpr std::array<std::pair<policy, std::string_view>, 6> policies{{{policy::fcfs, "fcfs"},
                                                                       {policy::seed_order, "seed_order"},
                                                                       {policy::cache_aware, "cache_aware"},
                                                                       {policy::cache_aware_scan, "cache_aware_scan"},
                                                                       {policy::slora, "slora"},
                                                                       {policy::vllm, "vllm"}}};

template <class Policy>
run_result run_with(Policy p, workload const& w, simulation_settings const& s, progress_listener const& progress) {
  return replay_run<Policy>{w, s, std::move(p)}.run(progress);
}

}  // namespace

std::string_view name_of(policy p) noexcept {
  return std::ranges::find(policies, p, [](auto const& e) { return e.first; })->second;
}

std::optional<policy> policy_named(std::string_view name) noexcept {
  auto const found = std::ranges::find(policies, name, [](auto const& e) { return e.second; });
  return found == policies.end() ? std::nullopt : std::optional{found->first};
}

void validate(simulation_settings const& s) {
  kvlane::validate(s.limits);
  kvlane::validate(s.ordering);
  validate(s.engine);
  if (s.limits.lanes == 0) throw std::invalid_argument{"lanes is 0; nothing would ever be admitted"};
  if (s.max_tokens == 0) throw std::invalid_argument{"max-tokens is 0; a reply has at least 1 token"};
}

run_result simulate(workload const& w, policy p, simulation_settings const& settings,
                    progress_listener const& progress) {
  validate(settings);
  switch (p) {
    case policy::fcfs: return run_with(kvlane::fcfs{}, w, settings, progress);
    case policy::seed_order: return run_with(kvlane::seed_order{settings.ordering}, w, settings, progress);
    case policy::cache_aware: return run_with(kvlane::cache_aware{settings.ordering}, w, settings, progress);
    case policy::cache_aware_scan: return run_with(kvlane::cache_aware_scan{settings.ordering}, w, settings, progress);
    case policy::slora:
    case policy::vllm: return simulate_server(w, p, settings, progress).result;
  }
  throw std::invalid_argument{fmt::format("policy number {} does not exist", static_cast<int>(p))};
}

}  // namespace replay
