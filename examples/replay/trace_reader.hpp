#pragma once

#include "workload.hpp"

#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace replay {

/// What happens to a line that makes no sense.
enum class bad_lines : std::uint8_t {
  refuse,  ///< the trace is not read at all
  skip,    ///< the line is left out and counted
};

/// A trace that cannot be read. The text is complete: it names the file, mostly the line, and what to do.
struct trace_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A trace, and what was left out of it.
struct trace {
  workload requests;
  std::vector<std::string> complaints;  ///< `file:line: reason` for the first bad lines
};

/// Reads a Mooncake trace (JSON lines), an Azure LLM trace, a measured S-LoRA or vLLM run, or sampled ServeGen requests
/// (CSV); the first line tells which. Arrivals count from the earliest one; requests are sorted by arrival, those of one moment as in the file. Line ends may be CRLF, empty lines
/// are ignored, the last line needs no end. `name` is what messages call the file. \throws trace_error
[[nodiscard]] trace read_trace(std::istream& in, std::string_view name, bad_lines bad);

/// The same from a file. \throws trace_error
[[nodiscard]] trace read_trace_file(std::string const& path, bad_lines bad);

}  // namespace replay
