#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace replay {

using std::chrono::nanoseconds;

/// The fields of a CSV line; nothing is quoted. \throws malformed_line unless there are as many as in the header
[[nodiscard]] std::vector<std::string_view> csv_fields(std::string_view line, std::string_view header);

/// A whole number that fills a field. \throws malformed_line, naming the field, also above `most`
[[nodiscard]] std::uint64_t whole_field(std::string_view text, std::string_view name, std::uint64_t most);

/// Tokens. \throws malformed_line as whole_field
[[nodiscard]] std::uint32_t token_field(std::string_view text, std::string_view name);

/// A decimal number from 0 to `most`. \throws malformed_line, naming the field
[[nodiscard]] double number_field(std::string_view text, std::string_view name, double most);

/// Seconds such as `17.570318`, up to 9 decimals, exactly; not negative, at most 100 years.
/// \throws malformed_line, naming the field
[[nodiscard]] nanoseconds seconds_field(std::string_view text, std::string_view name);

/// Decimals of a second such as `570318`, exactly; false when `digits` are more than 9, none, or anything else.
[[nodiscard]] bool read_decimals(std::string_view digits, nanoseconds& fraction);

}  // namespace replay
