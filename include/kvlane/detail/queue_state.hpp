#pragma once

#include <kvlane/admission_core.hpp>
#include <kvlane/detail/cache_probe.hpp>
#include <kvlane/detail/idle_watch.hpp>
#include <kvlane/detail/place_in_line.hpp>
#include <kvlane/hold.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/observer.hpp>
#include <kvlane/ticket.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvlane::detail {

/// What a queue, its leases, tickets and holds share: one mutex around one core. It lives until the last of them has let
/// go; the shares are counted under the mutex.
///
/// Every event runs through a `transaction`: lock, change, unlock, deliver. Policy and clock run under the mutex; nothing
/// else foreign does.
template <class Policy, class Observer, class Mutex, class Clock>
class alignas(64) queue_state final : public lease_owner, public place_owner, public hold_owner {
 public:
  using core_type = admission_core<Policy>;
  using outcomes = typename core_type::outcomes;
  using place = place_in_line<Policy>;
  static constexpr bool observed = !std::is_same_v<Observer, null_observer>;

  queue_state(limits const& l, Policy policy, Observer observer, Clock clock)
      : core_{l, std::move(policy)}, observer_{std::move(observer)}, clock_{std::move(clock)} {
    if constexpr (observed) observer_(event{events::configured{++sequence_, l}});
  }
  queue_state(queue_state const&) = delete;
  queue_state& operator=(queue_state const&) = delete;

  /// One event, from before it locks until its outcomes have been delivered. Leaving its scope unlocks and delivers.
  class transaction {
   public:
    explicit transaction(queue_state& s) noexcept : state_{&s}, epoch_{s.cache_epoch()}, lock_{s.mutex_} {}
    transaction(transaction const&) = delete;
    transaction& operator=(transaction const&) = delete;
    ~transaction() { finish(); }

    [[nodiscard]] core_type& core() noexcept { return state_->core_; }
    [[nodiscard]] outcomes& ended() noexcept { return ended_; }

    /// Reads the clock and expires whoever is overdue.
    void advance() noexcept { state_->core_.advance(state_->clock_(), ended_); }
    /// As advance, but spares the clock when nobody could be overdue.
    void advance_if_anyone_waits() noexcept {
      if (state_->core_.anyone_waits()) advance();
    }
    /// Asks the cache if it has changed, then admits whoever may run.
    void dispatch() noexcept {
      state_->probe(*this);
      state_->core_.dispatch(ended_);
    }
    /// Lets others in while something is prepared. Deliveries wait until the end.
    template <class F>
    decltype(auto) unlocked(F&& f) {
      bind_ended();
      lock_.unlock();
      struct relock {
        std::unique_lock<Mutex>& lock;
        ~relock() { lock.lock(); }
      } const guard{lock_};
      return std::forward<F>(f)();
    }

    /// A new share of the state, for a handle that is being made.
    void share() noexcept { ++state_->shares_; }
    /// The share of a handle that is being given up.
    void unshare() noexcept { ++shares_dropped_; }

    [[nodiscard]] lease make_lease(grant const& g) noexcept {
      share();
      return lease_access::make(*state_, g);
    }

    /// Notes an event for observers, which `make` describes; it gets its number now.
    template <class Make>
    void note(Make&& make) noexcept {
      if constexpr (observed) {
        number_ended();
        auto e = make();
        e.sequence = ++state_->sequence_;
        KVLANE_ASSERT(noted_ < notes_.size(), "more events of its own than a transaction has room for");
        if (noted_ < notes_.size()) notes_[noted_++] = std::move(e);
      }
    }
    [[nodiscard]] std::uint64_t depth() const noexcept { return state_->core_.waiting(); }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return state_->core_.current_limits().places(); }

   private:
    friend queue_state;

    void number_ended() noexcept {
      if constexpr (observed)
        for (auto* w = ended_.front(); w != nullptr; w = outcomes::next(*w))
          if (auto& end = static_cast<place*>(w)->end; end.sequence == 0)
            end = {++state_->sequence_, depth(), capacity(), state_->core_.predicted_wait(w->priority())};
    }
    /// For all who have left the line, before anybody can see that they have.
    void bind_ended() noexcept {
      for (auto* w = ended_.front(); w != nullptr; w = outcomes::next(*w)) {
        auto& p = *static_cast<place*>(w);
        if (!p.bind(*state_)) continue;
        if (p.at_once()) p.left_line();
        if (w->granted() != nullptr) share();
      }
    }
    void finish() noexcept;
    void deliver() noexcept;
    void tell_observer(outcomes& told) noexcept;
    void tell_notes_before(std::uint64_t sequence, std::size_t& next) noexcept;

    queue_state* state_;
    std::optional<std::uint64_t> epoch_;
    outcomes ended_;
    std::vector<std::shared_ptr<idle_watch>> idle_watches_;
    [[no_unique_address]] std::conditional_t<observed, std::array<std::optional<event>, 4>, std::array<char, 0>>
        notes_{};
    std::uint32_t shares_dropped_ = 0;
    std::uint32_t noted_ = 0;
    std::unique_lock<Mutex> lock_;
  };

  // -- lease_owner, hold_owner

  void release(grant const& held, service_sample const* sample) noexcept override {
    if constexpr (!observed)
      if (release_to_nobody(held, sample)) return;
    release_to_someone(held, sample);
  }
  KVLANE_NOINLINE void release_to_someone(grant const& held, service_sample const* sample) noexcept {
    transaction t{*this};
    t.advance_if_anyone_waits();
    if (sample != nullptr) core_.completed(held, *sample);
    core_.release(held);
    t.note([&] {
      return events::released{0,         held.tag,    held.flow,
                              held.lane, held.tokens, sample == nullptr ? std::nullopt : std::optional{*sample}};
    });
    t.dispatch();
    t.unshare();
  }
  bool try_grow(grant& held, std::uint64_t total) noexcept override {
    transaction t{*this};
    t.advance_if_anyone_waits();
    auto const before = held.tokens;
    auto const grew = core_.try_grow(held, total);
    t.note([&] { return events::grown{0, held.tag, held.flow, held.lane, before, held.tokens}; });
    t.dispatch();
    return grew;
  }
  void shrink(grant& held, std::uint64_t total) noexcept override {
    transaction t{*this};
    t.advance_if_anyone_waits();
    core_.shrink(held, total);
    t.dispatch();
  }
  // Nobody may run for it who could not before: no event.
  void progress(grant const& held, std::uint64_t decode_tokens) noexcept override {
    std::lock_guard const lock{mutex_};
    core_.progressed(held, decode_tokens, clock_());
  }
  void end_hold() noexcept override {
    transaction t{*this};
    t.advance_if_anyone_waits();
    core_.end_hold();
    t.dispatch();
    t.unshare();
  }

  // -- place_owner

  std::optional<rejection> cancel(waiter_base& w) noexcept override { return take_out(static_cast<place&>(w), false); }
  void leave(waiter_base& w) noexcept override {
    if (!forget(static_cast<place&>(w))) take_out(static_cast<place&>(w), true);
    static_cast<place&>(w).let_go();
  }
  bool waiting(waiter_base const& w) noexcept override {
    std::lock_guard const lock{mutex_};
    return static_cast<place const&>(w).in_line();
  }
  bool rescore(waiter_base& w, std::uint64_t saved_cost) noexcept override {
    transaction t{*this};
    t.advance_if_anyone_waits();
    auto& waiter = static_cast<place&>(w);
    auto const waits = waiter.in_line();
    if (waits) core_.rescore(waiter, saved_cost);
    t.dispatch();
    return waits;
  }
  std::optional<waiter_info> info(waiter_base const& w) noexcept override {
    std::lock_guard const lock{mutex_};
    auto const& waiter = static_cast<place const&>(w);
    return waiter.in_line() ? std::optional{core_.info(waiter, clock_())} : std::nullopt;
  }

  void share() noexcept override {
    std::lock_guard const lock{mutex_};
    ++shares_;
  }
  void unshare() noexcept override {
    std::unique_lock lock{mutex_};
    auto const last = --shares_ == 0;
    lock.unlock();
    if (last) delete this;
  }
  std::size_t expire() noexcept override {
    transaction t{*this};
    t.advance_if_anyone_waits();
    t.dispatch();
    std::size_t expired = 0;
    for (auto const* w = t.ended().front(); w != nullptr; w = outcomes::next(*w))
      if (w->granted() == nullptr) ++expired;
    return expired;
  }
  std::optional<time_point> next_deadline() noexcept override {
    std::lock_guard const lock{mutex_};
    return core_.next_deadline();
  }
  time_point now() noexcept override {
    std::lock_guard const lock{mutex_};
    return clock_();
  }

  // -- for the queue

  /// The common case on its own, without the frame of a transaction: nobody waits and it may run. Then a share was added
  /// for its lease.
  [[nodiscard]] bool take_at_once(request const& r, grant& granted) noexcept
    requires(!observed)
  {
    std::lock_guard const lock{mutex_};
    if (!core_.take_at_once(r, granted)) return false;
    ++shares_;
    return true;
  }

  /// For questions: the core under the lock.
  template <class F>
  decltype(auto) ask(F&& f) {
    std::lock_guard const lock{mutex_};
    return std::forward<F>(f)(core_, clock_);
  }
  /// Gives up the share of a queue object, after a round of probing that goes on has ended.
  void abandon() noexcept {
    transaction t{*this};
    probe_done_.wait(t.lock_, [this] { return !probing_; });
    t.unshare();
  }
  void attach(std::unique_ptr<cache_probe> cache) {
    std::lock_guard const lock{mutex_};
    // Earlier ones stay: another thread may be about to ask them for their epoch.
    caches_.push_back(std::move(cache));
    probed_epoch_.reset();
    cache_.store(caches_.back().get(), std::memory_order_release);
  }
  void watch_idle(std::shared_ptr<idle_watch> watch) {
    transaction t{*this};
    t.advance_if_anyone_waits();
    t.dispatch();
    idle_watches_.push_back(std::move(watch));
  }
  void forget_idle(std::shared_ptr<idle_watch> const& watch) noexcept {
    std::lock_guard const lock{mutex_};
    std::erase(idle_watches_, watch);
  }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  void next_version() noexcept { ++version_; }

 private:
  static constexpr std::size_t probes_per_round = 64;
  static constexpr std::size_t rescores_at_once = 16;
  struct probed {
    place* waiter = nullptr;
    shared_prompt prompt;
    std::optional<std::uint64_t> saved_cost;
  };

  ~queue_state() = default;

  [[nodiscard]] std::optional<std::uint64_t> cache_epoch() noexcept {
    auto* const cache = cache_.load(std::memory_order_acquire);
    return cache == nullptr ? std::nullopt : std::optional{cache->epoch()};
  }
  /// The other half of take_at_once: nobody waits for what comes back, nor for the queue to be idle.
  [[nodiscard]] bool release_to_nobody(grant const& held, service_sample const* sample) noexcept {
    std::unique_lock lock{mutex_};
    if (core_.anyone_waits() || !idle_watches_.empty()) return false;
    if (sample != nullptr) core_.completed(held, *sample);
    core_.release(held);
    auto const last = --shares_ == 0;
    lock.unlock();
    if (last) delete this;
    return true;
  }
  /// The common end of a ticket: its waiter has had its outcome, and nothing changes.
  [[nodiscard]] bool forget(place const& w) noexcept {
    std::unique_lock lock{mutex_};
    if (w.in_line()) return false;
    auto const last = --shares_ == 0;
    lock.unlock();
    if (last) delete this;
    return true;
  }
  void probe(transaction& t) noexcept;
  std::optional<rejection> take_out(place& w, bool give_up_share) noexcept;

  Mutex mutex_;
  core_type core_;
  [[no_unique_address]] Observer observer_;
  [[no_unique_address]] Clock clock_;
  std::uint64_t shares_ = 1;  // the queue object's; then one for each lease, ticket and hold
  std::uint64_t sequence_ = 0;
  std::uint64_t version_ = 0;
  bool was_idle_ = true;
  bool probing_ = false;
  std::optional<std::uint64_t> probed_epoch_;
  std::atomic<cache_probe*> cache_{nullptr};
  std::vector<std::unique_ptr<cache_probe>> caches_;
  std::condition_variable_any probe_done_;
  std::vector<std::shared_ptr<idle_watch>> idle_watches_;
};

/// Wraps every grant, unlocks, delivers, and frees the state when nobody has a share of it any more.
template <class Policy, class Observer, class Mutex, class Clock>
void queue_state<Policy, Observer, Mutex, Clock>::transaction::finish() noexcept {
  auto& s = *state_;
  auto const idle = s.core_.idle();
  if constexpr (!observed)
    if (ended_.empty() && !(idle && !s.idle_watches_.empty())) {
      auto const last = (s.shares_ -= shares_dropped_) == 0;
      lock_.unlock();
      if (last) delete &s;
      return;
    }
  bind_ended();
  number_ended();
  if (idle && !s.was_idle_) note([] { return events::idle{}; });
  s.was_idle_ = idle;
  if (idle) idle_watches_.swap(s.idle_watches_);
  // An observer lives in the state: then this thread's share is given up only after it has been told.
  if constexpr (observed) share();
  s.shares_ -= std::exchange(shares_dropped_, observed ? 1U : 0U);
  auto const last = s.shares_ == 0;
  lock_.unlock();
  deliver();
  if constexpr (observed) {
    lock_.lock();
    s.shares_ -= shares_dropped_;
    auto const last_now = s.shares_ == 0;
    lock_.unlock();
    if (last_now) delete &s;
  } else {
    if (last) delete &s;
  }
}

/// Shells first, for they only pass things on; then observers; then callbacks, through this thread's loop.
template <class Policy, class Observer, class Mutex, class Clock>
void queue_state<Policy, Observer, Mutex, Clock>::transaction::deliver() noexcept {
  if constexpr (observed)
    for (auto* w = ended_.front(); w != nullptr; w = outcomes::next(*w)) static_cast<place*>(w)->keep();
  outcomes told;
  auto& loop = callback_loop::of_this_thread();
  while (auto* const w = ended_.pop_front()) {
    auto* const p = static_cast<place*>(w);
    if constexpr (observed) told.push_back(*p);
    if (p->at_once())
      p->run();
    else
      loop.push(*p);
  }
  for (auto const& watch : idle_watches_) watch->notify();
  if constexpr (observed) tell_observer(told);
  loop.run();
}

/// In the order of the sequence numbers, which is the order in which things happened.
template <class Policy, class Observer, class Mutex, class Clock>
void queue_state<Policy, Observer, Mutex, Clock>::transaction::tell_observer(outcomes& told) noexcept {
  std::size_t next_note = 0;
  while (auto* const w = told.pop_front()) {
    auto& p = *static_cast<place*>(w);
    tell_notes_before(p.end.sequence, next_note);
    if (auto const* const g = p.granted()) {
      state_->observer_(
          event{events::admitted{p.end.sequence, g->tag, g->flow, g->priority, g->lane, g->tokens, g->waited,
                                 g->overtaken, p.end.depth, p.end.capacity, p.end.predicted_wait}});
    } else {
      auto const& why = std::get<rejection>(p.outcome());
      if (why.code() == errc::timed_out)
        state_->observer_(event{events::expired{p.end.sequence, p.flow(), why}});
      else
        state_->observer_(event{events::refused{p.end.sequence, p.flow(), why}});
    }
    p.let_go();
  }
  tell_notes_before(~std::uint64_t{0}, next_note);
}

template <class Policy, class Observer, class Mutex, class Clock>
void queue_state<Policy, Observer, Mutex, Clock>::transaction::tell_notes_before(std::uint64_t sequence,
                                                                                 std::size_t& next) noexcept {
  for (; next != noted_; ++next) {
    auto const& e = *notes_[next];
    if (std::visit([](auto const& any) { return any.sequence; }, e) > sequence) return;
    state_->observer_(e);
  }
}

/// One round: the best waiters are asked for while the lock is open, and those still in line then get their new cost.
template <class Policy, class Observer, class Mutex, class Clock>
void queue_state<Policy, Observer, Mutex, Clock>::probe(transaction& t) noexcept {
  if (!t.epoch_ || probing_ || !core_.anyone_waits() || probed_epoch_ == t.epoch_) return;
  probed_epoch_ = std::exchange(t.epoch_, std::nullopt);
  probing_ = true;
  std::array<probed, probes_per_round> round;
  std::size_t marked = 0;
  core_.for_each_in_order([&](core_waiter<Policy>& w) {
    auto& p = static_cast<place&>(w);
    p.keep();
    round[marked++] = {&p, p.shared(), std::nullopt};
    return marked != round.size();
  });
  auto& cache = *cache_.load(std::memory_order_acquire);
  t.unlocked([&]() noexcept {
    for (std::size_t i = 0; i != marked; ++i) round[i].saved_cost = cache.saved_cost(round[i].prompt.view());
  });
  for (std::size_t i = 0; i != marked; ++i) {
    if (i % rescores_at_once == rescores_at_once - 1) t.unlocked([] {});  // others need not wait for all of them
    auto& [waiter, prompt, saved_cost] = round[i];
    if (saved_cost && waiter->in_line()) core_.rescore(*waiter, *saved_cost);
    waiter->let_go();
  }
  probing_ = false;
  probe_done_.notify_all();
  t.advance_if_anyone_waits();  // time has passed meanwhile
}

/// Takes a waiter out of line for its owner, and with `give_up_share` ends the ticket's share of the state.
template <class Policy, class Observer, class Mutex, class Clock>
std::optional<rejection> queue_state<Policy, Observer, Mutex, Clock>::take_out(place& w, bool give_up_share) noexcept {
  std::optional<rejection> why;
  {
    transaction t{*this};
    if (w.in_line()) {
      t.advance();
      if (w.in_line()) {
        why = core_.cancel(w);
        w.left_line();
        t.note([&] { return events::cancelled{0, w.flow(), *why}; });
      }
      t.dispatch();
    }
    if (give_up_share) t.unshare();
  }
  if (why) {
    w.discard();
    w.let_go();
  }
  return why;
}

}  // namespace kvlane::detail
