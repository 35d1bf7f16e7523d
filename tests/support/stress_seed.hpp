#pragma once

#include <cstdlib>
#include <random>

namespace kvlane::test {

/// The seed of this run: of the environment, to repeat one, or a new one. Whoever asks prints it.
inline unsigned choose_seed() {
  auto const* const given = std::getenv("KVLANE_STRESS_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
}

}  // namespace kvlane::test
