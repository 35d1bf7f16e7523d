#include "load_series.hpp"

#include "csv_fields.hpp"
#include "line_formats.hpp"
#include "text_lines.hpp"
#include "trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace replay {

measured_load read_load_series(std::istream& in, std::string_view name) {
  text_lines line{in};
  if (!line.next() || line.text() != load_series_header)
    throw trace_error{fmt::format("{}: no load series; its first line must be '{}'", name, load_series_header)};
  measured_load load;
  std::uint64_t samples = 0;
  try {
    for (; line.next(); ++samples) {
      auto const fields = csv_fields(line.text(), load_series_header);
      load.running += token_field(fields[3], "running");
      load.longest_line = std::max<std::uint64_t>(load.longest_line, token_field(fields[4], "waiting"));
      load.kv_share += number_field(fields[5], "kv_cache_pct", 100) / 100;
    }
  } catch (malformed_line const& why) {
    throw trace_error{fmt::format("{}:{}: {}", name, line.number(), why.what())};
  }
  if (samples == 0) throw trace_error{fmt::format("{}: no sample in it", name)};
  load.running /= static_cast<double>(samples);
  load.kv_share /= static_cast<double>(samples);
  return load;
}

measured_load read_load_series_file(std::string const& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    throw trace_error{fmt::format("{}: cannot be opened ({}); it belongs to the measurement of the same name", path,
                                  std::error_code{errno, std::generic_category()}.message())};
  return read_load_series(in, path);
}

}  // namespace replay
