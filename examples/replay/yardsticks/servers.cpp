#include "yardsticks/servers.hpp"

#include "yardsticks/slora_server.hpp"
#include "yardsticks/vllm_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace replay {

namespace {

std::unique_ptr<server_model> make_slora(simulation_settings const& s) {
  slora_settings own{.costs = s.engine, .kv_tokens = s.limits.kv_capacity, .running = s.limits.lanes};
  // The rule of its command line: a sixth of the pool, but at least a request of the greatest length.
  own.batch_prompt_tokens = std::max(own.batch_prompt_tokens, own.kv_tokens / 6);
  return std::make_unique<slora_server>(own);
}

std::unique_ptr<server_model> make_vllm(workload const& w, simulation_settings const& s) {
  if (w.block_tokens % s.limits.block_tokens != 0)
    throw std::invalid_argument{fmt::format("block-tokens is {}; for vllm it must divide the {} tokens of the prefix "
                                            "blocks of the requests",
                                            s.limits.block_tokens, w.block_tokens)};
  return std::make_unique<vllm_server>(vllm_settings{.costs = s.engine,
                                                     .kv_tokens = s.limits.kv_capacity,
                                                     .block_tokens = s.limits.block_tokens,
                                                     .prefix_block_tokens = w.block_tokens,
                                                     .running = s.limits.lanes});
}

}  // namespace

bool is_server(policy p) noexcept { return p == policy::slora || p == policy::vllm; }

std::unique_ptr<server_model> make_server(policy p, workload const& w, simulation_settings const& s) {
  switch (p) {
    case policy::slora: return make_slora(s);
    case policy::vllm: return make_vllm(w, s);
    default: throw std::invalid_argument{fmt::format("policy {} is an order of kvlane's, no server", name_of(p))};
  }
}

server_outcome simulate_server(workload const& w, policy p, simulation_settings const& s,
                               progress_listener const& progress) {
  validate(s);
  auto const server = make_server(p, w, s);
  // vLLM plans the next step while one runs.
  server_pace const pace{.max_tokens = s.max_tokens, .steps_ahead = p == policy::vllm ? 2U : 1U};
  return server_run{w, *server, pace}.run(progress);
}

}  // namespace replay
