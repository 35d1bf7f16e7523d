#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/prompt.hpp>

#include <cstdint>
#include <utility>

namespace kvlane {

/// What is known of a waiter: plain numbers, set when it joins. All but `saved_cost` stay as they are.
struct waiter_facts {
  std::uint64_t arrival = 0;        ///< its number in the order of arrivals, unique in a line
  std::uint64_t enqueued_turn = 0;  ///< the turn in which it arrived
  std::uint64_t demand = 0;         ///< KV tokens
  std::uint64_t saved_cost = 0;     ///< what the prefix cache would save, as it was told for this waiter last
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  time_point joined{};  ///< when it joined the line (again, for readmitted work)
  time_point deadline = time_point::max();
  std::uint32_t priority = 0;
};

/// The part of a waiter that ordering policies read. A policy derives its own `waiter` from it and keeps its intrusive
/// nodes there.
///
/// Thread safety: read and written under the lock of the queue only; policies run there. Lifetime: from `insert` until
/// `erase` returns.
class waiter_base {
 public:
  waiter_base() noexcept = default;
  waiter_base(waiter_base const&) = delete;
  waiter_base& operator=(waiter_base const&) = delete;

  [[nodiscard]] waiter_facts const& facts() const noexcept { return facts_; }
  [[nodiscard]] std::uint64_t arrival() const noexcept { return facts_.arrival; }
  [[nodiscard]] std::uint64_t enqueued_turn() const noexcept { return facts_.enqueued_turn; }
  [[nodiscard]] std::uint64_t demand() const noexcept { return facts_.demand; }
  [[nodiscard]] std::uint64_t saved_cost() const noexcept { return facts_.saved_cost; }
  [[nodiscard]] std::uint32_t priority() const noexcept { return facts_.priority; }
  [[nodiscard]] std::uint64_t tag() const noexcept { return facts_.tag; }
  [[nodiscard]] std::uint64_t flow() const noexcept { return facts_.flow; }
  [[nodiscard]] time_point joined() const noexcept { return facts_.joined; }
  [[nodiscard]] time_point deadline() const noexcept { return facts_.deadline; }
  /// The prompt, or the hashes of its blocks; both empty when only a length was given.
  [[nodiscard]] prompt_view prompt() const noexcept { return prompt_.view(); }
  /// To remember a prompt beyond the waiter's life without copying it.
  [[nodiscard]] shared_prompt const& shared() const noexcept { return prompt_; }

 protected:
  ~waiter_base() = default;

  waiter_facts facts_;
  shared_prompt prompt_;
};

}  // namespace kvlane
