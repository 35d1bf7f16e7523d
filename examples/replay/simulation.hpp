#pragma once

#include "clients.hpp"
#include "engine_model/step_costs.hpp"
#include "fates.hpp"
#include "load_curve.hpp"
#include "statistics.hpp"
#include "workload.hpp"

#include <kvlane/ordering_options.hpp>
#include <kvlane/request.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace replay {

/// What can be compared: orders of kvlane's line, its own and those in policies/; the same engine with simpler admission; and
/// servers that decide without kvlane.
enum class policy : std::uint8_t {
  fcfs,
  seed_order,
  cache_aware,
  cache_aware_scan,
  longest_prefix_first,
  lpm_fcfs_128,
  heaviest_subtree_first,
  hrrn,
  shortest_uncached_first,
  seed_order_turn_bound,
  clairvoyant_sjf,
  semaphore,
  no_admission,
  slora,
  vllm
};

[[nodiscard]] std::span<policy const> all_policies() noexcept;
[[nodiscard]] std::string_view name_of(policy p) noexcept;
[[nodiscard]] std::optional<policy> policy_named(std::string_view name) noexcept;

/// When the scores of waiters follow the prefix cache.
enum class score_updates : std::uint8_t {
  with_cache,  ///< whenever it has changed
  never,       ///< a waiter keeps the score it came with
};

/// What the queue is told of the requests that run, to predict waits from.
enum class engine_reports : std::uint8_t {
  progress_and_ends,  ///< the tokens of each reply after each step, and what completed requests took
  reply_lengths,      ///< the same, and at arrival how long the reply WILL be; demands stay what they are without that
  nothing,
};

/// Requests that are let in although the queue predicts that they would wait too long: what becomes of them tells how many
/// refusals are wrong.
struct refusal_probes {
  double share = 1.0 / 20;  ///< of those that would be refused, drawn at random
  std::uint64_t seed = 1;
  bool of_full_lines = false;  ///< those refused because the line is full, too
  bool leave = false;          ///< when their max_wait is over; otherwise there is no limit to their wait
};

/// Everything about a run but the requests and the policy.
struct simulation_settings {
  kvlane::limits limits = {};
  engine_model::engine_constants engine = engine_model::large_engine;
  std::string engine_title = {};  ///< what reports call it; it says what is assumed or fitted
  std::uint64_t cache_tokens = 1'000'000;
  std::uint32_t max_tokens = 2048;  ///< ceiling of every reply, and what the queue is told; at least 1
  /// What saved_cost counts for a token that is in the prefix cache. An aged turn counts 4096 by default; with 32, as many
  /// as a model of 7 or 8 billion parameters has layers, a cached block of 512 tokens is worth a band of four turns.
  std::uint64_t cost_per_token = 32;
  kvlane::ordering_options ordering = {};
  score_updates scores = score_updates::with_cache;
  engine_reports reports = engine_reports::progress_and_ends;
  std::optional<refusal_probes> probes = {};  ///< absent: who is refused is refused
  client_settings clients = {};
};

/// \throws std::invalid_argument for settings that make no sense, naming them
void validate(simulation_settings const& s);

/// Told how many requests have ended so far.
using progress_listener = std::function<void(std::uint64_t ended)>;

/// Replays the requests in virtual time against one kvlane::admission_core, which decides all admissions, and an engine
/// that runs what was admitted. Nothing depends on real time but run_result::core, which tells it: equal arguments give
/// equal results.
///
/// The engine works in iterations. An iteration takes the requests that have been admitted but not prefilled, prefills
/// them one after another in the order of admission, then makes one decode step for all requests that have their first
/// token. What is admitted meanwhile is for the next iteration. A prefill yields the first token of a reply (or the next
/// one, for preempted work), a decode step one token for each request of the batch. With no request there is no iteration;
/// the next admission starts one at once.
///
/// A request holds KV tokens for its whole prompt, cached or not, and for its reply. A reply of n tokens needs
/// prompt + n - 1: the last token is never read. Before each decode step a lease that is too small grows to what the step
/// needs, the earliest prefilled first. Where no tokens are free, the latest prefilled request of the batch is preempted
/// (as vLLM does), which may be the one that grows: it loses its KV and is readmitted with a demand for the prompt, what it
/// has generated, and the headroom; all of that but what the prefix cache holds is computed again. If that could never fit,
/// it ends: cut off.
///
/// The prefix cache lies beside the KV tokens and pins nothing (see prefix_cache). The blocks of a prompt are in it once its
/// prefill has ended; replies are not cached. A hit counts when the prefill starts; at least one token is always computed.
/// Waiters are scored at arrival and, with score_updates::with_cache, after each prefill that has changed
/// the cache.
///
/// At one moment the order is: waits that end; the end of the engine's step, with releases in batch order, then growth
/// and preemption, then scores, then one decision of the core; arrivals in order of the trace; the start of the next step.
///
/// The queue is told the progress of each reply after each step, and learns from completed requests. Their prefill time is
/// that from admission to first token, other requests' prefills included, their decode time that from first to last token.
///
/// A client that is refused and comes back (see client_crowd) is the same request: its wait for the first token counts from
/// its first try, its wait in line from its last.
///
/// With policy::semaphore and policy::no_admission the same engine has the simpler admission of yardsticks/plain_admission.
///
/// With policy::slora and policy::vllm there is no core and no such engine; see slora_server, vllm_server and server_run.
/// Of the settings they take lanes, KV tokens, engine constants and the ceiling of replies.
///
/// \throws std::invalid_argument as validate
[[nodiscard]] run_result simulate(workload const& w, policy p, simulation_settings const& settings,
                                  progress_listener const& progress = {});

/// A run in detail.
struct run_details {
  run_result result;
  std::vector<request_fate> fates;  ///< of each request of the workload
  load_curve curve;
};

/// As simulate. \throws std::invalid_argument for policy::slora and policy::vllm, too
[[nodiscard]] run_details simulate_in_detail(workload const& w, policy p, simulation_settings const& settings,
                                             progress_listener const& progress = {});

}  // namespace replay
