#include "line_formats.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace replay {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_milliseconds = 4'000'000'000'000;  // 126 years, and nanoseconds still fit into 64 bits

std::string shown(json const& value) {
  constexpr std::size_t most = 40;
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

std::uint64_t whole_number(json const& value, std::string_view name, std::uint64_t most) {
  // Numbers beyond 64 bits are parsed as floating point, and end up here as well.
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw malformed_line{fmt::format("{} is {}; a whole number from 0 to {} is needed", name, shown(value), most)};
  return value.get<std::uint64_t>();
}

json const& member(json const& object, char const* name) {
  auto const found = object.find(name);
  if (found == object.end()) throw malformed_line{fmt::format("{} is missing", name)};
  return *found;
}

std::uint64_t number_in(json const& object, char const* name, std::uint64_t most) {
  return whole_number(member(object, name), name, most);
}

json parsed(std::string_view line) {
  try {
    auto object = json::parse(line);
    if (!object.is_object()) throw malformed_line{"not a JSON object"};
    return object;
  } catch (json::parse_error const& error) {
    throw malformed_line{fmt::format("not JSON (character {})", error.byte)};
  }
}

std::vector<std::uint64_t> block_ids(json const& object, std::uint32_t prompt_tokens) {
  auto const& ids = member(object, "hash_ids");
  if (!ids.is_array()) throw malformed_line{fmt::format("hash_ids is {}; a list is needed", shown(ids))};
  auto const needed = (std::uint64_t{prompt_tokens} + prefix_block_tokens - 1) / prefix_block_tokens;
  if (ids.size() != needed)
    throw malformed_line{fmt::format("hash_ids has {} entries; {} tokens make {} blocks of {}", ids.size(),
                                     prompt_tokens, needed, prefix_block_tokens)};
  std::vector<std::uint64_t> blocks;
  blocks.reserve(ids.size());
  for (auto const& id : ids) blocks.push_back(whole_number(id, "a hash id", ~std::uint64_t{0}));
  return blocks;
}

}  // namespace

trace_request mooncake_lines::parse(std::string_view line) {
  auto const object = parsed(line);
  trace_request r;
  r.arrival = std::chrono::milliseconds{number_in(object, "timestamp", most_milliseconds)};
  r.prompt_tokens = static_cast<std::uint32_t>(number_in(object, "input_length", most_tokens));
  r.reply_tokens = static_cast<std::uint32_t>(number_in(object, "output_length", most_tokens));
  r.blocks = block_ids(object, r.prompt_tokens);
  if (auto sorted = r.blocks; std::ranges::sort(sorted), std::ranges::adjacent_find(sorted) != sorted.end())
    throw malformed_line{"a hash id occurs twice in hash_ids"};
  known_.check_in(r);
  return r;
}

}  // namespace replay
