#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/work.hpp>

#include <cstdint>
#include <utility>

namespace kvlane {

/// What an admission took: plain numbers, owned by nobody. The core returns grants; a queue wraps each into a lease.
/// Whoever drives an admission_core directly gives every grant back to it exactly once.
struct grant {
  lane_id lane = 0;
  std::uint32_t priority = 0;
  std::uint32_t overtaken = 0;  ///< how often it was overtaken while it waited
  std::uint64_t tokens = 0;     ///< KV tokens reserved now
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint64_t arrival = 0;        ///< its number in the order of arrivals; kept by readmission
  std::uint64_t enqueued_turn = 0;  ///< the turn in which it arrived; kept by readmission
  work expected;                    ///< what prediction counts for it until it is released
  duration waited = duration::zero();
};

namespace detail {

/// The side of a queue that its leases talk to.
class lease_owner {
 public:
  virtual void release(grant const& held, service_sample const* sample) noexcept = 0;
  virtual bool try_grow(grant& held, std::uint64_t total) noexcept = 0;
  virtual void shrink(grant& held, std::uint64_t total) noexcept = 0;
  virtual void progress(grant const& held, std::uint64_t decode_tokens) noexcept = 0;

 protected:
  ~lease_owner() = default;
};

struct lease_access;

}  // namespace detail

/// A lane and KV tokens, held for as long as the object lives. Move-only; gives everything back when it dies.
///
///     if (auto slot = queue.try_admit({.prompt_tokens = 100, .max_tokens = 50})) {
///       auto const measured = engine.run(slot->lane());
///       slot->complete(measured);          // lane and tokens go back, and the next predictions are better
///     }
///
/// Thread safety: distinct objects are safe, also of one queue; shared objects are not. Lifetime: may outlive the queue
/// object. Giving back hands the capacity over to waiters at once, so callbacks of theirs may run inside `release`,
/// `complete`, `shrink_to` and the destructor: hold no lock there that such a callback takes.
class [[nodiscard]] lease {
 public:
  lease() noexcept {}
  lease(lease&& other) noexcept : owner_{std::exchange(other.owner_, nullptr)} {
    if (owner_ != nullptr) grant_ = other.grant_;
  }
  lease& operator=(lease&& other) noexcept {
    if (this == &other) return *this;
    // The old capacity goes back last: what runs then sees this lease in its new state.
    lease const old{std::move(*this)};
    owner_ = std::exchange(other.owner_, nullptr);
    if (owner_ != nullptr) grant_ = other.grant_;
    return *this;
  }
  ~lease() { release(); }

  /// Whether it holds anything: false once released, completed, readmitted or moved from.
  [[nodiscard]] explicit operator bool() const noexcept { return owner_ != nullptr; }

  /// The lane; 0 once the lease is empty, as are all other numbers.
  [[nodiscard]] lane_id lane() const noexcept { return held().lane; }
  /// KV tokens held, in whole blocks.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return held().tokens; }
  [[nodiscard]] std::uint64_t tag() const noexcept { return held().tag; }
  /// How long the request stood in line, in milliseconds.
  [[nodiscard]] fractional_ms waited() const noexcept { return held().waited; }
  /// How often a later request of its priority or below was admitted before it.
  [[nodiscard]] std::uint32_t overtaken() const noexcept { return held().overtaken; }

  /// Keeps `total` tokens, rounded up to blocks, and gives the rest back. Asking for more than is held changes nothing.
  /// Returns false only for an empty lease.
  bool shrink_to(std::uint64_t total) noexcept {
    if (owner_ == nullptr) return false;
    if (total < grant_.tokens) owner_->shrink(grant_, total);
    return true;
  }

  /// Asks for `total` tokens in all, rounded up to blocks. Free tokens go to it ahead of every waiter, also during a
  /// hold, a drain and after close, and out of the growth reserve. False when too few are free (or the lease is empty):
  /// then preempt and readmit, or end the reply. Asking for less than is held changes nothing and is true.
  [[nodiscard]] bool try_grow_to(std::uint64_t total) noexcept {
    if (owner_ == nullptr) return false;
    return total <= grant_.tokens || owner_->try_grow(grant_, total);
  }

  /// Reports that the reply has `decode_tokens` tokens by now, since this admission. Predictions live on it: they count what
  /// is really left, and know the pace of the engine while nobody has ended yet. Cheap enough for every step of an engine,
  /// and useful if called twice a second. Does nothing once empty. Never blocks for longer than the queue's mutex.
  void progress(std::uint64_t decode_tokens) noexcept {
    if (owner_ != nullptr) owner_->progress(grant_, decode_tokens);
  }

  /// Gives everything back and reports what the service took, for prediction. Does nothing once empty.
  void complete(service_sample const& sample) noexcept {
    if (auto* owner = std::exchange(owner_, nullptr)) owner->release(grant_, &sample);
  }

  /// Gives everything back. Nothing is learned from it. Does nothing once empty.
  void release() noexcept {
    if (auto* owner = std::exchange(owner_, nullptr)) owner->release(grant_, nullptr);
  }

 private:
  friend detail::lease_access;
  lease(detail::lease_owner& owner, grant const& held) noexcept : owner_{&owner}, grant_{held} {}

  [[nodiscard]] grant const& held() const noexcept {
    static constexpr grant nothing{};
    return owner_ == nullptr ? nothing : grant_;
  }

  detail::lease_owner* owner_ = nullptr;
  // Not initialized while there is no owner: an admission writes it in place, and clearing it first would take as long as
  // a tenth of the whole admission.
  union {
    grant grant_;
  };
};

namespace detail {

/// How queues make leases and take them apart.
struct lease_access {
  [[nodiscard]] static lease make(lease_owner& owner, grant const& held) noexcept { return lease{owner, held}; }
  [[nodiscard]] static lease_owner* owner(lease const& l) noexcept { return l.owner_; }
  [[nodiscard]] static grant const& held(lease const& l) noexcept { return l.held(); }
  /// Where a grant can be written in place, before `own` makes the lease hold it.
  [[nodiscard]] static grant& blank(lease& l) noexcept { return l.grant_; }
  static void own(lease& l, lease_owner& owner) noexcept { l.owner_ = &owner; }
  static void forget(lease& l) noexcept { l.owner_ = nullptr; }
};

}  // namespace detail

}  // namespace kvlane
