#include "sweep_options.hpp"

#include "machines.hpp"
#include "validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

namespace replay {

namespace {

/// Real prompts, with arrivals drawn at random.
constexpr auto default_trace = "mooncake_synthetic_0000-0340s.jsonl";

void add_inputs(CLI::App& app, sweep_typed& t) {
  auto& how = t.common.result.arrivals;
  app.add_option(
      "TRACE,--trace", t.common.result.traces,
      fmt::format("request streams, each a sweep of its own [{} in $KVLANE_TRACES or ../shared/traces, where "
                  "that is; else --synthetic]",
                  default_trace));
  app.add_flag("--skip-bad", t.common.skips_bad, "leave malformed lines out, and count them, instead of giving up");
  app.add_option("--limit", how.limit, "only the first N requests")->option_text("N");
  app.add_option("--spread", t.common.spread_ms, "delay each arrival by a random time below MS")
      ->option_text("MS [0: as recorded]");
  app.add_option("--seed", how.seed, "seed of everything that is drawn at random")->option_text("N [1]");
}

void add_runs(CLI::App& app, sweep_typed& t) {
  constexpr auto group = "Sweep";
  app.add_option("--loads", t.sweep.loads, "offered loads, as multiples of the capacity, separated by commas")
      ->delimiter(',')
      ->option_text("X,... [0.5,1,1.5,2,3,4]")
      ->group(group);
  app.add_option("--rounds", t.sweep.rounds, "repeat each stream, with other prompts of the same shape")
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--clients", t.clients,
         "what refused clients do: leave, or retry as the openai client does (up to twice, after Retry-After of at "
         "most 60 s, else after 0.5 s and 1 s less up to a quarter)")
      ->check(CLI::IsMember({"leave", "retry"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--let-in", t.let_in_one_of,
                 "let 1 in N of those in who are to be refused early, and see what becomes of them; 0: none")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", t.sweep.threads, "that share the runs; results do not depend on it")
      ->option_text("N [one for each processor]")
      ->group(group);
}

}  // namespace

sweep_typed::sweep_typed() {
  common.result.simulation = settings_of(machines().front());
  common.result.simulation.limits.max_waiting.reset();
  common.max_wait_seconds = 30;
  common.policies = {"fcfs",
                     "cache_aware",
                     "seed_order_turn_bound",
                     "longest_prefix_first",
                     "lpm_fcfs_128",
                     "heaviest_subtree_first",
                     "hrrn",
                     "shortest_uncached_first",
                     "clairvoyant_sjf",
                     "semaphore",
                     "no_admission"};
  sweep.loads = {0.5, 1, 1.5, 2, 3, 4};
  sweep.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
}

CLI::App& add_sweep(CLI::App& app, sweep_typed& t) {
  auto& c =
      *app.add_subcommand("sweep", "compare policies under rising load: how many requests are served well, and what "
                                   "becomes of the others");
  add_inputs(c, t);
  add_runs(c, t);
  add_synthetic_options(c, t.common);
  add_queue_options(c, t.common);
  add_engine_options(c, t.common);
  c.get_option("--policy")->option_text("NAME,... [all but seed_order, cache_aware_scan and the servers]");
  c.get_option("--max-wait")->option_text("S [30]");
  c.get_option("--max-waiting")->option_text("N [8 for each lane, from 16 to 256]");
  constexpr auto group = "Output";
  c.add_option("--json", t.common.json_file, "write all figures, curves and histograms to FILE, too")
      ->option_text("FILE")
      ->group(group);
  c.add_option("--report", t.report_file,
               "write a page of charts to FILE, to be opened in a browser; it needs no network")
      ->option_text("FILE")
      ->group(group);
  c.add_flag("--timing", t.timing, "tell how many decisions were made in a second of real time")->group(group);
  return c;
}

sweep_command to_sweep(sweep_typed t) {
  if (t.common.result.traces.empty() && !t.common.wants_synthetic) {
    auto const usual = traces_folder(std::nullopt) / default_trace;
    if (std::filesystem::exists(usual))
      t.common.result.traces.push_back(usual.string());
    else
      t.common.wants_synthetic = true;
  }
  sweep_command c{.what = to_command(std::move(t.common)), .how = std::move(t.sweep), .timing = t.timing};
  auto& s = c.what.simulation;
  s.clients = {.retry = t.clients == "retry", .seed = c.what.arrivals.seed};
  if (t.let_in_one_of != 0)
    s.probes = refusal_probes{
        .share = 1.0 / t.let_in_one_of, .seed = c.what.arrivals.seed, .of_full_lines = true, .leave = true};
  c.how.simulation = s;
  c.how.policies = c.what.policies;
  if (!t.report_file.empty()) c.report_file = std::move(t.report_file);
  return c;
}

}  // namespace replay
