#include "csv_fields.hpp"
#include "line_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace replay {

namespace {

std::uint32_t client_field(std::string_view text) {
  return static_cast<std::uint32_t>(whole_field(text, "client", std::numeric_limits<std::uint32_t>::max()));
}

/// Ids such as `0-5 9`. No more than `most` are made, whatever a line claims.
std::vector<std::uint64_t> id_runs(std::string_view text, std::size_t most) {
  constexpr auto name = "a block id";
  constexpr auto largest = std::numeric_limits<std::uint64_t>::max() - 1;
  std::vector<std::uint64_t> ids;
  while (!text.empty()) {
    auto const space = text.find(' ');
    auto const run = text.substr(0, space);
    auto const dash = run.find('-');
    auto const first = whole_field(run.substr(0, dash), name, largest);
    auto const last = dash == std::string_view::npos ? first : whole_field(run.substr(dash + 1), name, largest);
    if (last < first) throw malformed_line{fmt::format("the run of block ids '{}' goes backwards", run)};
    if (last - first >= most - ids.size())
      throw malformed_line{fmt::format(
          "prompt_blocks16 has more than the {} ids that the prompt has whole blocks of {}", most, vllm_block_tokens)};
    for (auto id = first; id <= last; ++id) ids.push_back(id);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return ids;
}

using named_moment = std::pair<std::string_view, nanoseconds>;

void demand_order(std::span<named_moment const> moments) {
  for (std::size_t i = 1; i < moments.size(); ++i)
    if (moments[i].second < moments[i - 1].second)
      throw malformed_line{fmt::format("{} is before {}", moments[i].first, moments[i - 1].first)};
}

}  // namespace

trace_request parse_slora_line(std::string_view line) {
  auto const fields = csv_fields(line, slora_header);
  if (fields[0] != "FCFS")
    throw malformed_line{fmt::format("policy is '{}'; only runs of FCFS can be read", fields[0])};
  trace_request r;
  r.arrival = seconds_field(fields[1], "arrival_s");
  r.client = client_field(fields[2]);
  r.prompt_tokens = token_field(fields[3], "input_tokens");
  r.reply_tokens = token_field(fields[4], "output_tokens");
  named_moment const moments[] = {{"first_token_latency_s", seconds_field(fields[5], "first_token_latency_s")},
                                  {"request_latency_s", seconds_field(fields[6], "request_latency_s")}};
  demand_order(moments);
  r.measured = request_times{.first_token = moments[0].second, .last_token = moments[1].second};
  return r;
}

trace_request vllm_lines::parse(std::string_view line) {
  auto const fields = csv_fields(line, vllm_header);
  std::vector<named_moment> moments;
  for (auto const* const name : {"arrival_s", "queued_s", "scheduled_s", "first_token_s", "last_token_s"})
    moments.emplace_back(name, seconds_field(fields[moments.size()], name));
  // Arrivals were read from another clock than the rest: the engine may seem to have known of a request a little earlier.
  demand_order(std::span{moments}.subspan(1));
  demand_order(std::vector{moments[0], moments[3]});
  trace_request r;
  r.arrival = moments[0].second;
  r.prompt_tokens = token_field(fields[5], "input_tokens");
  r.reply_tokens = token_field(fields[6], "output_tokens");
  auto const whole_blocks = r.prompt_tokens / vllm_block_tokens;
  r.blocks = id_runs(fields[7], whole_blocks);
  if (r.blocks.size() != whole_blocks)
    throw malformed_line{fmt::format("prompt_blocks16 has {} ids; {} tokens make {} whole blocks of {}",
                                     r.blocks.size(), r.prompt_tokens, whole_blocks, vllm_block_tokens)};
  if (auto sorted = r.blocks; std::ranges::sort(sorted), std::ranges::adjacent_find(sorted) != sorted.end())
    throw malformed_line{"a block id occurs twice in prompt_blocks16"};
  known_.check_in(r);
  r.measured = request_times{.queued = moments[1].second - r.arrival,
                             .admitted = moments[2].second - r.arrival,
                             .first_token = moments[3].second - r.arrival,
                             .last_token = moments[4].second - r.arrival};
  return r;
}

trace_request parse_servegen_line(std::string_view line) {
  auto const fields = csv_fields(line, servegen_header);
  trace_request r;
  r.arrival = seconds_field(fields[0], "arrival_s");
  r.client = client_field(fields[1]);
  r.prompt_tokens = token_field(fields[2], "input_tokens");
  r.reply_tokens = token_field(fields[3], "output_tokens");
  return r;
}

}  // namespace replay
