#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

namespace replay {

/// The first line of the load that was sampled on vLLM, once a second.
inline constexpr std::string_view load_series_header =
    "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct";

/// How busy a real server was.
struct measured_load {
  double running = 0;              ///< requests, on average
  double kv_share = 0;             ///< of the KV tokens that was used, on average
  std::uint64_t longest_line = 0;  ///< most requests that waited in a sample
};

/// Reads the samples; throughputs are not looked at. `name` is what messages call the file. \throws trace_error
[[nodiscard]] measured_load read_load_series(std::istream& in, std::string_view name);

/// The same from a file. \throws trace_error
[[nodiscard]] measured_load read_load_series_file(std::string const& path);

}  // namespace replay
