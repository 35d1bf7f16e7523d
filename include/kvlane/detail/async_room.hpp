#pragma once

#include <kvlane/clock.hpp>
#include <kvlane/detail/async_place.hpp>
#include <kvlane/fwd.hpp>
#include <kvlane/ticket.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace kvlane::detail {

/// An operation that has its outcome and could not be posted: it is tried again.
class parked_operation {
 public:
  /// Posts it, or parks it again.
  virtual void launch() noexcept = 0;
  /// Destroys it, and its handler unheard.
  virtual void drop() noexcept = 0;

  parked_operation* next_parked = nullptr;  // the room's own

 protected:
  ~parked_operation() = default;
};

/// Where an operation sits in a room while it waits.
struct async_seat {
  std::shared_ptr<async_place> const* place = nullptr;
  async_seat* before = nullptr;
  async_seat* after = nullptr;
  bool taken = false;
};

/// The operations that wait in one queue and need one execution context, and the timer that keeps their deadlines.
///
/// An operation that was taken out of line is *in flight* until it has been posted, parked or destroyed. It is counted
/// under the queue's lock: so a context that dies, and finds an operation no longer in line, knows that it has to wait.
///
/// The room's mutex is never held together with the queue's.
template <class Net>
class async_room {
 public:
  async_room() = default;
  async_room(async_room const&) = delete;
  async_room& operator=(async_room const&) = delete;

  void enter(async_seat& s) noexcept {
    std::lock_guard const lock{mutex_};
    s.after = std::exchange(first_, &s);
    if (s.after != nullptr) s.after->before = &s;
    s.taken = true;
  }
  /// The last one to leave stops the timer, or `run()` would not return.
  void leave(async_seat& s) noexcept {
    std::shared_ptr<owner_share> unneeded;  // let go after unlocking: that takes the queue's lock
    std::unique_lock lock{mutex_};
    if (s.taken) unlink(s);  // a context that shuts down has done so already
    if (first_ == nullptr) unneeded = stop_keeping_deadlines();
    launch_parked(lock);
  }

  void take_off() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  /// The room may be gone afterwards.
  void land() noexcept { in_flight_.fetch_sub(1, std::memory_order_release); }

  /// Has the queue expire whoever is overdue at `deadline` (of the queue's clock). \throws std::bad_alloc and what the
  /// executor throws
  template <class Executor>
  void keep_deadline(time_point deadline, place_owner& owner, Executor const& executor) {
    {
      std::lock_guard const lock{mutex_};
      if (keeps(deadline, owner)) return;
    }
    auto share = std::make_shared<owner_share>(owner);
    auto const wait = until(deadline, owner);
    std::lock_guard const lock{mutex_};
    // Its waiter may have left, or another may have been earlier, while the mutex was free.
    if (first_ == nullptr || keeps(deadline, owner)) return;
    make_timer(executor);
    owner_.swap(share);
    arm(deadline, wait);
  }

  /// Keeps an operation that could not be posted, to try again when the next one leaves, and soon in any case.
  /// \param executor the one to make a timer for, should there be none
  template <class Executor>
  void park(parked_operation& p, Executor const& executor) noexcept {
    std::lock_guard const lock{mutex_};
    p.next_parked = nullptr;
    (first_parked_ == nullptr ? first_parked_ : last_parked_->next_parked) = &p;
    last_parked_ = &p;
    // If there is no memory for a timer either, whoever leaves next will try.
    static_cast<void>(succeeds([&] {
      make_timer(Net::for_timer(executor));
      if (kvlane::saturating_add(std::chrono::steady_clock::now(), pause) < rings_at_) arm(armed_for_, pause);
    }));
  }

  /// Ends every operation that needs the dying context, without posting there, and waits for those in flight.
  void shut_down() noexcept {
    for (;;) {
      if (auto const place = next_seated())
        place->abandon();
      else if (auto* const p = next_parked())
        p->drop(), land();
      else if (idle())
        break;
      else
        std::this_thread::yield();
    }
    timer_.reset();
  }

  /// Whether nobody refers to the room any more, the timer included.
  [[nodiscard]] bool unused() noexcept {
    std::lock_guard const lock{mutex_};
    return nobody_is_here() && waits_begun_ == waits_ended_;
  }

 private:
  using timer_type = typename Net::steady_timer;
  static constexpr std::chrono::milliseconds pause{10};
  static constexpr auto latest = time_point::max() - duration{1};  // that a timer rings: `max` is never

  /// What the timer calls. Only the latest wait counts: an earlier one may be on its way already when it is cancelled.
  struct bell {
    async_room* room;
    std::uint64_t wait;
    template <class Error>
    void operator()(Error const&) const {
      room->take_off();  // what it does may leave the room unused, to be freed meanwhile
      room->ring(wait);
      room->land();
    }
  };

  /// Whether `f` did not throw.
  template <class F>
  static bool succeeds(F const& f) noexcept {
    try {
      f();
      return true;
    } catch (...) {
      return false;
    }
  }

  /// None sits here, is parked or in flight.
  [[nodiscard]] bool nobody_is_here() const noexcept {
    return first_ == nullptr && first_parked_ == nullptr && in_flight_.load(std::memory_order_acquire) == 0;
  }
  [[nodiscard]] bool idle() noexcept {
    std::lock_guard const lock{mutex_};
    return nobody_is_here();
  }

  void unlink(async_seat& s) noexcept {
    (s.before == nullptr ? first_ : s.before->after) = s.after;
    if (s.after != nullptr) s.after->before = s.before;
    s.before = s.after = nullptr;
    s.taken = false;
  }
  [[nodiscard]] std::shared_ptr<async_place> next_seated() noexcept {
    std::lock_guard const lock{mutex_};
    if (first_ == nullptr) return nullptr;
    auto place = *first_->place;
    unlink(*first_);
    return place;
  }
  [[nodiscard]] parked_operation* next_parked() noexcept {
    std::lock_guard const lock{mutex_};
    auto* const p = first_parked_;
    if (p == nullptr) return nullptr;
    first_parked_ = p->next_parked;
    take_off();
    return p;
  }
  /// Tries each of those that are parked now, once.
  void launch_parked(std::unique_lock<std::mutex>& lock) noexcept {
    std::size_t many = 0;
    for (auto const* p = first_parked_; p != nullptr; p = p->next_parked) ++many;
    lock.unlock();
    for (; many != 0; --many) {
      auto* const p = next_parked();
      if (p == nullptr) return;
      p->launch();
      land();
    }
  }

  // -- the timer

  /// From now until `deadline`, as the queue's clock has it: so long it will be waited for in real time.
  [[nodiscard]] static duration until(time_point deadline, place_owner& owner) noexcept {
    return std::max(duration::zero(), kvlane::saturating_sub(deadline, owner.now()));
  }
  [[nodiscard]] bool keeps(time_point deadline, place_owner const& owner) const noexcept {
    return owner_ && &**owner_ == &owner && armed_for_ <= deadline;
  }
  template <class Executor>
  void make_timer(Executor const& executor) {
    if (!timer_) timer_.emplace(executor);
  }
  /// If it throws, the wait before it has been given up all the same. Its bell is on its way then and arms again.
  void arm(time_point deadline, duration wait) {
    rings_at_ = armed_for_ = time_point::max();
    if (first_parked_ != nullptr) wait = std::min<duration>(wait, pause);
    auto const at = std::min(kvlane::saturating_add(std::chrono::steady_clock::now(), wait), latest);
    timer_->expires_at(at);
    timer_->async_wait(bell{this, waits_begun_ + 1});
    ++waits_begun_;
    rings_at_ = at;
    armed_for_ = deadline;
  }
  [[nodiscard]] std::shared_ptr<owner_share> stop_keeping_deadlines() noexcept {
    armed_for_ = time_point::max();
    // Those that are parked still need the timer.
    if (rings_at_ != time_point::max() && first_parked_ == nullptr) {
      rings_at_ = time_point::max();
      timer_->cancel();
    }
    return std::exchange(owner_, nullptr);
  }
  void ring(std::uint64_t wait) noexcept {
    std::unique_lock lock{mutex_};
    ++waits_ended_;
    if (wait != waits_begun_) return;
    rings_at_ = armed_for_ = time_point::max();
    auto const owner = owner_;
    launch_parked(lock);
    if (!owner) return;
    (*owner)->expire();
    auto const next = (*owner)->next_deadline();
    if (!next) return;
    auto const rest = until(*next, **owner);
    lock.lock();
    // Without memory for a wait, the next to join with a deadline starts the timer again.
    if (owner_ == owner && *next < armed_for_) static_cast<void>(succeeds([&] { arm(*next, rest); }));
  }

  std::mutex mutex_;
  async_seat* first_ = nullptr;
  parked_operation* first_parked_ = nullptr;
  parked_operation* last_parked_ = nullptr;
  std::atomic<std::size_t> in_flight_{0};

  std::optional<timer_type> timer_;
  std::shared_ptr<owner_share> owner_;        // whose deadlines are kept, while somebody sits here
  time_point armed_for_ = time_point::max();  // the deadline, by the queue's clock
  time_point rings_at_ = time_point::max();   // when the timer rings, in real time
  std::uint64_t waits_begun_ = 0;
  std::uint64_t waits_ended_ = 0;
};

}  // namespace kvlane::detail
