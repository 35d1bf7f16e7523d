#include "simulation.hpp"

#include "policies/example_policies.hpp"
#include "policies/run_with.hpp"
#include "yardsticks/plain_admission.hpp"
#include "yardsticks/servers.hpp"

#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/ordering/cache_aware_scan.hpp>
#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace replay {

namespace {

constexpr std::array<policy, 15> every_policy{
    policy::fcfs,
    policy::seed_order,
    policy::cache_aware,
    policy::cache_aware_scan,
    policy::longest_prefix_first,
    policy::lpm_fcfs_128,
    policy::heaviest_subtree_first,
    policy::hrrn,
    policy::shortest_uncached_first,
    policy::seed_order_turn_bound,
    policy::clairvoyant_sjf,
    policy::semaphore,
    policy::no_admission,
    policy::slora,
    policy::vllm,
};

}  // namespace

std::span<policy const> all_policies() noexcept { return every_policy; }

std::string_view name_of(policy p) noexcept {
  switch (p) {
    case policy::fcfs: return "fcfs";
    case policy::seed_order: return "seed_order";
    case policy::cache_aware: return "cache_aware";
    case policy::cache_aware_scan: return "cache_aware_scan";
    case policy::longest_prefix_first: return "longest_prefix_first";
    case policy::lpm_fcfs_128: return "lpm_fcfs_128";
    case policy::heaviest_subtree_first: return "heaviest_subtree_first";
    case policy::hrrn: return "hrrn";
    case policy::shortest_uncached_first: return "shortest_uncached_first";
    case policy::seed_order_turn_bound: return "seed_order_turn_bound";
    case policy::clairvoyant_sjf: return "clairvoyant_sjf";
    case policy::semaphore: return "semaphore";
    case policy::no_admission: return "no_admission";
    case policy::slora: return "slora";
    case policy::vllm: return "vllm";
  }
  return "unknown";
}

std::optional<policy> policy_named(std::string_view name) noexcept {
  auto const* const found = std::ranges::find(every_policy, name, [](policy p) { return name_of(p); });
  return found == every_policy.end() ? std::nullopt : std::optional{*found};
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
  if (is_server(p)) return simulate_server(w, p, settings, progress).result;
  return simulate_in_detail(w, p, settings, progress).result;
}

run_details simulate_in_detail(workload const& w, policy p, simulation_settings const& settings,
                               progress_listener const& progress) {
  validate(settings);
  switch (p) {
    case policy::fcfs: return run_with(kvlane::fcfs{}, w, settings, progress);
    case policy::seed_order: return run_with(kvlane::seed_order{settings.ordering}, w, settings, progress);
    case policy::cache_aware: return run_with(kvlane::cache_aware{settings.ordering}, w, settings, progress);
    case policy::cache_aware_scan: return run_with(kvlane::cache_aware_scan{settings.ordering}, w, settings, progress);
    case policy::semaphore: return run_with(kvlane::fcfs{}, w, with_semaphore(settings), progress);
    case policy::no_admission: {
      auto const requests = static_cast<std::uint32_t>(w.requests.size());
      return run_with(kvlane::fcfs{}, w, without_admission(settings, requests), progress);
    }
    case policy::slora:
    case policy::vllm: throw std::invalid_argument{fmt::format("policy {} runs without kvlane's core", name_of(p))};
    default: return run_example_policy(w, p, settings, progress);
  }
}

}  // namespace replay
