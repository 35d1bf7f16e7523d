#include "report.hpp"

#include <string_view>

namespace replay {

namespace {

using json = nlohmann::ordered_json;

json refusals(run_result const& r) {
  return {{"invalid_request", r.refused_for(kvlane::errc::invalid_request)},
          {"never_fits", r.refused_for(kvlane::errc::never_fits)},
          {"would_wait", r.refused_for(kvlane::errc::would_wait)},
          {"queue_full", r.refused_for(kvlane::errc::queue_full)},
          {"would_time_out", r.refused_for(kvlane::errc::would_time_out)},
          {"timed_out", r.refused_for(kvlane::errc::timed_out)}};
}

json json_of(comparison::column const& c) {
  auto const& r = c.result;
  return {{"policy", name_of(c.used)},
          {"requests", r.requests},
          {"admitted", r.admitted},
          {"completed", r.completed},
          {"refused", refusals(r)},
          {"cut_off", r.cut_off},
          {"preemptions", r.preempted},
          {"longest_line", r.longest_line},
          {"most_times_overtaken", r.most_overtaken},
          {"wait_s", json_of(r.wait)},
          {"first_token_s", json_of(r.first_token)},
          {"output_tokens_per_s", r.output_per_second()},
          {"prompt_and_output_tokens_per_s", r.tokens_per_second()},
          {"prompt_tokens", r.prompt_tokens},
          {"hit_tokens", r.hit_tokens},
          {"hit_share", r.hit_share()},
          {"recomputed_tokens", r.recomputed_tokens},
          {"output_tokens", r.output_tokens},
          {"lanes_used_share", r.lanes_used},
          {"kv_tokens_reserved_share", r.kv_used},
          {"run_time_s", seconds(r.run_time)}};
}

json json_of(simulation_settings const& s) {
  auto const& l = s.limits;
  return {{"lanes", l.lanes},
          {"kv_tokens", l.kv_capacity},
          {"block_tokens", l.block_tokens},
          {"headroom", l.decode_headroom},
          {"growth_reserve", l.growth_reserve},
          {"max_waiting", l.places()},
          {"max_overtakes", l.max_overtakes},
          {"max_wait_s", l.max_wait == kvlane::forever ? json{} : json(seconds(l.max_wait))},
          {"cache_tokens", s.cache_tokens},
          {"cost_per_token", s.cost_per_token},
          {"aging_per_turn", s.ordering.aging_cost_per_turn},
          {"scores_follow_cache", s.scores == score_updates::with_cache},
          {"max_tokens", s.max_tokens},
          {"engine", s.engine_title},
          {"decode_base_ms", s.engine.decode_base_ms},
          {"decode_per_request_ms", s.engine.decode_per_request_ms},
          {"decode_per_kv_token_us", s.engine.decode_per_kv_token_us},
          {"prefill_base_ms", s.engine.prefill_base_ms},
          {"prefill_per_token_us", s.engine.prefill_per_token_us}};
}

}  // namespace

nlohmann::ordered_json json_of(time_summary const& t) {
  return {{"mean", seconds(t.mean)},
          {"p50", seconds(t.p50)},
          {"p95", seconds(t.p95)},
          {"p99", seconds(t.p99)},
          {"max", seconds(t.max)}};
}

nlohmann::ordered_json json_of(simulation_settings const& s, std::vector<comparison> const& all) {
  auto workloads = json::array();
  for (auto const& c : all) {
    auto policies = json::array();
    for (auto const& column : c.columns) policies.push_back(json_of(column));
    json entry = {{"title", c.title}};
    if (c.skipped_lines) entry["skipped_lines"] = *c.skipped_lines;
    entry["policies"] = std::move(policies);
    workloads.push_back(std::move(entry));
  }
  return {{"settings", json_of(s)}, {"workloads", std::move(workloads)}};
}

}  // namespace replay
