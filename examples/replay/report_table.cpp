#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

namespace replay {

namespace {

constexpr std::size_t label_width = 30;
constexpr std::size_t least_column_width = 14;

std::string count(std::uint64_t n) { return std::to_string(n); }
std::string seconds_text(nanoseconds t) { return fmt::format("{:.3f}", seconds(t)); }
std::string percent(double share) { return fmt::format("{:.2f}", share * 100.0); }

std::string_view reason(kvlane::errc code) {
  switch (code) {
    case kvlane::errc::invalid_request: return "invalid request";
    case kvlane::errc::never_fits: return "never fits";
    case kvlane::errc::shutting_down: return "shutting down";
    case kvlane::errc::would_wait: return "would wait";
    case kvlane::errc::queue_full: return "line is full";
    case kvlane::errc::would_time_out: return "would time out";
    case kvlane::errc::timed_out: return "timed out";
    case kvlane::errc::cancelled: return "cancelled";
    case kvlane::errc::no_longer_fits: return "no longer fits";
  }
  return "unknown";
}

class table {
 public:
  explicit table(comparison const& c) : comparison_{c} {}

  template <class Cell>
  void row(std::string_view label, Cell const& cell) {
    text_ += fmt::format("{:<{}}", label, label_width);
    for (auto const& c : comparison_.columns) text_ += fmt::format("{:>{}}", cell(c.result), width_of(c));
    text_ += '\n';
  }
  void times(std::string_view label, time_summary run_result::* which) {
    auto const line = [&](std::string_view statistic, nanoseconds time_summary::* member) {
      row(fmt::format("{}, {}", label, statistic), [&](run_result const& r) { return seconds_text(r.*which.*member); });
    };
    line("mean", &time_summary::mean);
    line("p50", &time_summary::p50);
    line("p95", &time_summary::p95);
    line("p99", &time_summary::p99);
    line("max", &time_summary::max);
  }
  void head() {
    text_ += fmt::format("{:<{}}", "", label_width);
    for (auto const& c : comparison_.columns) text_ += fmt::format("{:>{}}", name_of(c.used), width_of(c));
    text_ += '\n';
  }
  void refusals() {
    for (auto code = std::size_t{1}; code != error_codes; ++code) {
      auto const refused = [&](run_result const& r) { return r.refused[code]; };
      if (std::ranges::all_of(comparison_.columns, [&](auto const& c) { return refused(c.result) == 0; })) continue;
      row(fmt::format("refused: {}", reason(static_cast<kvlane::errc>(code))),
          [&](run_result const& r) { return count(refused(r)); });
    }
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static std::size_t width_of(comparison::column const& c) {
    return std::max(least_column_width, name_of(c.used).size() + 2);
  }

  comparison const& comparison_;
  std::string text_;
};

}  // namespace

std::string table_of(comparison const& c) {
  table t{c};
  t.head();
  t.row("requests", [](run_result const& r) { return count(r.requests); });
  if (c.skipped_lines) t.row("bad lines skipped", [&](run_result const&) { return count(*c.skipped_lines); });
  t.row("admitted", [](run_result const& r) { return count(r.admitted); });
  t.refusals();
  t.row("cut off", [](run_result const& r) { return count(r.cut_off); });
  t.row("preemptions", [](run_result const& r) { return count(r.preempted); });
  t.row("longest line", [](run_result const& r) { return count(r.longest_line); });
  t.row("most times overtaken", [](run_result const& r) { return count(r.most_overtaken); });
  t.times("wait [s]", &run_result::wait);
  t.times("first token [s]", &run_result::first_token);
  t.row("output tokens/s", [](run_result const& r) { return fmt::format("{:.1f}", r.output_per_second()); });
  t.row("prompt + output tokens/s", [](run_result const& r) { return fmt::format("{:.1f}", r.tokens_per_second()); });
  t.row("prompt tokens hit [%]", [](run_result const& r) { return percent(r.hit_share()); });
  t.row("tokens computed again", [](run_result const& r) { return count(r.recomputed_tokens); });
  t.row("lanes used [%]", [](run_result const& r) { return percent(r.lanes_used); });
  t.row("KV tokens reserved [%]", [](run_result const& r) { return percent(r.kv_used); });
  t.row("virtual run time [s]", [](run_result const& r) { return seconds_text(r.run_time); });
  return c.title + '\n' + std::move(t).text();
}

std::string describe(simulation_settings const& s) {
  auto const& l = s.limits;
  auto const wait =
      l.max_wait == kvlane::forever ? std::string{"any wait"} : "waits up to " + seconds_text(l.max_wait) + " s";
  auto const places = l.places() == ~0U ? std::string{"any number of places"} : count(l.places()) + " places";
  auto const engine = s.engine_title.empty() ? std::string{} : "engine: " + s.engine_title + '\n';
  return engine +
         fmt::format("{} lanes, {} KV tokens in blocks of {}, headroom {}, growth reserve {}; line: {}, {}, at most {} "
                     "overtakes\n"
                     "prefix cache {} tokens, cost {} per token against {} per turn{}; replies up to {} tokens\n"
                     "decode {:g} ms + {:g} ms/request + {:g} us/KV token; prefill {:g} ms + {:g} us/token\n",
                     l.lanes, l.kv_capacity, l.block_tokens, l.decode_headroom, l.growth_reserve, places, wait,
                     l.max_overtakes, s.cache_tokens, s.cost_per_token, s.ordering.aging_cost_per_turn,
                     s.scores == score_updates::never ? " (scored at arrival only)" : "", s.max_tokens,
                     s.engine.decode_base_ms, s.engine.decode_per_request_ms, s.engine.decode_per_kv_token_us,
                     s.engine.prefill_base_ms, s.engine.prefill_per_token_us);
}

}  // namespace replay
