#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/snapshot.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace kvlane {

namespace detail {

/// The side of a queue that its tickets talk to, and the shells that keep deadlines for them. `w` is the waiter the ticket
/// was given for, still there or not.
class place_owner {
 public:
  virtual std::optional<rejection> cancel(waiter_base& w) noexcept = 0;
  virtual bool waiting(waiter_base const& w) noexcept = 0;
  virtual bool rescore(waiter_base& w, std::uint64_t saved_cost) noexcept = 0;
  virtual std::optional<waiter_info> info(waiter_base const& w) noexcept = 0;
  virtual void leave(waiter_base& w) noexcept = 0;

  virtual void share() noexcept = 0;
  virtual void unshare() noexcept = 0;
  virtual std::size_t expire() noexcept = 0;
  [[nodiscard]] virtual std::optional<time_point> next_deadline() noexcept = 0;
  [[nodiscard]] virtual time_point now() noexcept = 0;

 protected:
  ~place_owner() = default;
};

/// Keeps what lies behind the tickets of a queue alive, so that its deadlines can be kept whatever becomes of the queue.
class owner_share {
 public:
  explicit owner_share(place_owner& owner) noexcept : owner_{&owner} { owner.share(); }
  owner_share(owner_share const&) = delete;
  owner_share& operator=(owner_share const&) = delete;
  ~owner_share() { owner_->unshare(); }

  [[nodiscard]] place_owner* operator->() const noexcept { return owner_; }
  [[nodiscard]] place_owner& operator*() const noexcept { return *owner_; }

 private:
  place_owner* owner_;
};

struct ticket_access;

}  // namespace detail

/// A place in line. Move-only; destroying it gives the place up.
///
///     kvlane::ticket place;
///     auto outcome = queue.enqueue(r, place, [](kvlane::admission a) { serve(std::move(a)); });
///     if (!outcome) clients[id].place = std::move(place);   // it waits; erasing the client cancels it
///
/// Thread safety: distinct objects are safe; shared objects are not. Lifetime: may outlive the queue object and its own
/// outcome, and may be assigned or destroyed inside the completion it stands for.
///
/// Whoever moves up because of a cancellation is told inside the call: its callback may find the container from which the
/// ticket is just being erased. Take it out first (`extract`, or move it to a local), then let it die.
class [[nodiscard]] ticket {
 public:
  ticket() noexcept = default;
  ticket(ticket&& other) noexcept
      : owner_{std::exchange(other.owner_, nullptr)}, waiter_{std::exchange(other.waiter_, nullptr)} {}
  ticket& operator=(ticket&& other) noexcept {
    if (this == &other) return *this;
    ticket const old{std::move(*this)};
    owner_ = std::exchange(other.owner_, nullptr);
    waiter_ = std::exchange(other.waiter_, nullptr);
    return *this;
  }
  ~ticket() { leave(); }

  /// Takes the request out of line. True when this call did it: its completion will never run and has been destroyed.
  /// False when it no longer waits: another outcome has won, and its completion may be running. Never waits for one.
  bool cancel() noexcept { return cancel_with_reason().has_value(); }

  /// As `cancel`, and says what a refusal with errc::cancelled would: how long it had waited.
  [[nodiscard]] std::optional<rejection> cancel_with_reason() noexcept {
    return owner_ == nullptr ? std::nullopt : owner_->cancel(*waiter_);
  }

  /// Whether it still stands in line. By the time this returns it may not.
  [[nodiscard]] bool waiting() const noexcept { return owner_ != nullptr && owner_->waiting(*waiter_); }

  /// Tells what the prefix cache would save now, which may change its place at once. Costs above 2^48 - 1 count as that.
  /// False when it no longer waits.
  bool set_saved_cost(std::uint64_t saved_cost) noexcept {
    return owner_ != nullptr && owner_->rescore(*waiter_, saved_cost);
  }

  /// Where it stands and what it waits for; nothing when it no longer waits. Costs a walk along the line.
  [[nodiscard]] std::optional<waiter_info> info() const noexcept {
    return owner_ == nullptr ? std::nullopt : owner_->info(*waiter_);
  }

 private:
  friend detail::ticket_access;

  void leave() noexcept {
    if (auto* owner = std::exchange(owner_, nullptr)) owner->leave(*std::exchange(waiter_, nullptr));
  }

  detail::place_owner* owner_ = nullptr;
  waiter_base* waiter_ = nullptr;
};

namespace detail {

/// How queues bind tickets, and shells look behind them.
struct ticket_access {
  /// Precondition: the ticket is empty.
  static void bind(ticket& t, place_owner& owner, waiter_base& w) noexcept {
    t.owner_ = &owner;
    t.waiter_ = &w;
  }
  static void forget(ticket& t) noexcept {
    t.owner_ = nullptr;
    t.waiter_ = nullptr;
  }
  [[nodiscard]] static place_owner* owner(ticket const& t) noexcept { return t.owner_; }
  /// Null for an empty ticket. What does not change while it waits may be read without the lock.
  [[nodiscard]] static waiter_base const* waiter(ticket const& t) noexcept { return t.waiter_; }
};

}  // namespace detail

}  // namespace kvlane
