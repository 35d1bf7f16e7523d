#include "statistics.hpp"

#include <algorithm>

namespace replay {

time_summary summarise(std::vector<nanoseconds> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  auto const n = times.size();
  auto const percentile = [&](std::size_t p) { return times[(n * p + 99) / 100 - 1]; };
  nanoseconds sum{};
  for (auto const t : times) sum += t;
  return {.mean = sum / static_cast<std::int64_t>(n),
          .p50 = percentile(50),
          .p95 = percentile(95),
          .p99 = percentile(99),
          .max = times.back()};
}

double run_result::hit_share() const noexcept {
  return ratio(static_cast<double>(hit_tokens), static_cast<double>(prompt_tokens));
}
double run_result::output_per_second() const noexcept { return per_second(output_tokens, run_time); }
double run_result::tokens_per_second() const noexcept { return per_second(prompt_tokens + output_tokens, run_time); }

}  // namespace replay
