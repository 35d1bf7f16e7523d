#include "machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace replay {

namespace {

constexpr std::array<machine, 3> known{{{.name = "large",
                                         .alias = "",
                                         .origin = "ASSUMED, not measured: about a 70B model on eight H100",
                                         .engine = engine_model::large_engine,
                                         .fitted = std::nullopt,
                                         .lanes = 32,
                                         .kv_tokens = 1'000'000,
                                         .cache_tokens = 1'000'000,
                                         .own = std::nullopt},
                                        {.name = "slora-llama2-7b-a10g",
                                         .alias = "a10g",
                                         .origin = "profile published by the authors of VTC",
                                         .engine = engine_model::a10g_engine,
                                         .fitted = engine_model::a10g_fitted,
                                         .lanes = 1'000,
                                         .kv_tokens = 10'000,
                                         .cache_tokens = 0,
                                         .own = policy::slora},
                                        {.name = "vllm-0.19-llama31-8b-rtx4090",
                                         .alias = "rtx4090",
                                         .origin = "peaks of the data sheet",
                                         .engine = engine_model::rtx4090_engine,
                                         .fitted = engine_model::rtx4090_fitted,
                                         .lanes = 256,
                                         .kv_tokens = 41'408,
                                         .cache_tokens = 0,
                                         .own = policy::vllm}}};

}  // namespace

std::span<machine const> machines() noexcept { return known; }

machine const* machine_named(std::string_view name) noexcept {
  auto const found =
      std::ranges::find_if(known, [&](auto const& m) { return name == m.name || (name == m.alias && !name.empty()); });
  return found == known.end() ? nullptr : &*found;
}

std::string title_of(machine const& m) {
  auto title = fmt::format("{}, {}", m.name, m.origin);
  if (m.fitted) title += fmt::format(", times {} (FITTED to the measured run time)", *m.fitted);
  return title;
}

simulation_settings settings_of(machine const& m) {
  simulation_settings s;
  s.limits.lanes = m.lanes;
  s.limits.kv_capacity = m.kv_tokens;
  s.limits.block_tokens = 16;
  // A line without an end, so that policies are compared on the same requests.
  s.limits.max_waiting = std::numeric_limits<std::uint32_t>::max();
  s.engine = m.engine;
  s.engine_title = title_of(m);
  s.cache_tokens = m.cache_tokens;
  return s;
}

}  // namespace replay
