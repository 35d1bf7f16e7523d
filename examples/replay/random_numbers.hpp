#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace replay {

/// Seeded random numbers. The distributions are written out because those of the standard library differ between
/// implementations, and one seed is to give one workload everywhere.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : engine_{seed} {}

  /// At least 0, below 1.
  [[nodiscard]] double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  /// Exponentially distributed.
  [[nodiscard]] double exponential(double mean) { return -mean * std::log1p(-unit()); }
  /// At least 0, below `end`.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    return static_cast<std::uint64_t>(unit() * static_cast<double>(end));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace replay
