#include "command_line.hpp"

#include "machines.hpp"
#include "sweep_options.hpp"
#include "typed_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

namespace replay {

namespace {

constexpr auto description = "Replays request streams in virtual time against kvlane's admission core and a simple "
                             "model of a batching engine, once for "
                             "each ordering policy, and prints what became of the requests.";

constexpr auto footer =
    "TRACE is a Mooncake trace (JSON lines), an Azure LLM inference trace, a measured S-LoRA or vLLM "
    "run, or requests sampled from ServeGen's statistics (CSV); the content "
    "tells which. Each one gets a table of "
    "its own. Equal input and equal seed give equal output, byte for byte.";

void add_input_options(CLI::App& app, typed& t) {
  auto& how = t.result.arrivals;
  app.add_option("TRACE", t.result.traces, "request streams to replay");
  app.add_flag("--skip-bad", t.skips_bad, "leave malformed lines out, and count them, instead of giving up");
  app.add_option("--limit", how.limit, "only the first N requests")->option_text("N");
  app.add_option("--speed", how.speed, "let requests arrive X times as fast")->option_text("X [1]");
  app.add_option("--spread", t.spread_ms,
                 "delay each arrival by a random time below MS; Mooncake arrivals are recorded in buckets of about "
                 "3000 ms, so waits "
                 "below that mean little without it")
      ->option_text("MS [0: as recorded]");
  app.add_option("--seed", how.seed, "seed of the jitter and of synthetic requests")->option_text("N [1]");
}

}  // namespace

void add_synthetic_options(CLI::App& app, typed& t) {
  auto& s = t.synthetic;
  constexpr auto group = "Synthetic requests";
  auto const add = [&](char const* name, auto& value, char const* text) {
    app.add_option(name, value, text)->capture_default_str()->group(group)->needs("--synthetic");
  };
  app.add_flag("--synthetic", t.wants_synthetic,
               "replay made-up chats: families of them share a system prompt, prompts grow by turns")
      ->group(group);
  add("--chats", s.chats, "chats in all");
  add("--families", s.families, "different system prompts");
  add("--turns", s.turns, "mean number of turns of a chat");
  add("--system-tokens", s.system_tokens, "mean length of a system prompt");
  add("--user-tokens", s.user_tokens, "mean number of new prompt tokens in a turn");
  add("--reply-tokens", s.reply_tokens, "mean length of a reply");
  add("--chats-per-second", s.chats_per_second, "new chats per second outside bursts");
  add("--burst", s.burst, "so many times as many new chats in the first 15 s of each minute");
  add("--think-seconds", s.think_seconds, "mean pause between turns of a chat, 5 s for the reply not counted");
}

void add_queue_options(CLI::App& app, typed& t) {
  auto& s = t.result.simulation;
  auto& l = s.limits;
  constexpr auto group = "Queue";
  auto const add = [&](char const* name, auto& value, char const* text) {
    app.add_option(name, value, text)->capture_default_str()->group(group);
  };
  app.add_option(
         "--policy", t.policies,
         "what to compare, separated by commas: kvlane's orders fcfs, seed_order, cache_aware, cache_aware_scan (by "
         "sorting the line each time); orders made with kvlane: longest_prefix_first, lpm_fcfs_128, "
         "heaviest_subtree_first, hrrn, shortest_uncached_first, seed_order_turn_bound, clairvoyant_sjf; the same "
         "engine "
         "behind a semaphore, or with no_admission; and servers that decide without kvlane: slora, vllm")
      ->delimiter(',')
      ->option_text("NAME,... [fcfs,seed_order,cache_aware]")
      ->group(group);
  app.add_option("--lanes", t.lanes, "requests that run at once")
      ->option_text("N [large 32, a10g 1000, rtx4090 256]")
      ->group(group);
  app.add_option("--kv-tokens", t.kv_tokens, "KV tokens for running requests")
      ->option_text("N [1000000, 10000, 41408]")
      ->group(group);
  add("--block-tokens", l.block_tokens, "KV tokens come in blocks of so many");
  add("--headroom", l.decode_headroom, "tokens of a reply that are reserved at admission");
  add("--growth-reserve", l.growth_reserve, "KV tokens that admissions leave to replies that grow");
  add("--max-tokens", s.max_tokens, "ceiling of every reply; longer recorded ones end there");
  app.add_option("--max-wait", t.max_wait_seconds, "how long a request may wait, in seconds")
      ->option_text("S [for ever]")
      ->group(group);
  app.add_option("--max-waiting", l.max_waiting, "places in line")->option_text("N [no limit]")->group(group);
  add("--max-overtakes", l.max_overtakes, "how often a request may be overtaken");
  add("--cost-per-token", s.cost_per_token, "what a cached prompt token counts in the order");
  app.add_flag("--keep-scores", t.keeps_scores, "do not score waiters again when the prefix cache changes")
      ->group(group);
  add("--aging", s.ordering.aging_cost_per_turn, "what a turn of waiting counts in the order");
}

void add_engine_options(CLI::App& app, typed& t) {
  constexpr auto group = "Engine";
  auto const add = [&](char const* name, std::optional<double>& value, char const* text) {
    app.add_option(name, value, text)->group(group);
  };
  app.add_option("--cache-tokens", t.cache_tokens, "size of a prefix cache beside the KV tokens")
      ->option_text("N [large 1000000, a10g 0, rtx4090 0]")
      ->group(group);
  app.add_option(
         "--engine", t.engine,
         "machine to start from: large (ASSUMED: about a 70B model on eight H100), slora-llama2-7b-a10g or a10g, "
         "vllm-0.19-llama31-8b-rtx4090 or rtx4090 (both calibrated on measured runs, see docs/calibration.md)")
      ->capture_default_str()
      ->group(group);
  add("--decode-base-ms", t.decode_base, "of a decode step [large 12, a10g 26.08, rtx4090 18.31]");
  add("--decode-per-request-ms", t.decode_request, "for each request in the batch [0.1, 0.104, 0]");
  add("--decode-per-kv-token-us", t.decode_kv, "for each KV token in use [0.02, 1.538, 0.16]");
  add("--prefill-base-ms", t.prefill_base, "of a prefill [5, 26.08, 18.31]");
  add("--prefill-per-token-us", t.prefill_token, "for each prompt token that is not cached [27.78, 215.8, 103.9]");
}

namespace {

void add_output_options(CLI::App& app, typed& t) {
  constexpr auto group = "Output";
  app.add_option("--json", t.json_file, "write all numbers to FILE, too")->option_text("FILE")->group(group);
  auto* const quiet = app.add_flag("--quiet", t.quiet, "no progress")->group(group);
  app.add_flag("--progress", t.progress, "progress and run times on stderr even where no terminal is")
      ->group(group)
      ->excludes(quiet);
}

kvlane::duration from_seconds(double seconds) {
  constexpr auto most = std::chrono::duration<double>{kvlane::forever}.count();
  if (std::isnan(seconds)) throw usage_error{"--max-wait is not a number; give seconds"};
  if (seconds >= most) return kvlane::forever;
  return kvlane::duration{std::llround(std::max(seconds, -most / 2) * 1e9)};
}

std::vector<policy> policies_named(std::vector<std::string> const& names) {
  std::vector<policy> policies;
  for (auto const& name : names) {
    auto const p = policy_named(name);
    if (!p)
      throw usage_error{fmt::format("--policy: there is no policy '{}'; choose from {}", name,
                                    fmt::join(all_policies() | std::views::transform(name_of), ", "))};
    if (std::ranges::find(policies, *p) == policies.end()) policies.push_back(*p);
  }
  return policies;
}

/// The settings that were typed, and those of the machine where nothing was.
void apply_machine(typed const& t, simulation_settings& s) {
  auto const* const m = machine_named(t.engine);
  if (m == nullptr)
    throw usage_error{fmt::format("--engine: there is no engine '{}'; choose from {}, and change its constants",
                                  t.engine, fmt::join(machines() | std::views::transform(&machine::name), ", "))};
  auto& e = s.engine;
  e = m->engine;
  e.decode_base_ms = t.decode_base.value_or(e.decode_base_ms);
  e.decode_per_request_ms = t.decode_request.value_or(e.decode_per_request_ms);
  e.decode_per_kv_token_us = t.decode_kv.value_or(e.decode_per_kv_token_us);
  e.prefill_base_ms = t.prefill_base.value_or(e.prefill_base_ms);
  e.prefill_per_token_us = t.prefill_token.value_or(e.prefill_per_token_us);
  s.engine_title = title_of(*m);
  if (e != m->engine) s.engine_title += "; changed by options";
  s.limits.lanes = t.lanes.value_or(m->lanes);
  s.limits.kv_capacity = t.kv_tokens.value_or(m->kv_tokens);
  s.cache_tokens = t.cache_tokens.value_or(m->cache_tokens);
}

void check_arrivals(typed const& t) {
  auto const& how = t.result.arrivals;
  if (!(how.speed > 0 && std::isfinite(how.speed)))
    throw usage_error{fmt::format("--speed is {}; a number above 0 is needed", how.speed)};
  if (!(t.spread_ms >= 0 && t.spread_ms <= 1e9))
    throw usage_error{fmt::format("--spread is {}; milliseconds from 0 to 1000000000 are needed", t.spread_ms)};
  if (how.limit == 0) throw usage_error{"--limit is 0; at least 1 request is needed"};
  if (t.result.traces.empty() && !t.wants_synthetic)
    throw usage_error{"nothing to replay: give a TRACE file, or --synthetic for made-up requests"};
}

}  // namespace

command to_command(typed t) {
  check_arrivals(t);
  auto c = std::move(t.result);
  c.arrivals.spread = nanoseconds{std::llround(t.spread_ms * 1e6)};
  apply_machine(t, c.simulation);
  if (t.max_wait_seconds) c.simulation.limits.max_wait = from_seconds(*t.max_wait_seconds);
  if (t.keeps_scores) c.simulation.scores = score_updates::never;
  c.policies = policies_named(t.policies);
  if (t.wants_synthetic) {
    t.synthetic.seed = c.arrivals.seed;
    c.synthetic = t.synthetic;
  }
  c.bad = t.skips_bad ? bad_lines::skip : bad_lines::refuse;
  if (!t.json_file.empty()) c.json_file = t.json_file;
  if (t.quiet) c.progress = progress_wish::never;
  if (t.progress) c.progress = progress_wish::always;
  return c;
}

namespace {

/// One of the other commands, which need the measurements. Its name is only a command where it comes first; a trace of that
/// name is ./NAME.
CLI::App& add_command(CLI::App& app, typed& t, char const* name, char const* text) {
  auto& c = *app.add_subcommand(name, text);
  c.add_option("--traces", t.traces_folder, "folder with the measurements [$KVLANE_TRACES, or ../shared/traces]")
      ->option_text("DIR");
  c.add_option("--json", t.json_file, "write all figures to FILE, too")->option_text("FILE");
  return c;
}

template <class Command>
Command to(typed const& t) {
  Command c;
  if (!t.traces_folder.empty()) c.traces_folder = t.traces_folder;
  if (!t.json_file.empty()) c.json_file = t.json_file;
  return c;
}

}  // namespace

std::string typed_line(int argc, char const* const* argv) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  std::string line = "kvlane-replay";
  for (auto const word : std::span{argv, static_cast<std::size_t>(argc)}.subspan(1)) {
    std::string_view const text{word};
    line += ' ';
    if (!text.empty() && text.find_first_not_of(plain) == text.npos) {
      line += text;
      continue;
    }
    line += '\'';
    for (auto const c : text) line += c == '\'' ? std::string{"'\\''"} : std::string{c};
    line += '\'';
  }
  return line;
}

parsed_command parse_command_line(int argc, char const* const* argv) {
  CLI::App app{description, "kvlane-replay"};
  app.footer(footer);
  app.get_formatter()->column_width(34);
  typed t;
  t.result.simulation = settings_of(machines().front());
  add_input_options(app, t);
  add_synthetic_options(app, t);
  add_queue_options(app, t);
  add_engine_options(app, t);
  add_output_options(app, t);
  auto const& validate =
      add_command(app, t, "validate",
                  "print what two real servers measured beside what the simulation of them gives; exit status 0: all "
                  "figures are within 10 %, 1: some are not, 2: the measurements are not there");
  auto const& predict =
      add_command(app, t, "predict",
                  "print how well waits are predicted, on a measured run and in simulated overload; exit status 2: the "
                  "measurements are not there");
  sweep_typed for_sweep;
  auto const& sweep = add_sweep(app, for_sweep);
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const&) {
    return help_text{app.help()};
  } catch (CLI::ParseError const& error) {
    throw usage_error{error.what()};
  }
  if (validate.parsed()) return to<validate_command>(t);
  if (sweep.parsed()) return to_sweep(std::move(for_sweep));
  if (predict.parsed()) return to<predict_command>(t);
  return to_command(std::move(t));
}

}  // namespace replay
