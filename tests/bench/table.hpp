#pragma once

#include "catalog.hpp"
#include "sampling.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace kvlane::bench {

/// "12.3 ns", "1.24 us", "3.10 ms".
[[nodiscard]] std::string text_of(nanoseconds time);
/// "3.00", "25.1", "1,250": three digits, or as many as there are before the point.
[[nodiscard]] std::string text_of(double number);
/// "4,096".
[[nodiscard]] std::string text_of(std::size_t count);
/// "met", or by how much `value` is above `bound`.
[[nodiscard]] std::string compare(double value, double bound);

/// A row that has been measured.
struct result_line {
  row const* of = nullptr;
  figures measured;
};

/// Writes a topic as a Markdown table.
void write_table(std::ostream& out, topic const& t, std::vector<result_line> const& lines);

}  // namespace kvlane::bench
