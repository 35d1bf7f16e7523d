#pragma once

#include <kvlane/detail/scan_order.hpp>
#include <kvlane/fwd.hpp>
#include <kvlane/ordering_options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvlane {

/// A waiter of a line that somebody else keeps, described for `order_candidates`.
///
///     kvlane::candidate c{.index = 3, .saved_cost = 100, .prompt = tokens, .enqueued_turn = 7, .order = 12};
///
/// Thread safety: plain data; distinct objects are safe, shared ones as long as nobody writes.
/// Lifetime: `prompt` is a view and must live until the call that takes the candidate has returned.
struct candidate {
  std::size_t index = 0;         ///< what the caller knows it by; handed back, need not be a position
  std::uint32_t priority = 0;    ///< higher goes first; any value
  std::uint64_t saved_cost = 0;  ///< what the prefix cache would save; above 2^48 - 1 it counts as 2^48 - 1
  std::span<token_id const> prompt = {};
  std::uint64_t enqueued_turn = 0;  ///< turn at which it joined; one that lies ahead is age 0
  std::uint64_t order = 0;          ///< arrival, lower came earlier; equal ones go by their position in the call
};

namespace detail {

[[nodiscard]] inline scan_order<std::size_t> scan_candidates(std::span<candidate const> candidates, std::uint64_t turn,
                                                             ordering_options const& options,
                                                             std::span<token_id const> last_admitted) {
  validate(options);
  scan_order<std::size_t> scan;
  scan.reserve(candidates.size());
  for (auto const& c : candidates)
    scan.add({.prompt = {.tokens = c.prompt},
              .priority = c.priority,
              .saved_cost = c.saved_cost,
              .enqueued_turn = c.enqueued_turn,
              .arrival = c.order,
              .handle = c.index});
  scan.compute(turn, options, {.tokens = last_admitted});
  return scan;
}

}  // namespace detail

/// The `candidate::index` of every candidate, the one to serve first in front. `turn` is the number of admissions out
/// of the line so far; `last_admitted` is the prompt of the latest of them, empty if there was none, and is ignored
/// with spread_families. Compares, in this order: priority; grouping score; place in a depth-first walk of the radix
/// tree of all prompts; effective score; `order`; position. Without group_prefixes: priority, effective score, `order`,
/// position. Scores saturate.
///
/// Throws std::invalid_argument if a member of `options` makes no sense, naming it, and std::bad_alloc. Allocates, does
/// not block; O(n log n) steps, besides which a prompt is read once as far as it equals another. The scores are those
/// of the queue that kvlane succeeds, the walk is SGLang's "DFS-weight" with the family served last put first.
[[nodiscard]] inline std::vector<std::size_t> order_candidates(std::span<candidate const> candidates,
                                                               std::uint64_t turn, ordering_options const& options = {},
                                                               std::span<token_id const> last_admitted = {}) {
  auto scan = detail::scan_candidates(candidates, turn, options, last_admitted);
  auto const sorted = scan.sorted();
  return {sorted.begin(), sorted.end()};
}

/// The first of what `order_candidates` returns for the same arguments, without sorting the rest; nothing if there are
/// no candidates. Throws and allocates as that does.
[[nodiscard]] inline std::optional<std::size_t> select_candidate(std::span<candidate const> candidates,
                                                                 std::uint64_t turn,
                                                                 ordering_options const& options = {},
                                                                 std::span<token_id const> last_admitted = {}) {
  return detail::scan_candidates(candidates, turn, options, last_admitted).best();
}

}  // namespace kvlane
