#pragma once

#include "catalog.hpp"

#include <cstddef>

namespace kvlane::bench {

/// How much time a row gets.
struct effort {
  nanoseconds budget = std::chrono::milliseconds{2000};  ///< for a row, once it has been prepared
  std::size_t fewest = 5;                                ///< repetitions, whatever they take
  std::size_t most = 61;
};

/// Medians over all repetitions, for one operation.
struct figures {
  nanoseconds subject{};
  nanoseconds baseline{};
  double ratio = 0;   ///< median of the ratios of neighbouring measurements, not the ratio of the medians
  double spread = 0;  ///< of the ratios: distance of the quartiles, as a share of the median
  std::size_t repetitions = 0;
};

/// Measures both sides of a row in turn.
[[nodiscard]] figures sample(row const& r, effort const& how);

}  // namespace kvlane::bench
