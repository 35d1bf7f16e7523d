// The shape of the file. Times are in seconds, shares from 0 to 1. Keys come in this order; equal runs give equal bytes.
//
// {
//   "format": "kvlane-sweep-1",
//   "settings": {
//     "engine": text, "lanes": n, "kv_tokens": n, "block_tokens": n, "headroom": n, "cache_tokens": n, "max_tokens": n,
//     "max_waiting": n, "max_wait_s": x, "max_overtakes": n,          of kvlane's orders; yardsticks differ, see docs/policies.md
//     "clients": "leave" or "retry",
//     "let_in_share": x,                                              of those to be refused early; 0: none
//     "rounds": n,
//     "loads": [x...], "policies": [name...]
//   },
//   "workloads": [ {
//     "title": text, "requests": n,
//     "capacity_per_s": x, "burst_time_s": x,
//     "runs": [ {                                                     by load, then by policy
//       "policy": name, "load": x, "offered_per_s": x,
//       "requests": n,                                                the sum of the six that follow
//       "good": n, "refused_early": n, "timed_out": n, "late": n, "cut_off": n, "impossible": n,
//       "good_per_s": x, "good_share": x, "good_tokens": n,            prompts and replies
//       "refused": {"queue_full": n, "would_time_out": n},            refused_early, by reason
//       "tries": n, "let_in": n, "let_in_good": n,
//       "first_token_s": {"mean": x, "p50": x, "p95": x, "p99": x, "max": x},
//       "hit_share": x, "most_overtaken": n, "preemptions": n,
//       "computed_tokens": n, "wasted_tokens": n, "recomputed_tokens": n,
//       "fairness": x or null,
//       "longest_line": n, "run_time_s": x,
//       "waits": [ {"up_to_s": x or null, "count": n}... ],           in line, of the admitted; each more than the bound before
//       "series": {"interval_s": x,                                   means over intervals from 0 on, at most 400
//                  "time_s": [x...],                                  where they begin
//                  "waiting": [x...], "lanes_busy": [x...], "kv_tokens": [x...]}
//     } ]
//   } ]
// }

#include "report.hpp"
#include "sweep_report.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace replay {

namespace {

using json = nlohmann::ordered_json;

json waits(kvlane::log2_histogram<20> const& h) {
  auto buckets = json::array();
  for (std::size_t i = 0; i != h.counts().size(); ++i) {
    auto const last = i + 1 == h.counts().size();
    buckets.push_back(
        {{"up_to_s", last ? json{} : json(static_cast<double>(h.upper_bound(i)) / 1000)}, {"count", h.counts()[i]}});
  }
  return buckets;
}

json series(sweep_run const& r) {
  auto time = json::array();
  auto waiting = json::array();
  auto lanes = json::array();
  auto tokens = json::array();
  for (std::size_t i = 0; i != r.points.size(); ++i) {
    time.push_back(seconds(r.interval) * static_cast<double>(i));
    waiting.push_back(r.points[i].waiting);
    lanes.push_back(r.points[i].lanes_busy);
    tokens.push_back(r.points[i].kv_tokens);
  }
  return {{"interval_s", seconds(r.interval)},
          {"time_s", std::move(time)},
          {"waiting", std::move(waiting)},
          {"lanes_busy", std::move(lanes)},
          {"kv_tokens", std::move(tokens)}};
}

json json_of(sweep_run const& r, double capacity) {
  auto const& f = r.figures;
  return {{"policy", name_of(r.used)},
          {"load", r.load},
          {"offered_per_s", r.load * capacity},
          {"requests", f.requests},
          {"good", f.good},
          {"refused_early", f.refused_early},
          {"timed_out", f.timed_out},
          {"late", f.late},
          {"cut_off", f.cut_off},
          {"impossible", f.impossible},
          {"good_per_s", f.good_per_second()},
          {"good_share", f.share(f.good)},
          {"good_tokens", f.good_tokens},
          {"refused",
           {{"queue_full", f.run.refused_for(kvlane::errc::queue_full)},
            {"would_time_out", f.run.refused_for(kvlane::errc::would_time_out)}}},
          {"tries", f.tries},
          {"let_in", f.let_in},
          {"let_in_good", f.let_in_good},
          {"first_token_s", json_of(f.first_token)},
          {"hit_share", f.run.hit_share()},
          {"most_overtaken", f.run.most_overtaken},
          {"preemptions", f.run.preempted},
          {"computed_tokens", f.computed_tokens},
          {"wasted_tokens", f.wasted_tokens},
          {"recomputed_tokens", f.run.recomputed_tokens},
          {"fairness", f.fairness ? json(*f.fairness) : json{}},
          {"longest_line", f.run.longest_line},
          {"run_time_s", seconds(f.run.run_time)},
          {"waits", waits(f.wait_ms)},
          {"series", series(r)}};
}

json json_of(sweep_settings const& s) {
  auto const& l = s.simulation.limits;
  auto policies = json::array();
  for (auto const p : s.policies) policies.push_back(name_of(p));
  return {{"engine", s.simulation.engine_title},
          {"lanes", l.lanes},
          {"kv_tokens", l.kv_capacity},
          {"block_tokens", l.block_tokens},
          {"headroom", l.decode_headroom},
          {"cache_tokens", s.simulation.cache_tokens},
          {"max_tokens", s.simulation.max_tokens},
          {"max_waiting", l.places()},
          {"max_wait_s", seconds(l.max_wait)},
          {"max_overtakes", l.max_overtakes},
          {"clients", s.simulation.clients.retry ? "retry" : "leave"},
          {"let_in_share", s.simulation.probes ? s.simulation.probes->share : 0.0},
          {"rounds", s.rounds},
          {"loads", s.loads},
          {"policies", std::move(policies)}};
}

}  // namespace

nlohmann::ordered_json json_of(sweep_settings const& s, std::vector<sweep_outcome> const& all) {
  auto workloads = json::array();
  for (auto const& o : all) {
    auto runs = json::array();
    for (auto const& r : o.runs) runs.push_back(json_of(r, o.capacity()));
    workloads.push_back({{"title", o.title},
                         {"requests", o.requests},
                         {"capacity_per_s", o.capacity()},
                         {"burst_time_s", seconds(o.burst_time)},
                         {"runs", std::move(runs)}});
  }
  return {{"format", "kvlane-sweep-1"}, {"settings", json_of(s)}, {"workloads", std::move(workloads)}};
}

}  // namespace replay
