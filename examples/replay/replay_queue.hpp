#pragma once

// The side of replay_run that talks to the core: arrivals, outcomes, releases. Included by its header alone.

#include "replay_run.hpp"

namespace replay {

/// The request as the core is told it, without its score. What it has generated so far is part of the prompt.
template <class Policy>
kvlane::request replay_run<Policy>::request_of(job const& j) const noexcept {
  kvlane::request r{.prefix_blocks = j.origin->blocks,
                    .prompt_tokens = j.kv_needed(),
                    .max_tokens = settings_.max_tokens - j.generated,
                    .tag = static_cast<std::uint64_t>(&j - jobs_.data())};
  if (settings_.reports == engine_reports::reply_lengths) {
    r.kv_demand = demand_of(r, settings_.limits);
    r.max_tokens = j.reply - j.generated;
  }
  return r;
}

/// What the prefix cache would save for a request now.
template <class Policy>
std::uint64_t replay_run<Policy>::score(job& j) const noexcept {
  j.cached_blocks = cache_.leading_run(j.origin->blocks, j.cached_blocks);
  kvlane::stage_affinity const only_stage{.matched_tokens = cached_tokens(j),
                                          .cost_per_token = settings_.cost_per_token};
  return kvlane::saved_cost({&only_stage, 1});
}

/// First those who come for the first time, then those who come back.
template <class Policy>
void replay_run<Policy>::take_arrivals() {
  while (arrived_ != jobs_.size() && arrival_of(jobs_[arrived_]) <= now_) arrive(jobs_[arrived_++]);
  while (auto const who = clients_.take(now_.time_since_epoch())) arrive(jobs_[*who]);
}

template <class Policy>
void replay_run<Policy>::arrive(job& j) {
  auto& fate = fate_of(j);
  fate.arrived = now_.time_since_epoch();
  ++fate.tries;
  {
    stopwatch const runs{record_.core()};
    core_.advance(now_, ended_);
    core_.dispatch(ended_);
  }
  take_outcomes();
  auto r = request_of(j);
  r.saved_cost = score(j);
  auto verdict = judge(r, j);
  if (is_probed(verdict)) {
    j.predicted = core_.predicted_wait(r.priority).value_or(kvlane::fractional_ms{});
    verdict = let_in(r, j);
  }
  if (auto const* const g = std::get_if<kvlane::grant>(&verdict)) start_serving(j, *g);
  if (auto const* const no = std::get_if<kvlane::rejection>(&verdict)) refuse(j, *no);
  if (std::holds_alternative<kvlane::joined>(verdict)) enter_line(j);
}

/// Puts a request that was refused for the line's sake into the line. No prediction applies to a wait without an end; where
/// it is to end all the same, that is seen to here.
template <class Policy>
kvlane::verdict replay_run<Policy>::let_in(kvlane::request r, job& j) {
  auto const usual = core_.current_limits();
  auto open = usual;
  open.max_waiting = ~0U;
  open.max_waiting_tokens = ~std::uint64_t{0};
  r.max_wait = kvlane::forever;
  core_.update(open, ended_);
  auto const verdict = judge(r, j);
  core_.update(usual, ended_);
  fate_of(j).let_in = true;
  if (settings_.probes->leave && usual.max_wait != kvlane::forever) {
    j.leaves_at = now_ + usual.max_wait;
    let_in_.push_back(&j);
  }
  return verdict;
}

template <class Policy>
void replay_run<Policy>::send_away_let_in() {
  for (; !let_in_.empty() && let_in_.front()->leaves_at <= now_; let_in_.pop_front()) {
    auto& j = *let_in_.front();
    if (j.has_run) continue;
    core_.cancel(j.place);
    undecided_ = true;
    leave_line(j);
    // It was as good as refused: nobody comes back for it.
    time_out(j);
  }
}

/// Its client comes back, or gives up.
template <class Policy>
void replay_run<Policy>::refuse(job& j, kvlane::rejection const& no) {
  auto& fate = fate_of(j);
  std::optional<nanoseconds> retry_after;
  if (auto const after = no.retry_after(); after && learns()) retry_after = *after;
  if (auto const after = clients_.back_after(fate.tries, no.code(), retry_after)) {
    clients_.comes_back(now_.time_since_epoch() + *after, static_cast<std::size_t>(&j - jobs_.data()));
    return;
  }
  if (no.code() == kvlane::errc::timed_out) return time_out(j);
  fate.end = ending::refused;
  fate.why = no.code();
  record_.refused(no.code());
}

template <class Policy>
void replay_run<Policy>::time_out(job& j) {
  fate_of(j).end = ending::timed_out;
  fate_of(j).why = kvlane::errc::timed_out;
  record_.refused(kvlane::errc::timed_out);
}

template <class Policy>
kvlane::verdict replay_run<Policy>::judge(kvlane::request const& r, job& j) {
  ++record_.core().decisions;
  stopwatch const runs{record_.core()};
  return core_.judge(r, kvlane::patience::waits, &j.place);
}

/// Whether that is a refusal for the line's sake, and chance wants to know whether it is right.
template <class Policy>
bool replay_run<Policy>::is_probed(kvlane::verdict const& v) {
  auto const* const no = std::get_if<kvlane::rejection>(&v);
  if (!settings_.probes || no == nullptr) return false;
  auto const is_guess = no->code() == kvlane::errc::would_time_out ||
                        (settings_.probes->of_full_lines && no->code() == kvlane::errc::queue_full);
  return is_guess && chance_.unit() < settings_.probes->share;
}

template <class Policy>
void replay_run<Policy>::enter_line(job& j) {
  j.line_slot = line_.size();
  line_.push_back(&j);
}

template <class Policy>
void replay_run<Policy>::leave_line(job& j) noexcept {
  auto* const last = line_.back();
  line_[j.line_slot] = last;
  last->line_slot = j.line_slot;
  line_.pop_back();
}

/// Ends an event: whoever may run is admitted.
template <class Policy>
void replay_run<Policy>::close_event() {
  if (undecided_ || !ended_.empty()) {
    stopwatch const runs{record_.core()};
    core_.dispatch(ended_);
  }
  undecided_ = false;
  take_outcomes();
}

template <class Policy>
void replay_run<Policy>::take_outcomes() {
  while (auto* const w = ended_.pop_front()) {
    auto& j = jobs_[w->tag()];
    leave_line(j);
    ++record_.core().decisions;
    if (auto const* const g = w->granted())
      start_serving(j, *g);
    else
      refuse(j, std::get<kvlane::rejection>(w->outcome()));
  }
}

template <class Policy>
void replay_run<Policy>::start_serving(job& j, kvlane::grant const& g) {
  j.held = g;
  j.admitted_at = now_;
  j.generated_before = j.generated;
  if (!std::exchange(j.has_run, true)) {
    fate_of(j).admitted = now_.time_since_epoch();
    auto const wait = now_.time_since_epoch() - fate_of(j).arrived;
    record_.admitted(wait);
    if (fate_of(j).let_in) record_.probed(j.predicted, wait, settings_.limits.max_wait);
  }
  record_.overtaken(g.overtaken);
  admitted_.push_back(&j);
}

/// Adds what it did since its last admission to what the queue is to learn.
template <class Policy>
void replay_run<Policy>::stop_decoding(job& j) noexcept {
  j.service.decode += now_ - j.token_at;
}

template <class Policy>
void replay_run<Policy>::finish(job& j) {
  stop_decoding(j);
  // A phase that took no time, on an engine that costs nothing, teaches nothing.
  if (j.service.prefill.count() == 0) j.service.prompt_tokens = 0;
  if (j.service.decode.count() == 0) j.service.decode_tokens = 0;
  {
    ++record_.core().decisions;
    stopwatch const runs{record_.core()};
    if (learns() && j.service.prompt_tokens + j.service.decode_tokens != 0) core_.completed(j.held, j.service);
    core_.release(j.held);
  }
  fate_of(j).end = ending::completed;
  fate_of(j).generated_tokens = j.generated;
  record_.completed(j.generated);
  undecided_ = true;
}

/// Takes the KV of a request away; it waits again, or ends.
template <class Policy>
void replay_run<Policy>::preempt(job& j) {
  stop_decoding(j);
  undecided_ = true;
  auto r = request_of(j);
  r.saved_cost = score(j);
  auto const waits = [&] {
    ++record_.core().decisions;
    stopwatch const runs{record_.core()};
    auto const joined = std::holds_alternative<kvlane::joined>(core_.readmit(j.held, r, j.place, ended_));
    if (!joined) core_.release(j.held);
    return joined;
  }();
  if (waits) {
    record_.preempted();
    enter_line(j);
    return;
  }
  fate_of(j).end = ending::cut_off;
  fate_of(j).generated_tokens = j.generated;
  record_.cut_off(j.generated);
}

/// Brings the scores of all waiters up to the present state of the cache.
template <class Policy>
void replay_run<Policy>::rescore_line() {
  if (settings_.scores == score_updates::never || scored_at_ == cache_.changes()) return;
  scored_at_ = cache_.changes();
  changed_.clear();
  for (auto* const j : line_)
    if (auto const saved = score(*j); saved != j->place.saved_cost()) changed_.emplace_back(j, saved);
  if (changed_.empty()) return;
  undecided_ = true;
  record_.core().rescores += changed_.size();
  stopwatch const runs{record_.core().rescoring};
  for (auto const& [j, saved] : changed_) core_.rescore(j->place, saved);
}

}  // namespace replay
