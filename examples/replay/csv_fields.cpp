#include "csv_fields.hpp"

#include "line_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace replay {

namespace {

/// The number that fills `text`; false when something else is in it.
bool read_number(std::string_view text, std::uint64_t& number) {
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::vector<std::string_view> csv_fields(std::string_view line, std::string_view header) {
  std::vector<std::string_view> fields;
  for (auto rest = line;;) {
    auto const comma = rest.find(',');
    fields.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  auto const needed = static_cast<std::size_t>(std::ranges::count(header, ',')) + 1;
  if (fields.size() != needed)
    throw malformed_line{fmt::format("{} fields; {} are needed: {}", fields.size(), needed, header)};
  return fields;
}

std::uint64_t whole_field(std::string_view text, std::string_view name, std::uint64_t most) {
  std::uint64_t number = 0;
  if (!read_number(text, number) || number > most)
    throw malformed_line{fmt::format("{} is '{}'; a whole number from 0 to {} is needed", name, text, most)};
  return number;
}

std::uint32_t token_field(std::string_view text, std::string_view name) {
  return static_cast<std::uint32_t>(whole_field(text, name, most_tokens));
}

double number_field(std::string_view text, std::string_view name, double most) {
  auto number = 0.0;
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size() || !(number >= 0 && number <= most))
    throw malformed_line{fmt::format("{} is '{}'; a number from 0 to {} is needed", name, text, most)};
  return number;
}

bool read_decimals(std::string_view digits, nanoseconds& fraction) {
  std::uint64_t number = 0;
  if (digits.size() > 9 || !read_number(digits, number)) return false;
  for (auto n = digits.size(); n != 9; ++n) number *= 10;
  fraction = nanoseconds{number};
  return true;
}

nanoseconds seconds_field(std::string_view text, std::string_view name) {
  constexpr std::uint64_t most = 3'155'760'000;  // 100 years; in nanoseconds they still fit into 64 bits
  auto const point = text.find('.');
  std::uint64_t whole = 0;
  nanoseconds fraction{};
  auto const fine = read_number(text.substr(0, point), whole) && whole < most &&
                    (point == std::string_view::npos || read_decimals(text.substr(point + 1), fraction));
  if (!fine)
    throw malformed_line{fmt::format("{} is '{}'; seconds such as 17.570318, not negative, are needed", name, text)};
  return std::chrono::seconds{whole} + fraction;
}

}  // namespace replay
