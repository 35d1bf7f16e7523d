#pragma once

#include <kvlane/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kvlane {

/// The highest `ordering_options::aging_cost_per_turn`: low enough for scores of real lines never to saturate.
inline constexpr std::uint64_t highest_aging_cost = std::uint64_t{1} << 20;

/// How waiting counts against cached prefixes, and whether families of prompts are kept together.
///
///     kvlane::ordering_options plain{.aging_cost_per_turn = 10, .group_prefixes = false};
///
/// Thread safety: plain data; distinct objects are safe, shared ones as long as nobody writes.
/// Lifetime: refers to nothing.
struct ordering_options {
  /// What a turn of waiting is worth, in the unit of saved_cost; at most 2^20. A turn is an admission out of the line.
  std::uint64_t aging_cost_per_turn = 4096;
  /// With group_prefixes ages count in steps of so many turns, so that the prefix decides between neighbours; not 0.
  std::uint32_t band_turns = 4;
  /// Prompts with a common prefix go one after the other.
  bool group_prefixes = true;
  /// Does not go on with the family served last, so that families of like size take turns.
  bool spread_families = false;
};

/// Throws std::invalid_argument where the options make no sense, naming the member, its value and its bound.
inline void validate(ordering_options const& options) {
  auto const nonsense = [](std::string const& text) {
    throw std::invalid_argument("kvlane::ordering_options: " + text);
  };
  if (options.band_turns == 0) nonsense("band_turns is 0; a band holds at least 1 turn");
  if (options.aging_cost_per_turn > highest_aging_cost)
    nonsense("aging_cost_per_turn is " + std::to_string(options.aging_cost_per_turn) + ", which is above " +
             std::to_string(highest_aging_cost));
}

}  // namespace kvlane
