#include "line_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <vector>

namespace replay {

namespace {

[[noreturn]] void bad_moment(std::string_view text) {
  throw malformed_line{fmt::format("TIMESTAMP is '{}'; a moment such as 2023-11-16 18:15:46.6805900 is needed", text)};
}

/// The number that fills `text`; false when something else is in it.
bool read_number(std::string_view text, std::uint64_t& number) {
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

std::uint32_t token_count(std::string_view text, std::string_view name) {
  std::uint64_t count = 0;
  if (!read_number(text, count) || count > most_tokens)
    throw malformed_line{fmt::format("{} is '{}'; a whole number from 0 to {} is needed", name, text, most_tokens)};
  return static_cast<std::uint32_t>(count);
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    auto const comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

/// Decimals of a second, exactly.
nanoseconds fraction(std::string_view digits, std::string_view whole) {
  std::uint64_t number = 0;
  if (digits.size() > 9 || !read_number(digits, number)) bad_moment(whole);
  for (auto n = digits.size(); n != 9; ++n) number *= 10;
  return nanoseconds{number};
}

}  // namespace

nanoseconds parse_moment(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view shape = "dddd-dd-dd dd:dd:dd";
  auto rest = text;
  if (rest.ends_with("+00:00")) rest.remove_suffix(6);
  auto const fits = [](char c, char wanted) { return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted; };
  if (rest.size() < shape.size() || !std::ranges::equal(rest.substr(0, shape.size()), shape, fits)) bad_moment(text);

  auto const part = [&](std::size_t from, std::size_t length) {
    std::uint64_t number = 0;
    read_number(rest.substr(from, length), number);  // digits, as was just checked
    return static_cast<unsigned>(number);
  };
  auto const date = year_month_day{year{static_cast<int>(part(0, 4))}, month{part(5, 2)}, day{part(8, 2)}};
  auto const hour = part(11, 2), minute = part(14, 2), second = part(17, 2);
  // Nanoseconds since 1970 fill 64 bits in 2262.
  auto const in_range = date.year() >= year{1970} && date.year() < year{2200};
  if (!date.ok() || !in_range || hour > 23 || minute > 59 || second > 59) bad_moment(text);

  auto moment = nanoseconds{sys_days{date}.time_since_epoch()} + hours{hour} + minutes{minute} + seconds{second};
  rest.remove_prefix(shape.size());
  if (rest.empty()) return moment;
  if (rest.front() != '.') bad_moment(text);
  return moment + fraction(rest.substr(1), text);
}

trace_request parse_azure_line(std::string_view line) {
  auto const fields = split(line);
  if (fields.size() != 3)
    throw malformed_line{fmt::format("{} fields; {} are needed: {}", fields.size(), 3, azure_header)};
  return {.arrival = parse_moment(fields[0]),
          .prompt_tokens = token_count(fields[1], "ContextTokens"),
          .reply_tokens = token_count(fields[2], "GeneratedTokens"),
          .blocks = {}};
}

}  // namespace replay
