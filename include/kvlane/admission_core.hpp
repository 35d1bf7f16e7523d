#pragma once

#include <kvlane/clock.hpp>
#include <kvlane/detail/arrival_list.hpp>
#include <kvlane/detail/core_waiter.hpp>
#include <kvlane/detail/deadline_heap.hpp>
#include <kvlane/detail/drain_pace.hpp>
#include <kvlane/detail/work_ledger.hpp>
#include <kvlane/lane_pool.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/prompt.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/request.hpp>
#include <kvlane/service_rates.hpp>
#include <kvlane/snapshot.hpp>
#include <kvlane/token_budget.hpp>
#include <kvlane/work_left.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace kvlane {

/// Whether a request would rather be refused than stand in line.
enum class patience : std::uint8_t { leaves, waits };

/// What the core says to a newcomer.
struct joined {};        ///< it stands in line; its outcome comes later
struct needs_waiter {};  ///< it would join, or pass others: ask again with a waiter. Nothing has changed.
using verdict = std::variant<grant, rejection, joined, needs_waiter>;

/// The state machine that decides who runs, who waits and who is refused: plain data in, decisions out. It has no lock,
/// thread, clock or callback; the moment is an argument. A queue puts a mutex around it, and simulators, model tests and
/// fuzzers drive this same class.
///
/// One event is: `advance(now)`, which expires whoever is overdue; then its changes; then `dispatch()`, which admits
/// whoever may run. (One change, or all those of an engine's step, so that one decision sees them together.) Both add the waiters whose wait has ended to `outcomes`, in the order in which they are to be told.
///
///     kvlane::admission_core<kvlane::fcfs> core{{.lanes = 1}};
///     kvlane::admission_core<kvlane::fcfs>::outcomes ended;
///     core.advance(now, ended);
///     core.release(held);
///     core.dispatch(ended);
///     while (auto* w = ended.pop_front()) tell(*w, w->outcome());
///
/// Thread safety: distinct objects are safe, shared objects are not. Lifetime: waiters must stay where they are while they
/// are in line; grants are numbers, each to be given back exactly once. Nothing allocates but the constructor, `update`
/// and the policy's insert.
template <class Policy>
class admission_core {
 public:
  static_assert(ordering_policy<Policy>, "see kvlane/ordering/policy.hpp for what an ordering policy must have");

  using waiter = core_waiter<Policy>;
  using outcomes = outcome_list<Policy>;

  /// \throws std::invalid_argument for limits that make no sense, std::bad_alloc
  explicit admission_core(limits const& l = {}, Policy policy = Policy{})
      : limits_{checked(l)}, policy_{std::move(policy)}, lanes_{l.lanes}, budget_{l.kv_capacity} {}
  admission_core(admission_core const&) = delete;
  admission_core& operator=(admission_core const&) = delete;

  // -- the frame of every event

  /// The moment of the event. A clock that goes back is answered by standing still. Whoever is overdue is told timed_out.
  void advance(time_point now, outcomes& ended) noexcept;

  /// Admits whoever may run, best first, until nobody may. Ends every event.
  void dispatch(outcomes& ended) noexcept {
    while (auto* const next = choose()) admit(*next, ended);
  }

  // -- newcomers

  /// The common case on its own: nobody waits and `r` may run at once. Then it has got `granted`; otherwise nothing has
  /// been decided.
  [[nodiscard]] bool take_at_once(request const& r, grant& granted) noexcept;

  /// What can be said to a newcomer without looking at the clock: nothing when it depends on the time, and always nothing
  /// while somebody waits.
  [[nodiscard]] std::optional<verdict> judge_at_once(request const& r, patience how) noexcept;

  /// Decides about a newcomer. Comes after `advance` and `dispatch`. `place` may be null: then `needs_waiter` says that
  /// one is needed. It must hold a copy of the prompt (copy_prompt), and may have waited before. \throws what the policy's insert throws, and then nothing has
  /// changed
  [[nodiscard]] verdict judge(request const& r, patience how, waiter* place);

  /// Preempted work gives back `held` and joins the line again in one step: it keeps its arrival and goes first among its
  /// equals. Comes after `advance`; to be followed by `dispatch`. A rejection leaves `held` with the caller. A wait that is
  /// over already ends in `ended`, as that of any waiter.
  /// \throws as judge
  [[nodiscard]] std::variant<joined, rejection> readmit(grant const& held, request const& r, waiter& place,
                                                        outcomes& ended);

  /// The refusal of a readmission without a lease of this queue, counted as all are.
  [[nodiscard]] rejection refuse_foreign_lease(std::uint64_t tag) noexcept;

  // -- changes, each between advance and dispatch

  /// Takes back what was granted.
  void release(grant const& held) noexcept;
  /// Learns from what a request took; nonsense is counted and ignored.
  void observe(service_sample const& sample) noexcept;
  /// As observe, and learns how long the reply of a grant became.
  void completed(grant const& held, service_sample const& sample) noexcept;
  /// The reply of a grant has so many tokens at `now`. Changes nothing but predictions.
  void progressed(grant const& held, std::uint64_t decode_tokens, time_point now) noexcept {
    work_left_.progressed(held.lane, held.expected.decode_tokens, decode_tokens, std::max(now, now_));
  }
  /// Keeps `total` tokens of a grant, rounded up to blocks.
  void shrink(grant& held, std::uint64_t total) noexcept;
  /// Raises a grant to `total` tokens, rounded up to blocks, if they are free: past every waiter and the growth reserve.
  [[nodiscard]] bool try_grow(grant& held, std::uint64_t total) noexcept;
  /// Takes a waiter out of line. Precondition: it is in line. Returns what a cancelled request is told.
  rejection cancel(waiter& w) noexcept;
  /// Changes what the prefix cache would save for a waiter in line. Clamped to 2^48 - 1.
  void rescore(waiter& w, std::uint64_t saved_cost) noexcept;
  /// A prefix has been cached or evicted: what the cache saves for every waiter that begins with it rises or falls.
  void prefix_cached(prefix_change const& change) noexcept;
  void prefix_evicted(prefix_change const& change) noexcept;
  /// From now on nobody is admitted, until as many calls of end_hold have followed.
  void begin_hold() noexcept { ++holds_; }
  void end_hold() noexcept { --holds_; }
  /// Changes the limits. Revokes nothing; who can never fit any more is told so.
  /// \throws std::invalid_argument, std::bad_alloc, and then nothing has changed
  void update(limits const& l, outcomes& ended);
  /// Newcomers are refused; the line runs dry.
  void drain() noexcept { draining_ = true; }
  /// Undoes drain. Does nothing after close.
  void reopen() noexcept { draining_ = false; }
  /// Newcomers are refused for good and every waiter is told shutting_down.
  void close(outcomes& ended) noexcept;

  // -- questions

  [[nodiscard]] limits const& current_limits() const noexcept { return limits_; }
  [[nodiscard]] time_point now() const noexcept { return now_; }
  [[nodiscard]] bool anyone_waits() const noexcept { return waiting_ != 0; }
  [[nodiscard]] std::uint64_t waiting() const noexcept { return waiting_; }
  [[nodiscard]] bool idle() const noexcept { return waiting_ == 0 && lanes_.busy() == 0; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  [[nodiscard]] std::optional<time_point> next_deadline() const noexcept {
    return deadlines_.empty() ? std::nullopt : std::optional{deadlines_.top()->deadline()};
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(std::uint32_t priority) const noexcept {
    // Apart, so that whoever is told of no progress asks as cheaply as can be.
    if (work_left_.is_told()) return predicted_by_progress(priority);
    return rates_.predicted_wait(work_ahead(priority), limits_.lanes);
  }
  [[nodiscard]] queue_snapshot snapshot() const noexcept;
  /// Where a waiter in line stands. Walks along the line.
  [[nodiscard]] waiter_info info(waiter const& w, time_point now) noexcept;
  /// As info, with a place that is known already.
  [[nodiscard]] waiter_info info_at(waiter const& w, std::size_t place, time_point now) const noexcept;
  /// Calls `f(waiter&) -> bool` for waiters in order until it returns false: by priority, readmitted work first.
  template <class F>
  void for_each_in_order(F&& f) noexcept;

 private:
  static limits checked(limits const& l) {
    validate(l);
    return l;
  }

  // -- deciding
  // A reserve that would block an idle machine counts nothing, or the first request could wait for ever.
  [[nodiscard]] std::uint64_t growth_reserve() const noexcept {
    return lanes_.busy() == 0 ? 0 : limits_.growth_reserve;
  }
  [[nodiscard]] std::uint64_t tokens_for_admission() const noexcept { return budget_.free_beyond(growth_reserve()); }
  [[nodiscard]] bool fits(std::uint64_t demand) const noexcept {
    return lanes_.free() != 0 && demand <= tokens_for_admission();
  }
  [[nodiscard]] int highest_due_priority() const noexcept;
  [[nodiscard]] waiter* choose() noexcept;
  [[nodiscard]] waiter* oldest_readmitted(std::uint64_t tokens, std::uint32_t min_priority) const noexcept;
  [[nodiscard]] refusal_cause door() const noexcept {
    if (closed_) return refusal_cause::closed;
    return draining_ ? refusal_cause::draining : refusal_cause::none;
  }
  [[nodiscard]] std::optional<rejection> refuse_whatever_the_line(request const& r, std::uint64_t demand,
                                                                  refusal_cause door) noexcept;
  [[nodiscard]] std::optional<rejection> turn_away(request const& r, patience how, std::uint64_t demand,
                                                   time_point deadline) noexcept;
  [[nodiscard]] bool has_room(std::uint64_t demand) const noexcept;
  [[nodiscard]] time_point deadline_of(request const& r, duration max_wait) const noexcept {
    return std::min(r.deadline, saturating_add(now_, max_wait));
  }
  [[nodiscard]] blocked_on what_blocks(std::uint64_t demand, std::uint32_t priority, int due) const noexcept;

  // -- admitting and leaving
  void take(request const& r, std::uint64_t demand, grant& g) noexcept;
  [[nodiscard]] grant take(request const& r, std::uint64_t demand) noexcept {
    grant g;
    take(r, demand, g);
    return g;
  }
  [[nodiscard]] grant take_past_waiters(request const& r, std::uint64_t demand, waiter& place);
  void reserve(grant& g, std::optional<lane_id> preferred) noexcept;
  void count_admission(grant const& g) noexcept;
  void note_overtaking(std::uint32_t priority, std::uint64_t arrival) noexcept;
  void admit(waiter& w, outcomes& ended) noexcept;
  void fill(waiter& w, request const& r, std::uint64_t demand, time_point deadline) const noexcept;
  void join(waiter& w);
  void leave(waiter& w, departure why) noexcept;
  void end_wait(waiter& w, departure why, int due, outcomes& refused) noexcept;
  void tell_timed_out(waiter& w, outcomes& ended) noexcept;
  void expire_overdue(outcomes& ended) noexcept;
  void raise_saved_cost(prompt_view prefix, std::int64_t by) noexcept;
  template <class Wanted>
  void refuse_waiters(errc code, refusal_cause cause, Wanted const& wanted, outcomes& ended) noexcept;

  // -- predicting
  [[nodiscard]] work work_ahead(std::uint32_t priority) const noexcept {
    return ledger_.ahead_of(std::min(priority, highest_priority), occupied_priorities_);
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_by_progress(std::uint32_t priority) const noexcept;

  // -- saying no
  [[nodiscard]] refusal_facts facts_about(errc code, std::uint64_t demand, std::uint64_t tag) const noexcept;
  [[nodiscard]] rejection refuse(refusal_facts const& facts) noexcept;
  [[nodiscard]] refusal_facts facts_about(errc code, waiter const& w) const noexcept;
  void advise_return(refusal_facts& facts, std::uint32_t priority) const noexcept;

  limits limits_;
  Policy policy_;
  lane_pool lanes_;
  token_budget budget_;
  service_rates rates_;
  detail::work_ledger ledger_;
  detail::drain_pace pace_;
  std::array<detail::arrival_list<waiter>, highest_priority + 1> lines_;
  detail::deadline_heap<waiter> deadlines_;
  time_point now_ = time_point::min();
  std::uint64_t waiting_ = 0;
  detail::wide_sum waiting_tokens_ = 0;
  std::uint64_t next_arrival_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t admitted_at_once_ = 0;     // the only figure kept for them: neither wait nor overtaking to count
  std::uint32_t occupied_priorities_ = 0;  // bit p: somebody of priority p waits
  std::uint32_t holds_ = 0;
  bool draining_ = false;
  bool closed_ = false;
  outcome_counters counters_;
  log2_histogram<20> wait_ms_;
  log2_histogram<14> overtakes_;
  work_left work_left_;  // last: of no use to those who report no progress
};

}  // namespace kvlane

#include <kvlane/detail/admission_core_impl.hpp>
