#pragma once

// The bodies of admission_core, included by its header alone. Apart from it, so that the header reads as an interface.

#include <kvlane/admission_core.hpp>

namespace kvlane {

// -- the frame of every event

template <class Policy>
void admission_core<Policy>::advance(time_point now, outcomes& ended) noexcept {
  now_ = std::max(now_, now);
  expire_overdue(ended);
}

template <class Policy>
void admission_core<Policy>::expire_overdue(outcomes& ended) noexcept {
  if (deadlines_.empty() || deadlines_.top()->deadline() > now_) return;
  outcomes overdue;
  auto const due = highest_due_priority();
  while (auto* const w = deadlines_.top()) {
    if (w->deadline() > now_) break;
    end_wait(*w, departure::expired, due, overdue);
  }
  // Only now: what a refused waiter is told counts none of those that are refused with it.
  while (auto* const w = overdue.pop_front()) tell_timed_out(*w, ended);
}

template <class Policy>
void admission_core<Policy>::tell_timed_out(waiter& w, outcomes& ended) noexcept {
  auto facts = facts_about(errc::timed_out, w);
  pace_.refused();
  advise_return(facts, w.priority());
  w.outcome_ = refuse(facts);
  ended.push_back(w);
}

/// Takes `w` out of line, to be refused with others. What it lacked is noted as it was before any of them left.
template <class Policy>
void admission_core<Policy>::end_wait(waiter& w, departure why, int due, outcomes& refused) noexcept {
  w.blocked_ = what_blocks(w.demand(), w.priority(), due);
  leave(w, why);
  refused.push_back(w);
}

// -- deciding

/// The highest priority whose oldest waiter has been overtaken as often as is allowed; -1 when there is none.
template <class Policy>
int admission_core<Policy>::highest_due_priority() const noexcept {
  for (auto left = occupied_priorities_; left != 0;) {
    auto const p = static_cast<unsigned>(std::bit_width(left)) - 1;
    if (lines_[p].most_overtaken() >= limits_.max_overtakes) return static_cast<int>(p);
    left &= ~(1U << p);
  }
  return -1;
}

/// The waiter to be admitted next, or nullptr. While a waiter is due, only those above it may pass.
template <class Policy>
auto admission_core<Policy>::choose() noexcept -> waiter* {
  if (waiting_ == 0 || holds_ != 0 || lanes_.free() == 0) return nullptr;
  auto const tokens = tokens_for_admission();
  auto const due = highest_due_priority();
  auto const min_priority = static_cast<std::uint32_t>(due + 1);
  if (min_priority <= highest_priority) {
    waiter* best =
        static_cast<waiter*>(policy_.pick({.free_tokens = tokens, .min_priority = min_priority, .now = now_}));
    KVLANE_ASSERT(best == nullptr || (best->in_line_ && best->demand() <= tokens && best->priority() >= min_priority),
                  "the policy picked a waiter that does not fit");
    auto* const preempted = oldest_readmitted(tokens, best == nullptr ? min_priority : best->priority());
    if (preempted != nullptr) best = preempted;
    if (best != nullptr) return best;
  }
  if (due < 0) return nullptr;
  auto* const oldest = lines_[static_cast<std::size_t>(due)].oldest();
  return oldest->demand() <= tokens ? oldest : nullptr;
}

/// The first readmitted waiter of at least `min_priority` that fits: highest priority, then oldest.
template <class Policy>
auto admission_core<Policy>::oldest_readmitted(std::uint64_t tokens, std::uint32_t min_priority) const noexcept
    -> waiter* {
  for (auto left = occupied_priorities_ >> min_priority << min_priority; left != 0;) {
    auto const p = static_cast<unsigned>(std::bit_width(left)) - 1;
    if (auto* const w = lines_[p].oldest_readmitted(tokens)) return w;
    left &= ~(1U << p);
  }
  return nullptr;
}

/// In the order of what a request is told: invalid, never fits, shutting down (if `door` is a reason).
template <class Policy>
std::optional<rejection> admission_core<Policy>::refuse_whatever_the_line(request const& r, std::uint64_t demand,
                                                                          refusal_cause door) noexcept {
  if (!is_sound(r)) return refuse(find_fault(r)->facts());
  if (demand > limits_.kv_capacity) return refuse(facts_about(errc::never_fits, demand, r.tag));
  if (door == refusal_cause::none) return std::nullopt;
  auto facts = facts_about(errc::shutting_down, demand, r.tag);
  facts.cause = door;
  return refuse(facts);
}

template <class Policy>
bool admission_core<Policy>::take_at_once(request const& r, grant& granted) noexcept {
  if (waiting_ != 0 || draining_ || closed_ || holds_ != 0 || !is_sound(r)) return false;
  auto const demand = demand_of(r, limits_);
  if (!fits(demand)) return false;
  take(r, demand, granted);
  return true;
}

template <class Policy>
std::optional<verdict> admission_core<Policy>::judge_at_once(request const& r, patience how) noexcept {
  if (waiting_ != 0) return std::nullopt;
  auto const demand = demand_of(r, limits_);
  if (auto const no = refuse_whatever_the_line(r, demand, door())) return *no;
  if (holds_ == 0 && fits(demand)) return take(r, demand);
  if (how == patience::leaves) return *turn_away(r, how, demand, time_point::max());
  return std::nullopt;
}

template <class Policy>
verdict admission_core<Policy>::judge(request const& r, patience how, waiter* place) {
  auto const demand = demand_of(r, limits_);
  if (auto const no = refuse_whatever_the_line(r, demand, door())) return *no;
  if (holds_ == 0 && fits(demand) && highest_due_priority() < static_cast<int>(r.priority)) {
    if (waiting_ == 0) return take(r, demand);
    if (place == nullptr) return needs_waiter{};
    return take_past_waiters(r, demand, *place);
  }
  auto const named = r.max_wait.has_value() || r.deadline != time_point::max();
  auto const deadline = deadline_of(r, r.max_wait.value_or(named ? forever : limits_.max_wait));
  if (auto const no = turn_away(r, how, demand, deadline)) return *no;
  if (place == nullptr) return needs_waiter{};
  fill(*place, r, demand, deadline);
  place->facts_.arrival = next_arrival_;
  place->facts_.enqueued_turn = turn_;
  place->line.readmitted = false;
  join(*place);
  ++next_arrival_;
  return joined{};
}

/// Why a request that is not admitted may not even wait: it would not, there is no room, or it would wait in vain.
template <class Policy>
std::optional<rejection> admission_core<Policy>::turn_away(request const& r, patience how, std::uint64_t demand,
                                                           time_point deadline) noexcept {
  auto const limit = saturating_sub(deadline, now_);
  auto const predicted = predicted_wait(r.priority);
  auto code = errc::would_wait;
  if (how == patience::waits && limit > duration::zero()) {
    if (!has_room(demand))
      code = errc::queue_full;
    else if (deadline != time_point::max() && predicted && *predicted > fractional_ms{limit})
      code = errc::would_time_out;
    else
      return std::nullopt;
  }
  auto facts = facts_about(code, demand, r.tag);
  facts.blocked = what_blocks(demand, r.priority, highest_due_priority());
  facts.limit = limit;
  // Whoever only asks does not push the others' return further away.
  if (how == patience::waits) pace_.refused();
  advise_return(facts, r.priority);
  return refuse(facts);
}

/// Room in line, the newcomer counted. An empty line takes one waiter of any demand, or a large one could never wait.
template <class Policy>
bool admission_core<Policy>::has_room(std::uint64_t demand) const noexcept {
  return waiting_ < limits_.places() && (waiting_ == 0 || waiting_tokens_ + demand <= limits_.max_waiting_tokens);
}

/// What a request of that demand and priority lacks, when the highest priority with a due waiter is `due`.
template <class Policy>
blocked_on admission_core<Policy>::what_blocks(std::uint64_t demand, std::uint32_t priority, int due) const noexcept {
  if (holds_ != 0) return blocked_on::hold;
  if (lanes_.free() == 0) return blocked_on::lane;
  if (demand > tokens_for_admission()) return blocked_on::tokens;
  return due >= static_cast<int>(priority) ? blocked_on::reservation : blocked_on::nothing;
}

// -- admitting and leaving

/// Takes a lane and the grant's tokens. Precondition: both are free.
template <class Policy>
void admission_core<Policy>::reserve(grant& g, std::optional<lane_id> preferred) noexcept {
  auto const lane = lanes_.try_take(preferred);
  [[maybe_unused]] auto const reserved = budget_.try_reserve(g.tokens);
  KVLANE_ASSERT(lane.has_value() && reserved, "an admission was decided that does not fit");
  g.lane = *lane;
  ledger_.start(g.expected);
  if constexpr (requires { policy_.on_grant(g); }) policy_.on_grant(g);
}

template <class Policy>
void admission_core<Policy>::count_admission(grant const& g) noexcept {
  ++counters_.admitted;
  wait_ms_.observe(static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(g.waited).count()));
  overtakes_.observe(g.overtaken);
}

/// Admits a newcomer when nobody waits. Reads no clock, allocates nothing, and is no turn.
template <class Policy>
void admission_core<Policy>::take(request const& r, std::uint64_t demand, grant& g) noexcept {
  // Every member: `g` may be memory that was never written.
  g.priority = r.priority;
  g.overtaken = 0;
  g.waited = duration::zero();
  g.tokens = demand;
  g.tag = r.tag;
  g.flow = r.flow;
  g.arrival = next_arrival_++;
  g.enqueued_turn = turn_;
  g.expected = expected_work(r, limits_);
  reserve(g, r.preferred_lane);
  pace_.admitted_at_once();
  ++admitted_at_once_;
}

/// Admits a newcomer ahead of others, none of whom may run. The policy sees it come and go, so that a turn passes.
template <class Policy>
grant admission_core<Policy>::take_past_waiters(request const& r, std::uint64_t demand, waiter& place) {
  fill(place, r, demand, time_point::max());
  place.facts_.arrival = next_arrival_;
  place.facts_.enqueued_turn = turn_;
  policy_.insert(place);
  policy_.erase(place, departure::admitted);
  auto const g = take(r, demand);
  ++turn_;
  pace_.admitted(now_, true);
  note_overtaking(g.priority, g.arrival);
  return g;
}

/// Whoever arrived before `arrival` and has at least that priority has been overtaken.
template <class Policy>
void admission_core<Policy>::note_overtaking(std::uint32_t priority, std::uint64_t arrival) noexcept {
  for (auto left = occupied_priorities_ >> priority << priority; left != 0;) {
    auto const p = static_cast<unsigned>(std::bit_width(left)) - 1;
    lines_[p].overtake_before(arrival);
    left &= ~(1U << p);
  }
}

template <class Policy>
void admission_core<Policy>::admit(waiter& w, outcomes& ended) noexcept {
  grant g{.priority = w.priority(),
          .overtaken = w.overtaken(),
          .tokens = w.demand(),
          .tag = w.tag(),
          .flow = w.flow(),
          .arrival = w.arrival(),
          .enqueued_turn = w.enqueued_turn(),
          .expected = w.expected_,
          .waited = saturating_sub(now_, w.joined())};
  pace_.admitted(now_, true);
  leave(w, departure::admitted);
  ++turn_;
  note_overtaking(g.priority + 1, g.arrival);  // those of its own priority have been counted as it left
  reserve(g, w.preferred_lane_);
  count_admission(g);
  ++counters_.admitted_from_line;
  w.outcome_ = g;
  ended.push_back(w);
}

/// Everything about a waiter but its arrival and turn.
template <class Policy>
void admission_core<Policy>::fill(waiter& w, request const& r, std::uint64_t demand,
                                  time_point deadline) const noexcept {
  w.facts_ = {.demand = demand,
              .saved_cost = r.saved_cost,
              .tag = r.tag,
              .flow = r.flow,
              .joined = now_,
              .deadline = deadline,
              .priority = r.priority};
  w.expected_ = expected_work(r, limits_);
  w.preferred_lane_ = r.preferred_lane;
}

/// Puts a filled waiter into every structure. Only the first two steps can fail, and they leave nothing behind.
template <class Policy>
void admission_core<Policy>::join(waiter& w) {
  deadlines_.reserve_one();
  policy_.insert(w);
  if (w.deadline() != time_point::max()) deadlines_.push(w);
  lines_[w.priority()].insert(w);
  occupied_priorities_ |= 1U << w.priority();
  ledger_.queue(w.priority(), w.expected_);
  waiting_tokens_ += w.demand();
  ++waiting_;
  w.in_line_ = true;
}

template <class Policy>
void admission_core<Policy>::leave(waiter& w, departure why) noexcept {
  policy_.erase(w, why);
  deadlines_.erase(w);
  if (why == departure::admitted)
    lines_[w.priority()].erase_admitted(w);
  else
    lines_[w.priority()].erase(w);
  if (lines_[w.priority()].empty()) occupied_priorities_ &= ~(1U << w.priority());
  ledger_.unqueue(w.priority(), w.expected_);
  waiting_tokens_ -= w.demand();
  if (--waiting_ == 0) pace_.line_emptied();
  w.in_line_ = false;
}

template <class Policy>
auto admission_core<Policy>::readmit(grant const& held, request const& r, waiter& place, outcomes& ended)
    -> std::variant<joined, rejection> {
  auto const demand = demand_of(r, limits_);
  // Drain lets its own work finish.
  auto const shut = closed_ ? refusal_cause::closed : refusal_cause::none;
  if (auto const no = refuse_whatever_the_line(r, demand, shut)) return *no;
  fill(place, r, demand, deadline_of(r, r.max_wait.value_or(forever)));
  place.facts_.arrival = held.arrival;
  place.facts_.enqueued_turn = held.enqueued_turn;
  place.line.readmitted = true;
  auto const too_late = place.deadline() <= now_;  // a wait of nothing is over before it begins
  if (!too_late) join(place);
  ++counters_.readmitted;
  release(held);
  if (too_late) {
    place.blocked_ = what_blocks(demand, r.priority, highest_due_priority());
    tell_timed_out(place, ended);
  }
  return joined{};
}

template <class Policy>
rejection admission_core<Policy>::refuse_foreign_lease(std::uint64_t tag) noexcept {
  refusal_facts facts;
  facts.field = invalid_field::lease;
  facts.tag = tag;
  return refuse(facts);
}

// -- changes

template <class Policy>
void admission_core<Policy>::release(grant const& held) noexcept {
  lanes_.give_back(held.lane);
  budget_.release(held.tokens);
  ledger_.finish(held.expected);
  if (work_left_.is_told()) work_left_.released(held.lane, lanes_.busy() == 0);
  if constexpr (requires { policy_.on_release(held); }) policy_.on_release(held);
}

template <class Policy>
void admission_core<Policy>::observe(service_sample const& sample) noexcept {
  if (!rates_.observe(sample)) ++counters_.samples_ignored;
}

/// By the work that is left, and where that is not wanted or not known, by the rates of completed requests.
template <class Policy>
KVLANE_NOINLINE std::optional<fractional_ms>
admission_core<Policy>::predicted_by_progress(std::uint32_t priority) const noexcept {
  auto const ahead = work_ahead(priority);
  if (limits_.predict_by == predictor::work_left) {
    auto const running = ledger_.running().decode_tokens;
    replies_ahead const replies{.running = running, .waiting = ahead.decode_tokens - running, .runners = lanes_.busy()};
    if (auto const wait = work_left_.predicted_wait(replies, now_)) return wait;
  }
  return rates_.predicted_wait(ahead, limits_.lanes);
}

template <class Policy>
void admission_core<Policy>::completed(grant const& held, service_sample const& sample) noexcept {
  observe(sample);
  work_left_.ended(held.expected.decode_tokens, sample.decode_tokens);
}

template <class Policy>
void admission_core<Policy>::shrink(grant& held, std::uint64_t total) noexcept {
  auto const kept = round_up_to_blocks(total, limits_.block_tokens);
  if (kept >= held.tokens) return;
  budget_.release(held.tokens - kept);
  held.tokens = kept;
}

template <class Policy>
bool admission_core<Policy>::try_grow(grant& held, std::uint64_t total) noexcept {
  auto const wanted = round_up_to_blocks(total, limits_.block_tokens);
  if (wanted <= held.tokens) return true;
  auto const grew = budget_.try_reserve(wanted - held.tokens);
  if (grew) held.tokens = wanted;
  ++(grew ? counters_.grown : counters_.growth_refused);
  return grew;
}

template <class Policy>
rejection admission_core<Policy>::cancel(waiter& w) noexcept {
  w.blocked_ = what_blocks(w.demand(), w.priority(), highest_due_priority());
  leave(w, departure::cancelled);
  ++counters_.cancelled;
  return rejection{facts_about(errc::cancelled, w)};
}

template <class Policy>
void admission_core<Policy>::rescore(waiter& w, std::uint64_t saved_cost) noexcept {
  w.facts_.saved_cost = std::min(saved_cost, highest_saved_cost);
  policy_.rescore(w);
}

template <class Policy>
void admission_core<Policy>::prefix_cached(prefix_change const& change) noexcept {
  if constexpr (requires { policy_.on_cached(change); })
    policy_.on_cached(change);
  else
    raise_saved_cost(change.prefix, change.cost());
}

template <class Policy>
void admission_core<Policy>::prefix_evicted(prefix_change const& change) noexcept {
  if constexpr (requires { policy_.on_evicted(change); })
    policy_.on_evicted(change);
  else
    raise_saved_cost(change.prefix, -change.cost());
}

/// For policies that do not keep an eye on prefixes themselves.
template <class Policy>
void admission_core<Policy>::raise_saved_cost(prompt_view prefix, std::int64_t by) noexcept {
  for (auto const& line : lines_)
    for (auto* w = line.oldest(); w != nullptr; w = detail::arrival_list<waiter>::next(*w)) {
      if (!w->prompt().begins_with(prefix)) continue;
      auto const raised = static_cast<std::int64_t>(w->saved_cost()) + by;
      rescore(*w, static_cast<std::uint64_t>(std::max<std::int64_t>(raised, 0)));
    }
}

template <class Policy>
void admission_core<Policy>::update(limits const& l, outcomes& ended) {
  validate(l);
  lanes_.resize(l.lanes);
  budget_.resize(l.kv_capacity);
  limits_ = l;
  refuse_waiters(
      errc::no_longer_fits, refusal_cause::kv_capacity, [&](waiter const& w) { return w.demand() > l.kv_capacity; },
      ended);
}

template <class Policy>
void admission_core<Policy>::close(outcomes& ended) noexcept {
  closed_ = true;
  refuse_waiters(errc::shutting_down, refusal_cause::closed, [](waiter const&) { return true; }, ended);
}

/// Tells all waiters that are `wanted`, by arrival, that it is over.
template <class Policy>
template <class Wanted>
void admission_core<Policy>::refuse_waiters(errc code, refusal_cause cause, Wanted const& wanted,
                                            outcomes& ended) noexcept {
  std::array<waiter*, highest_priority + 1> heads;
  std::ranges::transform(lines_, heads.begin(), [](auto const& line) { return line.oldest(); });
  outcomes refused;
  auto const due = highest_due_priority();
  for (;;) {
    auto const oldest = std::ranges::min_element(heads, [](waiter const* a, waiter const* b) {
      return a != nullptr && (b == nullptr || a->arrival() < b->arrival());
    });
    if (*oldest == nullptr) break;
    auto& w = **oldest;
    *oldest = detail::arrival_list<waiter>::next(w);
    if (!wanted(w)) continue;
    end_wait(w, departure::refused, due, refused);
  }
  while (auto* const w = refused.pop_front()) {
    auto facts = facts_about(code, *w);
    facts.cause = cause;
    w->outcome_ = refuse(facts);
    ended.push_back(*w);
  }
}

// -- saying no

template <class Policy>
refusal_facts admission_core<Policy>::facts_about(errc code, std::uint64_t demand, std::uint64_t tag) const noexcept {
  refusal_facts facts;
  facts.code = code;
  facts.free_lanes = lanes_.free();
  facts.asked_tokens = demand;
  facts.free_tokens = budget_.free();
  facts.growth_reserve = growth_reserve();
  facts.kv_capacity = limits_.kv_capacity;
  facts.waiting = waiting_;
  facts.max_waiting = limits_.places();
  facts.waiting_tokens = detail::saturated(waiting_tokens_);
  facts.max_waiting_tokens = limits_.max_waiting_tokens;
  facts.tag = tag;
  return facts;
}

template <class Policy>
refusal_facts admission_core<Policy>::facts_about(errc code, waiter const& w) const noexcept {
  auto facts = facts_about(code, w.demand(), w.tag());
  facts.blocked = w.blocked_;
  facts.waited = saturating_sub(now_, w.joined());
  facts.limit = saturating_sub(w.deadline(), w.joined());
  return facts;
}

template <class Policy>
rejection admission_core<Policy>::refuse(refusal_facts const& facts) noexcept {
  ++counters_.refused[static_cast<std::size_t>(facts.code)];
  return rejection{facts};
}

/// When to come back: after the predicted wait (less what the request would have waited anyway), or, without a
/// prediction, when as many as wait now have been admitted.
template <class Policy>
void admission_core<Policy>::advise_return(refusal_facts& facts, std::uint32_t priority) const noexcept {
  facts.predicted_wait = predicted_wait(priority);
  auto base = facts.predicted_wait;
  if (facts.code == errc::would_time_out)
    base = *facts.predicted_wait - fractional_ms{facts.limit};
  else if (!base && pace_.average())
    base = static_cast<double>(waiting_) * *pace_.average();
  if (base) facts.retry_after = pace_.spread(*base);
}

// -- questions

template <class Policy>
queue_snapshot admission_core<Policy>::snapshot() const noexcept {
  queue_snapshot s;
  s.lanes = limits_.lanes;
  s.lanes_busy = lanes_.busy();
  s.kv_capacity = limits_.kv_capacity;
  s.kv_tokens_used = budget_.used();
  s.waiting = waiting_;
  s.waiting_tokens = detail::saturated(waiting_tokens_);
  s.max_waiting = limits_.places();
  s.turn = turn_;
  s.held = holds_ != 0;
  s.draining = draining_;
  s.closed = closed_;
  s.counters = counters_;
  s.counters.admitted += admitted_at_once_;
  s.counters.released = s.counters.admitted - lanes_.busy();
  s.wait_ms = wait_ms_;
  s.wait_ms.observe_zero(admitted_at_once_);
  s.overtakes = overtakes_;
  s.overtakes.observe_zero(admitted_at_once_);
  return s;
}

template <class Policy>
waiter_info admission_core<Policy>::info_at(waiter const& w, std::size_t place, time_point now) const noexcept {
  return {.tag = w.tag(),
          .flow = w.flow(),
          .demand = w.demand(),
          .priority = w.priority(),
          .place = place,
          .waited = saturating_sub(std::max(now, now_), w.joined()),
          .overtaken = w.overtaken(),
          .blocked = what_blocks(w.demand(), w.priority(), highest_due_priority())};
}

template <class Policy>
waiter_info admission_core<Policy>::info(waiter const& w, time_point now) noexcept {
  std::size_t place = 0;
  for_each_in_order([&](waiter const& other) {
    if (&other == &w) return false;
    ++place;
    return true;
  });
  return info_at(w, place, now);
}

template <class Policy>
template <class F>
void admission_core<Policy>::for_each_in_order(F&& f) noexcept {
  auto on = true;
  auto next_class = static_cast<int>(highest_priority);
  // Readmitted work stands before the rest of its priority, whatever the policy says.
  auto const readmitted_down_to = [&](std::uint32_t priority) {
    for (; on && next_class >= static_cast<int>(priority); --next_class)
      for (auto* w = lines_[static_cast<std::size_t>(next_class)].oldest_readmitted(~std::uint64_t{0});
           on && w != nullptr; w = detail::arrival_list<waiter>::next_readmitted(*w))
        on = f(*w);
  };
  auto const others = [&](waiter& w) {
    readmitted_down_to(w.priority());
    if (on && !w.readmitted()) on = f(w);
    return on;
  };
  if constexpr (requires { policy_.for_each_in_order([](typename Policy::waiter&) { return true; }); }) {
    policy_.for_each_in_order([&](typename Policy::waiter& w) { return others(static_cast<waiter&>(w)); });
  } else {
    for (auto p = static_cast<int>(highest_priority); on && p >= 0; --p)
      for (auto* w = lines_[static_cast<std::size_t>(p)].oldest(); on && w != nullptr;
           w = detail::arrival_list<waiter>::next(*w))
        others(*w);
  }
  readmitted_down_to(0);
}

}  // namespace kvlane
