#include "csv_fields.hpp"
#include "line_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace replay {

namespace {

[[noreturn]] void bad_moment(std::string_view text) {
  throw malformed_line{fmt::format("TIMESTAMP is '{}'; a moment such as 2023-11-16 18:15:46.6805900 is needed", text)};
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
    auto number = 0U;
    for (auto const digit : rest.substr(from, length)) number = number * 10 + static_cast<unsigned>(digit - '0');
    return number;
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
  nanoseconds fraction{};
  if (!read_decimals(rest.substr(1), fraction)) bad_moment(text);
  return moment + fraction;
}

trace_request parse_azure_line(std::string_view line) {
  auto const fields = csv_fields(line, azure_header);
  return {.arrival = parse_moment(fields[0]),
          .prompt_tokens = token_field(fields[1], "ContextTokens"),
          .reply_tokens = token_field(fields[2], "GeneratedTokens"),
          .blocks = {}};
}

}  // namespace replay
