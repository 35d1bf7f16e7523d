#pragma once

#include "simulation.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace replay {

/// A machine that can be simulated: what its steps cost, how much it holds, and the server that was measured on it.
struct machine {
  std::string_view name;
  std::string_view alias;   ///< another name; empty: none
  std::string_view origin;  ///< where its constants come from
  engine_model::engine_constants engine;
  std::optional<double> fitted;  ///< the one number that was fitted to a measurement; it is in `engine`
  std::uint32_t lanes;
  std::uint64_t kv_tokens;
  std::uint64_t cache_tokens;  ///< of a prefix cache beside the KV tokens, as kvlane's policies are simulated with
  std::optional<policy> own;   ///< the server that was measured there
};

[[nodiscard]] std::span<machine const> machines() noexcept;
/// By name or alias; nullptr where there is none.
[[nodiscard]] machine const* machine_named(std::string_view name) noexcept;

/// Its name, where its constants come from, and what of them is fitted.
[[nodiscard]] std::string title_of(machine const& m);

/// Settings of a run on it.
[[nodiscard]] simulation_settings settings_of(machine const& m);

}  // namespace replay
