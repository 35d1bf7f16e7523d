#pragma once

#include <kvlane/admission_queue.hpp>
#include <kvlane/detail/idle_watch.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>
#include <kvlane/ticket.hpp>
#include <kvlane/waiter_base.hpp>

#include <algorithm>
#include <concepts>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace kvlane {

namespace detail {

[[nodiscard]] inline rejection cancelled_before_asking(request const& r) noexcept {
  refusal_facts facts;
  facts.code = errc::cancelled;
  facts.tag = r.tag;
  return rejection{facts};
}

}  // namespace detail

/// An admission that a thread can wait for: starts when it is made, and is given up when it is destroyed.
///
///     kvlane::pending_admission pending{queue, r};
///     while (!pending.wait_for(100ms))
///       if (client.gone()) pending.cancel();
///     kvlane::admission slot = pending.take();
///
/// It drives its own deadline: nobody else need call `expire()`. With a clock that is not `steady`, waits are measured by
/// the queue's clock and slept in real time.
///
/// Thread safety: `cancel` may be called from any thread; everything else from one at a time. Lifetime: neither copied nor
/// moved; the queue must outlive it (or be closed and left alone until it is destroyed).
template <class Queue>
class [[nodiscard]] pending_admission {
 public:
  /// Blocks on nothing but the queue's mutex. \throws as `enqueue`
  pending_admission(Queue& queue, request const& r) : queue_{queue} {
    if (auto outcome = queue_.enqueue(r, place_, completion{&outcome_}))
      outcome_.settle(std::move(*outcome));
    else
      deadline_ = detail::ticket_access::waiter(place_)->deadline();
  }
  pending_admission(pending_admission const&) = delete;
  pending_admission& operator=(pending_admission const&) = delete;
  /// Gives the request up if it still waits. Never blocks for longer than a hand-over that has begun.
  ~pending_admission() {
    // A cancel that loses means that the outcome is on its way: it must not arrive in a dead object.
    if (!place_.cancel()) wait();
  }

  /// Waits for at most `at_most`. True when the outcome is there.
  bool wait_for(duration at_most) {
    auto const until = saturating_add(std::chrono::steady_clock::now(), at_most);
    while (!outcome_.settled_before(std::min(until, expiry()))) {
      auto const overdue_at = expiry();
      auto const now = std::chrono::steady_clock::now();
      // Overdue comes first: whoever only looks in, with a wait of nothing, shall time out too.
      if (overdue_at > now) {
        if (until <= now) return false;
        continue;
      }
      queue_.expire();
      // Another thread may have expired it and be about to say so: then there is no deadline left to look at.
      if (!place_.waiting()) deadline_ = time_point::max();
    }
    return true;
  }
  /// Waits until the outcome is there.
  void wait() { wait_for(forever); }

  /// The outcome, once: waits for it. Afterwards it is invalid_request, "no request was made".
  [[nodiscard]] admission take() {
    wait();
    return outcome_.take();
  }

  /// Gives up. True when that was in time: the outcome is then errc::cancelled. False when it had another already.
  bool cancel() {
    auto const why = place_.cancel_with_reason();
    if (why) outcome_.settle(*why);
    return why.has_value();
  }

 private:
  struct shared_outcome {
    void settle(admission outcome) noexcept {
      // Notified under the mutex: the waiting thread may destroy this as soon as it sees the outcome.
      std::lock_guard const lock{mutex};
      value = std::move(outcome);
      settled = true;
      changed.notify_all();
    }
    bool settled_before(time_point until) {
      std::unique_lock lock{mutex};
      auto const done = [this] { return settled; };
      if (until != time_point::max()) return changed.wait_until(lock, until, done);
      changed.wait(lock, done);
      return true;
    }
    admission take() {
      std::lock_guard const lock{mutex};
      return std::exchange(value, admission{});
    }

    std::mutex mutex;
    std::condition_variable changed;
    bool settled = false;
    admission value;
  };

  struct completion {
    using is_shell_completion = void;
    void operator()(admission outcome) const noexcept { shared->settle(std::move(outcome)); }
    shared_outcome* shared;
  };

  /// The deadline in real time, whatever the queue's clock.
  [[nodiscard]] time_point expiry() const noexcept {
    if (deadline_ == time_point::max() || std::is_same_v<typename Queue::clock_type, steady>) return deadline_;
    return saturating_add(std::chrono::steady_clock::now(), saturating_sub(deadline_, queue_.now()));
  }

  Queue& queue_;
  time_point deadline_ = time_point::max();
  shared_outcome outcome_;
  ticket place_;
};

/// Waits until `r` is admitted or refused, or `stop` is requested: then the outcome is errc::cancelled, unless another had
/// won. Must not be called from a callback of the queue, nor from the thread that the leases it waits for depend on.
/// \throws as `enqueue`
template <class Queue>
[[nodiscard]] admission admit(Queue& queue, request const& r, std::stop_token stop = {}) {
  if (stop.stop_requested()) return detail::cancelled_before_asking(r);
  pending_admission<Queue> pending{queue, r};
  std::stop_callback const give_up{std::move(stop), [&pending] { pending.cancel(); }};
  return pending.take();
}

/// The same for a client that can only be polled: asks `gone()` every `every` (at least a millisecond) while it waits, and
/// gives up when that is true, or when `stop` is requested. It does not ask when it need not wait. \throws as `enqueue`, and
/// what `gone` throws
template <class Queue, std::predicate Gone>
[[nodiscard]] admission admit(Queue& queue, request const& r, Gone&& gone, duration every, std::stop_token stop = {}) {
  if (stop.stop_requested()) return detail::cancelled_before_asking(r);
  pending_admission<Queue> pending{queue, r};
  std::stop_callback const give_up{std::move(stop), [&pending] { pending.cancel(); }};
  while (!pending.wait_for(std::max<duration>(every, std::chrono::milliseconds{1})))
    if (gone()) pending.cancel();
  return pending.take();
}

/// Waits until no lease is out and nobody waits: true as soon as that is so, false at the moment `until` (of the steady
/// clock, whatever the queue's). Drain or close the queue first, or it may not stay so. \throws std::bad_alloc
template <class Queue>
[[nodiscard]] bool wait_idle(Queue& queue, time_point until) {
  auto const watch = std::make_shared<detail::idle_watch>();
  queue.watch_idle(watch);
  if (watch->wait_until(until)) return true;
  queue.forget_idle(watch);
  return false;
}

}  // namespace kvlane
