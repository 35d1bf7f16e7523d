#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/waiter_base.hpp>

#include <concepts>
#include <cstdint>

namespace kvlane {

/// What a policy is asked for: the best waiter of at least `min_priority` that needs at most `free_tokens` KV tokens.
struct pick_query {
  std::uint64_t free_tokens = 0;
  std::uint32_t min_priority = 0;
  time_point now{};
};

/// An ordering policy: it keeps the waiters in order and says who is best among those that fit. The core decides whether
/// anyone may be admitted at all.
///
/// - `P::waiter` derives from waiter_base and holds whatever nodes the policy needs.
/// - `insert(w)` is called when `w` has joined; it alone may throw, and then nothing has changed. For readmitted work
///   `enqueued_turn` and `arrival` lie in the past.
/// - `erase(w, why)` is called when `w` leaves; `departure::admitted` means that a turn has passed.
/// - `rescore(w)` is called after `w.saved_cost()` has changed.
/// - `pick(q)` returns the best waiter that fits, or nullptr.
///
/// Found by requires, optional, all noexcept:
/// - `on_grant(grant const&)` and `on_release(grant const&)` are called for every lease, also of those who never waited;
/// - `on_cached(prefix_change const&)` and `on_evicted(prefix_change const&)`, both or neither, raise and lower what the
///   cache saves for all waiters with that prefix, within 0 and 2^48 - 1, and leave `saved_cost()` as it is; for a policy
///   without them the core does so one by one, with `rescore`;
/// - `for_each_in_order(f)` calls `f(waiter&) -> bool` in order until it returns false.
///
/// All calls come under the lock of the queue, one at a time.
template <class P>
concept ordering_policy = std::derived_from<typename P::waiter, waiter_base> && std::movable<P> &&
                          requires(P p, typename P::waiter& w, departure why, pick_query const& q) {
                            p.insert(w);
                            { p.erase(w, why) } noexcept;
                            { p.rescore(w) } noexcept;
                            { p.pick(q) } noexcept -> std::same_as<typename P::waiter*>;
                          };

}  // namespace kvlane
