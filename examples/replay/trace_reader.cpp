#include "trace_reader.hpp"

#include "line_formats.hpp"
#include "text_lines.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>

namespace replay {

namespace {

constexpr std::size_t most_complaints = 10;

struct format {
  std::string_view name;  ///< says whether the data are real
  bool has_header = true;
  std::function<trace_request(std::string_view)> parse;
  std::uint32_t block_tokens = prefix_block_tokens;
};

format format_of(std::string_view first_line) {
  if (first_line.starts_with('{'))
    return {.name = "real: Mooncake JSONL",
            .has_header = false,
            .parse = [reader = mooncake_lines{}](std::string_view l) mutable { return reader.parse(l); }};
  if (first_line == azure_header) return {.name = "real: Azure CSV", .parse = parse_azure_line};
  if (first_line == slora_header)
    return {.name = "real, with latencies measured on S-LoRA: CSV", .parse = parse_slora_line};
  if (first_line == vllm_header)
    return {.name = "real prompts, arrivals drawn at random, with times measured on vLLM: CSV",
            .parse = [reader = vllm_lines{}](std::string_view l) mutable { return reader.parse(l); },
            .block_tokens = vllm_block_tokens};
  if (first_line == servegen_header)
    return {.name = "SAMPLED from statistics of real clients, not real requests: ServeGen CSV",
            .parse = parse_servegen_line};
  return {};
}

std::string joined_complaints(std::vector<std::string> const& complaints, std::uint64_t count) {
  auto text = fmt::format("{}", fmt::join(complaints, "\n"));
  if (count > complaints.size()) text += fmt::format("\n... and {} more", count - complaints.size());
  return text + "\nMend the file, or leave such lines out with --skip-bad.";
}

void count_from_first_arrival(std::vector<trace_request>& requests) {
  sort_by_arrival(requests);
  auto const start = requests.front().arrival;
  for (auto& r : requests) r.arrival -= start;
}

}  // namespace

trace read_trace(std::istream& in, std::string_view name, bad_lines bad) {
  text_lines line{in};
  if (!line.next()) throw trace_error{fmt::format("{}: the file is empty; a trace has a request in each line", name)};
  auto const how = format_of(line.text());
  if (!how.parse)
    throw trace_error{fmt::format(
        "{}:{}: neither Mooncake JSONL (a line begins with '{{') nor a known CSV (the first line of Azure's "
        "is '{}'; of S-LoRA's '{}'; of vLLM's '{}'; of ServeGen's '{}'); other formats have to be converted",
        name, line.number(), azure_header, slora_header, vllm_header, servegen_header)};
  trace result;
  result.requests.title = fmt::format("{}, {}", how.name, std::filesystem::path{name}.filename().string());
  result.requests.block_tokens = how.block_tokens;
  auto& skipped = result.requests.skipped_lines;
  for (auto more = !how.has_header || line.next(); more; more = line.next()) {
    try {
      result.requests.requests.push_back(how.parse(line.text()));
    } catch (malformed_line const& why) {
      if (++skipped <= most_complaints)
        result.complaints.push_back(fmt::format("{}:{}: {}", name, line.number(), why.what()));
    }
  }
  if (in.bad()) throw trace_error{fmt::format("{}: reading failed after line {}", name, line.number())};
  if (skipped != 0 && bad == bad_lines::refuse) throw trace_error{joined_complaints(result.complaints, skipped)};
  if (result.requests.requests.empty())
    throw trace_error{
        fmt::format("{}: no request in it ({} bad lines); a trace has a request in each line", name, skipped)};
  count_from_first_arrival(result.requests.requests);
  return result;
}

trace read_trace_file(std::string const& path, bad_lines bad) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw trace_error{fmt::format("{}: is a directory; give the trace files in it", path)};
  std::ifstream in{path, std::ios::binary};
  if (!in)
    throw trace_error{fmt::format("{}: cannot be opened ({}); give the path of a trace, or "
                                  "--synthetic for made-up requests",
                                  path, std::error_code{errno, std::generic_category()}.message())};
  return read_trace(in, path, bad);
}

}  // namespace replay
