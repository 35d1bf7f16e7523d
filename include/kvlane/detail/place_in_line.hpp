#pragma once

#include <kvlane/detail/callback_loop.hpp>
#include <kvlane/detail/core_waiter.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/result.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace kvlane::detail {

/// A completion of one of the library's own shells: it runs no user code, so it need not wait for the callback loop.
template <class C>
concept shell_completion = requires { typename C::is_shell_completion; };

/// A shell that has to know, still under the lock, that its waiter has been taken out of line: whoever did it is about to
/// tell the completion, or to discard it.
template <class C>
concept counts_departures = shell_completion<C> && requires(C& c) {
  { c.left_line() } noexcept;
};

/// What observers will be told of a waiter's end, noted under the lock.
struct end_of_wait {
  std::uint64_t sequence = 0;
  std::uint64_t depth = 0;
  std::uint64_t capacity = 0;
  std::optional<fractional_ms> predicted_wait;
};

/// A waiter of a queue: what the core keeps, and whom to tell. Shared by the line (or the thread that delivers its
/// outcome) and by its ticket; freed when all have let go.
template <class Policy>
class place_in_line : public core_waiter<Policy>, public deferred_call {
 public:
  explicit place_in_line(bool at_once) noexcept : at_once_{at_once} {}
  virtual ~place_in_line() = default;

  /// Whether its completion is a shell's.
  [[nodiscard]] bool at_once() const noexcept { return at_once_; }

  void keep() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// Whose lease it will get. Set under the lock, with a share of the queue's state if it was granted. False when it was
  /// set before.
  bool bind(lease_owner& owner) noexcept { return std::exchange(owner_, &owner) == nullptr; }

  /// Its outcome as the value to hand over, once.
  [[nodiscard]] admission take_outcome() noexcept {
    if (auto const* const held = this->granted()) return lease_access::make(*owner_, *held);
    return std::get<rejection>(this->outcome());
  }

  /// Called under the lock when it has been taken out of line, for whatever reason. Of interest to shells only.
  virtual void left_line() noexcept {}

  /// Destroys the completion without running it.
  virtual void discard() noexcept = 0;

  end_of_wait end;

 private:
  std::atomic<std::uint32_t> owners_{1};
  bool at_once_;
  lease_owner* owner_ = nullptr;
};

template <class Policy, class Completion>
  requires std::invocable<Completion&, admission>
class place_with final : public place_in_line<Policy> {
 public:
  template <class C>
  place_with(std::in_place_t, C&& completion)
      : place_in_line<Policy>{shell_completion<Completion>}, completion_{std::in_place, std::forward<C>(completion)} {}

  // In place, and the place stays until it has returned: the completion may assign or destroy its own ticket.
  void run() noexcept override {
    (*completion_)(this->take_outcome());
    discard();
    this->let_go();
  }
  void discard() noexcept override { completion_.reset(); }
  void left_line() noexcept override {
    if constexpr (counts_departures<Completion>) completion_->left_line();
  }

 private:
  std::optional<Completion> completion_;
};

}  // namespace kvlane::detail
