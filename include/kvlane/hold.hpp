#pragma once

#include <kvlane/fwd.hpp>

#include <utility>

namespace kvlane {

namespace detail {

/// The side of a queue that its holds talk to.
class hold_owner {
 public:
  virtual void end_hold() noexcept = 0;

 protected:
  ~hold_owner() = default;
};

}  // namespace detail

/// While any of these lives, its queue admits nobody; the end of the last one is followed by one decision. Expiry and
/// growth go on. Move-only.
///
///     auto hold = queue.hold_dispatch();           // preempt B, so that A can grow
///     queue.readmit(std::move(b), again, place, completion);
///     grew = a.try_grow_to(4096);
///     hold.release();                              // now whoever fits is admitted
///
/// Thread safety: distinct objects are safe, shared objects are not. Lifetime: may outlive the queue object.
class [[nodiscard]] dispatch_hold {
 public:
  dispatch_hold() noexcept = default;
  explicit dispatch_hold(detail::hold_owner& owner) noexcept : owner_{&owner} {}
  dispatch_hold(dispatch_hold&& other) noexcept : owner_{std::exchange(other.owner_, nullptr)} {}
  dispatch_hold& operator=(dispatch_hold&& other) noexcept {
    if (this == &other) return *this;
    release();
    owner_ = std::exchange(other.owner_, nullptr);
    return *this;
  }
  ~dispatch_hold() { release(); }

  /// Ends the hold. Does nothing the second time. Callbacks of those who are admitted may run inside.
  void release() noexcept {
    if (auto* const owner = std::exchange(owner_, nullptr)) owner->end_hold();
  }
  [[nodiscard]] explicit operator bool() const noexcept { return owner_ != nullptr; }

 private:
  detail::hold_owner* owner_ = nullptr;
};

}  // namespace kvlane
