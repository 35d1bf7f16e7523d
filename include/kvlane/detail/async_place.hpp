#pragma once

#include <kvlane/detail/callback_loop.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/ticket.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

namespace kvlane::detail {

/// An asynchronous operation, as seen by those who may end its wait. Each of the two ends it; it may be gone afterwards.
class async_waiter {
 public:
  /// Its waiter was taken out of line: tells its handler why.
  virtual void refuse(rejection const& why) noexcept = 0;
  /// Its waiter was taken out of line because a context dies: destroys it, and its handler unheard.
  virtual void abandon() noexcept = 0;

 protected:
  ~async_waiter() = default;
};

/// The place in line of an asynchronous operation, shared by all who may want to give it up, from any thread: the
/// operation itself, whoever emits its cancellation signal, and the contexts that it needs. It outlives the operation;
/// only who has taken the waiter out of line may still touch that.
///
/// The ticket belongs to one thread at a time, and the state says to whom.
class async_place {
 public:
  explicit async_place(async_waiter& operation) noexcept : operation_{&operation} {}
  async_place(async_place const&) = delete;
  async_place& operator=(async_place const&) = delete;
  ~async_place() = default;

  /// The initiating thread's, until it calls `joined`.
  [[nodiscard]] ticket& place() noexcept { return place_; }

  /// The initiating thread has put it into line. Whoever asked for cancellation meanwhile gets it now.
  void joined() noexcept {
    auto before = state::starting;
    if (state_.compare_exchange_strong(before, state::waiting, std::memory_order_acq_rel)) return;
    if (before == state::asked)
      give_up(refuse);
    else
      place_ = ticket{};  // the outcome was faster, and left the ticket to this thread
  }

  /// The initiating thread cannot go on. True when the operation is gone; false when its outcome is on its way.
  [[nodiscard]] bool withdraw() noexcept { return give_up(abandon_one); }

  /// Cancels the operation if it still waits.
  void cancel() noexcept {
    auto now = state::starting;
    do {
      if (now != state::starting && now != state::waiting) return;
    } while (!state_.compare_exchange_weak(now, now == state::starting ? state::asked : state::busy,
                                           std::memory_order_acq_rel));
    if (now == state::waiting) give_up(refuse);
  }

  /// A context of the operation dies: afterwards the operation is gone, or its outcome is on its way.
  void abandon() noexcept {
    auto now = state::waiting;
    while (!state_.compare_exchange_weak(now, state::busy, std::memory_order_acq_rel)) {
      if (now == state::over) return;
      now = state::waiting;
      std::this_thread::yield();  // somebody has the ticket in hand
    }
    give_up(abandon_one);
  }

  /// The handler is about to run: nobody needs the ticket any more.
  void settled() noexcept {
    if (state_.exchange(state::over, std::memory_order_acq_rel) == state::waiting) place_ = ticket{};
  }

 private:
  enum class state : std::uint8_t {
    starting,  ///< the initiating thread has the ticket
    asked,     ///< still so; it shall cancel at once
    waiting,   ///< nobody has the ticket
    busy,      ///< somebody is giving it up
    over,      ///< nobody needs it
  };

  static void refuse(async_waiter& operation, rejection const& why) noexcept { operation.refuse(why); }
  static void abandon_one(async_waiter& operation, rejection const&) noexcept { operation.abandon(); }

  bool give_up(void (*end)(async_waiter&, rejection const&) noexcept) noexcept {
    // Callbacks of those who move up wait until this place is free again: one of them might destroy a context.
    callback_loop::deferral const later;
    auto const why = place_.cancel_with_reason();
    if (why) end(*operation_, *why);
    place_ = ticket{};
    state_.store(state::over, std::memory_order_release);
    return why.has_value();
  }

  async_waiter* operation_;
  std::atomic<state> state_{state::starting};
  ticket place_;
};

}  // namespace kvlane::detail
