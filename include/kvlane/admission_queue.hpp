#pragma once

#include <kvlane/admission_core.hpp>
#include <kvlane/clock.hpp>
#include <kvlane/detail/callback_loop.hpp>
#include <kvlane/detail/queue_state.hpp>
#include <kvlane/hold.hpp>
#include <kvlane/observer.hpp>
#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/prompt.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>
#include <kvlane/snapshot.hpp>
#include <kvlane/ticket.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kvlane {

/// Decides who runs on an inference server, who waits, and who is told to come back later: one mutex around an
/// admission_core. A request gets a lane and KV tokens together or not at all.
///
///     kvlane::admission_queue queue{{.lanes = 8, .kv_capacity = 131'072}};
///     kvlane::ticket place;
///     auto now = queue.enqueue({.prompt = tokens, .max_tokens = 256, .max_wait = 30s}, place,
///                              [](kvlane::admission a) { a ? run(std::move(*a)) : refuse(a.error()); });
///     if (now) ...   // admitted or refused at once; otherwise it waits, and the completion will be called
///
/// `Policy` orders the line (ordering_policy), `Observer` hears every event (event_observer), `Mutex` may be null_mutex
/// for a queue that one thread owns, `Clock` is a function that returns a time_point and does not throw.
///
/// Thread safety: shared objects are safe. Policy and clock run under the mutex and must not use the queue; nothing else
/// foreign does. Lifetime: neither copied nor moved; leases, tickets and holds may outlive it. Policy, observer, clock
/// and attached cache live until the last of those has gone. Destroying the queue closes it and waits for a round of
/// cache probes that goes on; it must not happen inside a probe.
///
/// Time: whoever uses callbacks or an inbox calls `expire()` at `next_deadline()`; the blocking shell does it itself.
template <class Policy, class Observer, class Mutex, class Clock>
class basic_admission_queue {
  using state_type = detail::queue_state<Policy, Observer, Mutex, Clock>;
  using transaction = typename state_type::transaction;
  using place_type = detail::place_in_line<Policy>;

 public:
  static_assert(ordering_policy<Policy>, "see kvlane/ordering/policy.hpp for what an ordering policy must have");
  static_assert(event_observer<Observer>, "an observer is called with a kvlane::event and does not throw");
  static_assert(std::is_invocable_r_v<time_point, Clock&>, "a clock is a function that returns a kvlane::time_point");

  using policy_type = Policy;
  using clock_type = Clock;

  /// \throws std::invalid_argument for limits that make no sense, naming the member; std::bad_alloc
  explicit basic_admission_queue(limits const& l = {}, Policy policy = Policy{}, Observer observer = Observer{},
                                 Clock clock = Clock{})
      : state_{new state_type{l, std::move(policy), std::move(observer), std::move(clock)}} {}
  basic_admission_queue(basic_admission_queue const&) = delete;
  basic_admission_queue& operator=(basic_admission_queue const&) = delete;

  /// Closes the queue. Callbacks of those who waited may run inside.
  ~basic_admission_queue() {
    close();
    state_->abandon();
  }

  /// What `enqueue` would decide at once; never stays in line. With nobody waiting it takes no allocation and reads no
  /// clock. \throws std::bad_alloc and what the policy's insert throws, only when others wait; then nothing has changed
  [[nodiscard]] admission try_admit(request const& r);

  /// Admits or refuses `r` at once, or puts it into line and returns nothing. `place` then stands for it (what it stood
  /// for before is cancelled first), and `completion` is called exactly once with the outcome, unless `place` cancels it:
  /// on the thread that causes the outcome, after unlocking, through that thread's callback loop. It must not block or
  /// throw, and owns what it uses. It is called for those who really wait, never inside this call for `r` itself.
  /// \throws std::bad_alloc, what copying the completion throws and what the policy's insert throws; then `r` has left no
  /// trace
  template <class Completion>
    requires std::invocable<std::decay_t<Completion>&, admission>
  [[nodiscard]] std::optional<admission> enqueue(request const& r, ticket& place, Completion&& completion);

  /// Preempted work gives its lease back and joins the line in one step, outside the caps and without prediction. It keeps
  /// its arrival and goes to the head of its class. Refused only with invalid_request, never_fits and, after close,
  /// shutting_down, and then `held` stays with the caller. Otherwise as `enqueue`. \throws as enqueue
  template <class Completion>
    requires std::invocable<std::decay_t<Completion>&, admission>
  [[nodiscard]] std::optional<admission> readmit(lease&& held, request const& r, ticket& place,
                                                 Completion&& completion);

  /// While any hold lives nobody is admitted; the end of the last one is followed by one decision.
  [[nodiscard]] dispatch_hold hold_dispatch() noexcept;

  [[nodiscard]] limits current_limits() const noexcept {
    return state_->ask([](auto& core, auto&) { return core.current_limits(); });
  }

  /// Changes limits in one atomic step: `change(limits&)` works on a copy, without the lock, and is run again when another
  /// update came between. Raising admits at once; lowering revokes nothing, but whoever can never fit any more is told
  /// no_longer_fits. \throws std::invalid_argument, what `change` throws, std::bad_alloc; then nothing has changed
  template <std::invocable<limits&> F>
  void update(F&& change);

  /// Refuses newcomers and lets the line run dry.
  void drain() noexcept {
    turn_door([](auto& t) { t.core().drain(); });
  }
  /// Undoes drain.
  void reopen() noexcept {
    turn_door([](auto& t) { t.core().reopen(); });
  }
  /// Refuses newcomers for good and answers every waiter with shutting_down. Leases stay good.
  void close() noexcept {
    turn_door([](auto& t) {
      if (!t.core().closed()) t.core().close(t.ended());
    });
  }

  /// When `expire` has to be called next, if nothing changes.
  [[nodiscard]] std::optional<time_point> next_deadline() const noexcept { return state_->next_deadline(); }
  /// Tells everyone whose deadline has come, and returns how many those were.
  std::size_t expire() noexcept { return state_->expire(); }

  /// How long a request of `priority` that came now would wait, by what is known of the server's speed; absent while
  /// nothing is.
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(std::uint32_t priority = 0) const noexcept {
    return state_->ask([=](auto& core, auto&) { return core.predicted_wait(priority); });
  }
  [[nodiscard]] queue_snapshot snapshot() const noexcept {
    return state_->ask([](auto& core, auto&) { return core.snapshot(); });
  }
  /// At most `most` waiters, in order. Allocates under the lock: meant for people. \throws std::bad_alloc
  [[nodiscard]] std::vector<waiter_info> waiters(std::size_t most = ~std::size_t{0}) const;

  /// The engine has cached the end of a prefix: what the cache saves for every waiter that begins with it rises, and with
  /// it their places. Waiters that join later name their own figure, so tell the queue of a change before the cache itself
  /// shows it to newcomers, or the other way round, but always in the same order. O(1) when all move together.
  void prefix_cached(prefix_change const& change) noexcept {
    transaction t{*state_};
    t.advance_if_anyone_waits();
    t.core().prefix_cached(change);
    t.dispatch();
  }
  /// The engine has evicted the end of a prefix. As prefix_cached, the other way.
  void prefix_evicted(prefix_change const& change) noexcept {
    transaction t{*state_};
    t.advance_if_anyone_waits();
    t.core().prefix_evicted(change);
    t.dispatch();
  }

  /// From now on `cache` is asked what it would save for waiters, whenever its epoch has moved: at most 64 at each event,
  /// best first, without the lock. Replaces an earlier one. See prefix_cache. \throws std::bad_alloc
  template <prefix_cache Cache>
  void attach(Cache cache) {
    state_->attach(std::make_unique<detail::cache_probe_of<Cache>>(std::move(cache)));
  }

  /// The queue's clock, read now.
  [[nodiscard]] time_point now() const noexcept { return state_->now(); }
  /// Passes an event of its own to the observer; for prewarm_lanes.
  void report(events::prewarmed const& e) noexcept {
    transaction t{*state_};
    t.note([&] { return e; });
  }

  // For shells: told as soon as no lease is out and nobody waits.
  void watch_idle(std::shared_ptr<detail::idle_watch> watch) { state_->watch_idle(std::move(watch)); }
  void forget_idle(std::shared_ptr<detail::idle_watch> const& watch) noexcept { state_->forget_idle(watch); }

 private:
  /// What try_admit answers, whoever waits.
  KVLANE_NOINLINE admission judge_now(request const& r);
  /// A verdict as the caller's own outcome; nothing for one who has joined.
  static std::optional<admission> own_outcome(transaction& t, request const& r, verdict const& v) noexcept;
  static verdict decide(transaction& t, request const& r, patience how, core_waiter<Policy>* place) {
    t.advance();
    t.dispatch();
    return t.core().judge(r, how, place);
  }
  static void bind(transaction& t, ticket& place, place_type& waiter, state_type& s) noexcept {
    detail::ticket_access::bind(place, s, waiter);
    waiter.keep();
    t.share();
  }
  template <class Turn>
  void turn_door(Turn const& turn) noexcept;

  state_type* state_;
};

template <class Policy, class Observer, class Mutex, class Clock>
std::optional<admission> basic_admission_queue<Policy, Observer, Mutex, Clock>::own_outcome(transaction& t,
                                                                                            request const& r,
                                                                                            verdict const& v) noexcept {
  if (auto const* const g = std::get_if<grant>(&v)) {
    t.note([&] {
      return events::admitted{0,
                              g->tag,
                              g->flow,
                              g->priority,
                              g->lane,
                              g->tokens,
                              g->waited,
                              g->overtaken,
                              t.depth(),
                              t.capacity(),
                              t.core().predicted_wait(g->priority)};
    });
    return t.make_lease(*g);
  }
  if (auto const* const why = std::get_if<rejection>(&v)) {
    if (why->code() == errc::timed_out)  // readmitted, with no time to wait
      t.note([&] { return events::expired{0, r.flow, *why}; });
    else
      t.note([&] { return events::refused{0, r.flow, *why}; });
    return *why;
  }
  return std::nullopt;
}

template <class Policy, class Observer, class Mutex, class Clock>
admission basic_admission_queue<Policy, Observer, Mutex, Clock>::try_admit(request const& r) {
  if constexpr (!state_type::observed) {
    // Written where it will stay: copying what was just written stalls the processor, and that for as long as all the rest.
    admission outcome{std::in_place};
    if (state_->take_at_once(r, detail::lease_access::blank(*outcome)))
      detail::lease_access::own(*outcome, *state_);
    else
      outcome = judge_now(r);
    return outcome;
  } else {
    return judge_now(r);
  }
}

template <class Policy, class Observer, class Mutex, class Clock>
admission basic_admission_queue<Policy, Observer, Mutex, Clock>::judge_now(request const& r) {
  transaction t{*state_};
  if (auto const v = t.core().judge_at_once(r, patience::leaves)) return *own_outcome(t, r, *v);
  auto v = decide(t, r, patience::leaves, nullptr);
  if (std::holds_alternative<needs_waiter>(v)) {
    // It passes others: the policy has to see it, if only for a moment. Copying its prompt is no work for the lock.
    core_waiter<Policy> passing;
    t.unlocked([&] { passing.copy_prompt({r.prompt, r.prefix_blocks}); });
    v = decide(t, r, patience::leaves, &passing);
  }
  return *own_outcome(t, r, v);
}

template <class Policy, class Observer, class Mutex, class Clock>
template <class Completion>
  requires std::invocable<std::decay_t<Completion>&, admission>
std::optional<admission> basic_admission_queue<Policy, Observer, Mutex, Clock>::enqueue(request const& r, ticket& place,
                                                                                        Completion&& completion) {
  detail::callback_loop::deferral const later;
  place = ticket{};
  // Declared before the transaction: what is left over is destroyed after unlocking.
  std::unique_ptr<place_type> waiter;
  transaction t{*state_};
  if (auto const v = t.core().judge_at_once(r, patience::waits)) return own_outcome(t, r, *v);
  auto v = decide(t, r, patience::waits, nullptr);
  std::optional<fractional_ms> expected;
  if (std::holds_alternative<needs_waiter>(v)) {
    t.unlocked([&] {
      waiter = std::make_unique<detail::place_with<Policy, std::decay_t<Completion>>>(
          std::in_place, std::forward<Completion>(completion));
      waiter->copy_prompt({r.prompt, r.prefix_blocks});
    });
    t.advance();
    t.dispatch();
    if constexpr (state_type::observed) expected = t.core().predicted_wait(r.priority);  // before its own work counts
    v = t.core().judge(r, patience::waits, waiter.get());
  }
  if (std::holds_alternative<joined>(v)) {
    // Before anyone can see it: once the lock is open, its outcome may come and destroy `place`.
    bind(t, place, *waiter, *state_);
    t.note([&] {
      return events::queued{0,
                            r.tag,
                            r.flow,
                            r.priority,
                            waiter->demand(),
                            t.depth(),
                            t.capacity(),
                            t.core().info_at(*waiter, 0, t.core().now()).blocked,
                            expected};
    });
    waiter.release();
    return std::nullopt;
  }
  return own_outcome(t, r, v);
}

template <class Policy, class Observer, class Mutex, class Clock>
template <class Completion>
  requires std::invocable<std::decay_t<Completion>&, admission>
std::optional<admission> basic_admission_queue<Policy, Observer, Mutex, Clock>::readmit(lease&& held, request const& r,
                                                                                        ticket& place,
                                                                                        Completion&& completion) {
  detail::callback_loop::deferral const later;
  place = ticket{};
  std::unique_ptr<place_type> waiter = std::make_unique<detail::place_with<Policy, std::decay_t<Completion>>>(
      std::in_place, std::forward<Completion>(completion));
  waiter->copy_prompt({r.prompt, r.prefix_blocks});
  transaction t{*state_};
  if (detail::lease_access::owner(held) != state_) return own_outcome(t, r, t.core().refuse_foreign_lease(r.tag));
  t.advance();
  auto const given_back = detail::lease_access::held(held);
  std::variant<joined, rejection> v;
  try {
    v = t.core().readmit(given_back, r, *waiter, t.ended());
  } catch (...) {
    t.dispatch();  // somebody may have expired before a follower that fits
    throw;
  }
  if (auto const* const why = std::get_if<rejection>(&v)) {
    t.dispatch();
    return own_outcome(t, r, *why);
  }
  detail::lease_access::forget(held);
  t.unshare();
  auto& joined_as = *waiter;
  auto over = t.ended().remove(joined_as);  // a wait of nothing, told as the caller's own
  t.note([&] { return events::readmitted{0, r.tag, r.flow, r.priority, joined_as.demand(), t.depth()}; });
  if (over) {
    t.dispatch();
  } else {
    bind(t, place, *waiter.release(), *state_);
    joined_as.keep();  // the lock may be open for a while in dispatch: others may tell it, and it may go
    t.dispatch();
    over = t.ended().remove(joined_as);
    joined_as.let_go();
    if (!over) return std::nullopt;
    // Its wait ended in this very event, so that is the immediate outcome and the completion will not run.
    detail::ticket_access::forget(place);
    t.unshare();
    joined_as.let_go();
    waiter.reset(&joined_as);
  }
  if (auto const* const g = waiter->granted()) return own_outcome(t, r, *g);
  return own_outcome(t, r, std::get<rejection>(waiter->outcome()));
}

template <class Policy, class Observer, class Mutex, class Clock>
dispatch_hold basic_admission_queue<Policy, Observer, Mutex, Clock>::hold_dispatch() noexcept {
  transaction t{*state_};
  t.advance_if_anyone_waits();
  t.core().begin_hold();
  t.share();
  return dispatch_hold{*state_};
}

template <class Policy, class Observer, class Mutex, class Clock>
template <std::invocable<limits&> F>
void basic_admission_queue<Policy, Observer, Mutex, Clock>::update(F&& change) {
  for (;;) {
    std::uint64_t seen = 0;
    auto wanted = state_->ask([&](auto& core, auto&) {
      seen = state_->version();
      return core.current_limits();
    });
    change(wanted);
    validate(wanted);
    transaction t{*state_};
    if (state_->version() != seen) continue;
    t.advance_if_anyone_waits();
    t.core().update(wanted, t.ended());
    state_->next_version();
    t.note([&] { return events::updated{0, wanted, t.core().draining(), t.core().closed()}; });
    t.dispatch();
    return;
  }
}

template <class Policy, class Observer, class Mutex, class Clock>
template <class Turn>
void basic_admission_queue<Policy, Observer, Mutex, Clock>::turn_door(Turn const& turn) noexcept {
  transaction t{*state_};
  t.advance_if_anyone_waits();
  turn(t);
  t.note([&] { return events::updated{0, t.core().current_limits(), t.core().draining(), t.core().closed()}; });
  t.dispatch();
}

template <class Policy, class Observer, class Mutex, class Clock>
std::vector<waiter_info> basic_admission_queue<Policy, Observer, Mutex, Clock>::waiters(std::size_t most) const {
  return state_->ask([=](auto& core, auto& clock) {
    std::vector<waiter_info> seen;
    seen.reserve(std::min<std::size_t>(most, core.waiting()));
    if (most != 0 && core.anyone_waits())
      core.for_each_in_order([&, now = time_point{clock()}](auto const& w) {
        seen.push_back(core.info_at(w, seen.size(), now));
        return seen.size() < most;
      });
    return seen;
  });
}

}  // namespace kvlane
