#pragma once

#include "clients.hpp"
#include "core_meter.hpp"
#include "engine_model/prefix_cache.hpp"
#include "fates.hpp"
#include "random_numbers.hpp"
#include "recorder.hpp"
#include "simulation.hpp"

#include <kvlane/admission_core.hpp>
#include <kvlane/affinity.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

namespace replay {

/// One run: the requests of a workload against one core and one engine. See simulate for the model.
template <class Policy>
class replay_run {
 public:
  replay_run(workload const& w, simulation_settings const& s, Policy policy)
      : settings_{s},
        core_{limits_told(s), std::move(policy)},
        cache_{{.capacity_tokens = s.cache_tokens, .block_tokens = w.block_tokens}},
        jobs_(w.requests.size()),
        fates_(w.requests.size()),
        clients_{s.clients},
        record_{w.requests.size()},
        chance_{s.probes.value_or(refusal_probes{}).seed} {
    for (std::size_t i = 0; i != jobs_.size(); ++i) {
      auto& j = jobs_[i];
      j.origin = &w.requests[i];
      j.reply = std::min(j.origin->reply_tokens, s.max_tokens);
      j.place.copy_prompt({.blocks = j.origin->blocks});
    }
  }

  /// Runs until every request has ended. To be called once.
  run_result run(progress_listener const& progress);

  /// After the run: what became of each request, and how busy the engine was.
  [[nodiscard]] std::vector<request_fate> const& fates() const noexcept { return fates_; }
  [[nodiscard]] load_curve const& curve() const noexcept { return record_.curve(); }

  /// The queue as it is now: for tests, after the run.
  [[nodiscard]] kvlane::queue_snapshot snapshot() const noexcept { return core_.snapshot(); }

 private:
  using core_type = kvlane::admission_core<Policy>;
  enum class step : std::uint8_t { none, prefill, decode };

  struct job {
    typename core_type::waiter place;
    trace_request const* origin = nullptr;
    std::uint32_t reply = 0;      // tokens that it will generate
    std::uint32_t generated = 0;  // so far
    kvlane::grant held;
    kvlane::time_point admitted_at;
    kvlane::time_point token_at;         // when the first token since the last admission came
    kvlane::time_point leaves_at;        // the line, if it was let in instead of being refused
    std::uint32_t generated_before = 0;  // its last admission
    bool has_run = false;
    kvlane::fractional_ms predicted{};  // at its arrival, of one that was let in
    std::size_t line_slot = 0;
    std::size_t cached_blocks = 0;   // as last looked up
    kvlane::service_sample service;  // over all its admissions

    [[nodiscard]] std::uint64_t kv_needed() const noexcept { return std::uint64_t{origin->prompt_tokens} + generated; }
  };

  // -- the queue's side
  void take_arrivals();
  void arrive(job& j);
  kvlane::verdict judge(kvlane::request const& r, job& j);
  [[nodiscard]] bool is_probed(kvlane::verdict const& v);
  kvlane::verdict let_in(kvlane::request r, job& j);
  void send_away_let_in();
  void refuse(job& j, kvlane::rejection const& no);
  void time_out(job& j);
  void enter_line(job& j);
  void leave_line(job& j) noexcept;
  void take_outcomes();
  void start_serving(job& j, kvlane::grant const& g);
  void finish(job& j);
  void preempt(job& j);
  void stop_decoding(job& j) noexcept;
  void rescore_line();
  void close_event();
  [[nodiscard]] kvlane::request request_of(job const& j) const noexcept;
  [[nodiscard]] bool learns() const noexcept { return settings_.reports != engine_reports::nothing; }
  [[nodiscard]] static kvlane::limits limits_told(simulation_settings const& s) {
    auto l = s.limits;
    // Where lengths are known, all of a reply is expected and not only what is reserved.
    if (s.reports == engine_reports::reply_lengths) l.decode_headroom = std::numeric_limits<std::uint32_t>::max();
    return l;
  }
  [[nodiscard]] std::uint64_t score(job& j) const noexcept;

  // -- the engine's side
  void start_step();
  void start_prefill();
  void start_decode();
  void end_step();
  void emit_tokens(std::size_t first);
  void make_room_for_next_token(std::size_t i);
  [[nodiscard]] std::uint64_t cached_tokens(job const& j) const noexcept;

  // -- time
  [[nodiscard]] std::optional<kvlane::time_point> next_moment() const noexcept;
  [[nodiscard]] request_fate& fate_of(job const& j) noexcept {
    return fates_[static_cast<std::size_t>(&j - jobs_.data())];
  }
  [[nodiscard]] kvlane::time_point arrival_of(job const& j) const noexcept {
    return kvlane::time_point{j.origin->arrival};
  }

  simulation_settings settings_;
  core_type core_;
  engine_model::prefix_cache cache_;
  std::vector<job> jobs_;
  std::vector<request_fate> fates_;  // of each job
  client_crowd clients_;
  std::deque<job*> let_in_;  // instead of being refused, in order of arrival
  recorder record_;
  random_numbers chance_;

  kvlane::time_point now_{};
  std::size_t arrived_ = 0;
  typename core_type::outcomes ended_;
  bool undecided_ = false;       // something has happened since the last decision that may let somebody run
  std::vector<job*> line_;       // all who wait, in no order
  std::uint64_t scored_at_ = 0;  // the state of the cache that the scores are of
  // Those whose scores have changed, and to what.
  std::vector<std::pair<job*, std::uint64_t>> changed_;

  step step_ = step::none;
  kvlane::time_point step_end_{};
  std::deque<job*> admitted_;      // not yet prefilled, in order of admission
  std::size_t prefills_left_ = 0;  // of this iteration
  bool decode_left_ = false;       // of this iteration
  std::vector<job*> batch_;        // have their first token, in order of prefill
};

template <class Policy>
run_result replay_run<Policy>::run(progress_listener const& progress) {
  while (auto const next = next_moment()) {
    record_.pass(*next - now_, core_.snapshot());
    now_ = *next;
    if (now_.time_since_epoch() > std::chrono::years{100})
      throw std::invalid_argument{
          "the run takes more than 100 years of virtual time; the engine constants are too large"};
    {
      stopwatch const runs{record_.core()};
      core_.advance(now_, ended_);
    }
    send_away_let_in();
    close_event();
    if (step_ != step::none && step_end_ <= now_) end_step();
    take_arrivals();
    start_step();
    if (progress) progress(record_.ended());
  }
  if (record_.ended() != jobs_.size() || !core_.idle() || core_.snapshot().kv_tokens_used != 0)
    throw std::logic_error{
        "the run has ended, but not every request has, or not all of its lanes and tokens have come back"};
  return std::move(record_).result();
}

template <class Policy>
std::optional<kvlane::time_point> replay_run<Policy>::next_moment() const noexcept {
  auto next = core_.next_deadline();
  auto const consider = [&](kvlane::time_point t) { next = std::min(next.value_or(t), t); };
  if (step_ != step::none) consider(step_end_);
  if (arrived_ != jobs_.size()) consider(arrival_of(jobs_[arrived_]));
  if (auto const back = clients_.next()) consider(kvlane::time_point{*back});
  if (!let_in_.empty()) consider(let_in_.front()->leaves_at);
  return next;
}

}  // namespace replay

#include "replay_engine.hpp"
#include "replay_queue.hpp"
