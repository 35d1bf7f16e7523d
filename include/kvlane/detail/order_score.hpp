#pragma once

#include <kvlane/config.hpp>
#include <kvlane/ordering_options.hpp>
#include <kvlane/request.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kvlane::detail {

[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  auto const most = std::numeric_limits<std::uint64_t>::max();
  return a > most - b ? most : a + b;
}

[[nodiscard]] constexpr std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  auto const most = std::numeric_limits<std::uint64_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

/// Turns since `enqueued_turn`; 0 if that lies ahead of `turn`.
[[nodiscard]] constexpr std::uint64_t age_at(std::uint64_t turn, std::uint64_t enqueued_turn) noexcept {
  return turn > enqueued_turn ? turn - enqueued_turn : 0;
}

/// What a waiter's cached prefix and its age in turns are worth together. A saved cost above 2^48 - 1 counts as that;
/// the sum saturates.
[[nodiscard]] constexpr std::uint64_t effective_score(std::uint64_t saved_cost, std::uint64_t age,
                                                      ordering_options const& options) noexcept {
  auto const aged = saturating_multiply(age, options.aging_cost_per_turn);
  return saturating_add(std::min(saved_cost, highest_saved_cost), aged);
}

/// The same with the age rounded up to whole bands and a turn worth at least 1: waiters with equal grouping scores go
/// in the order of their prompts. Precondition: `options` are valid. The rule is that of the queue kvlane succeeds.
[[nodiscard]] constexpr std::uint64_t grouping_score(std::uint64_t saved_cost, std::uint64_t age,
                                                     ordering_options const& options) noexcept {
  KVLANE_ASSERT(options.band_turns != 0, "a band holds at least 1 turn");
  auto const bands = age / options.band_turns + (age % options.band_turns != 0 ? 1 : 0);
  auto const turns = saturating_multiply(bands, options.band_turns);
  auto const aged = saturating_multiply(turns, std::max<std::uint64_t>(options.aging_cost_per_turn, 1));
  return saturating_add(std::min(saved_cost, highest_saved_cost), aged);
}

/// Everything that the order of two waiters depends on. Without group_prefixes grouping and rank stay 0, and so decide
/// nothing.
struct order_key {
  std::uint32_t priority = 0;   ///< higher goes first
  std::uint32_t rank = 0;       ///< in the walk of the prompts; lower goes first
  std::uint64_t grouping = 0;   ///< higher goes first
  std::uint64_t effective = 0;  ///< higher goes first
  std::uint64_t arrival = 0;    ///< lower goes first
  std::uint32_t position = 0;   ///< lower goes first; decides where arrivals are equal
};

/// Whether `a` goes before `b`: priority, grouping score, rank of the prompt, effective score, arrival, position.
[[nodiscard]] constexpr bool before(order_key const& a, order_key const& b) noexcept {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.grouping != b.grouping) return a.grouping > b.grouping;
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.effective != b.effective) return a.effective > b.effective;
  if (a.arrival != b.arrival) return a.arrival < b.arrival;
  return a.position < b.position;
}

}  // namespace kvlane::detail
