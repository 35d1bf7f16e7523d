#include "policies/example_policies.hpp"

#include "policies/heaviest_subtree_first.hpp"
#include "policies/rankings.hpp"
#include "policies/run_with.hpp"
#include "policies/seed_order_turn_bound.hpp"

#include <kvlane/ordering/order_by.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace replay {

run_details run_example_policy(workload const& w, policy p, simulation_settings const& s,
                               progress_listener const& progress) {
  uncached_work const work{.cost_per_token = s.cost_per_token};
  auto const run = [&](auto order) { return run_with(std::move(order), w, s, progress); };
  switch (p) {
    case policy::longest_prefix_first: return run(kvlane::order_by<longest_prefix_first>{});
    case policy::lpm_fcfs_128: return run(ranked_scan<lpm_fcfs_128>{});
    case policy::heaviest_subtree_first: return run(heaviest_subtree_first{});
    case policy::hrrn: return run(ranked_scan<hrrn>{{.work = work}});
    case policy::shortest_uncached_first: return run(kvlane::order_by<shortest_uncached_first>{{.work = work}});
    case policy::clairvoyant_sjf: {
      clairvoyant_sjf const order{
          .work = work, .requests = w.requests, .max_tokens = s.max_tokens, .headroom = s.limits.decode_headroom};
      return run(kvlane::order_by<clairvoyant_sjf>{order});
    }
    case policy::seed_order_turn_bound: {
      auto unbounded = s;
      unbounded.limits.max_overtakes = ~0U;
      return run_with(seed_order_turn_bound{s.ordering}, w, unbounded, progress);
    }
    default: throw std::invalid_argument{fmt::format("policy {} is none of the examples", name_of(p))};
  }
}

}  // namespace replay
