#include "validation.hpp"

#include "yardsticks/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace replay {

namespace {

constexpr std::array<measured_file, 2> files{
    {{.name = "lmsys_arena_fcfs_measured.csv", .machine = "slora-llama2-7b-a10g", .load_series = ""},
     {.name = "vllm_rtx4090_llama31-8b.csv",
      .machine = "vllm-0.19-llama31-8b-rtx4090",
      .load_series = "vllm_rtx4090_llama31-8b.timeseries.csv"}}};

using all_times = std::vector<request_times>;
using moment = std::optional<nanoseconds> request_times::*;

/// From the first arrival until the last token.
nanoseconds run_time_of(workload const& w, all_times const& times) {
  nanoseconds end{};
  for (std::size_t i = 0; i != times.size(); ++i)
    end = std::max(end, w.requests[i].arrival + times[i].last_token.value_or(nanoseconds{}));
  return end;
}

/// What is known about a moment, of those requests of which it is.
time_summary summary_of(all_times const& times, moment which) {
  std::vector<nanoseconds> known;
  for (auto const& t : times)
    if (t.*which) known.push_back(*(t.*which));
  return summarise(std::move(known));
}

bool is_known(all_times const& times, moment which) {
  return std::ranges::all_of(times, [&](auto const& t) { return (t.*which).has_value(); });
}

all_times measured_times(workload const& w) {
  all_times times;
  for (auto const& r : w.requests) {
    if (!r.measured)
      throw std::invalid_argument{
          fmt::format("{}: not every request was measured, so there is nothing to compare", w.title)};
    times.push_back(*r.measured);
  }
  return times;
}

void add_run_figures(validated_run& v, workload const& w, all_times const& measured, all_times const& simulated) {
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;
  for (auto const& r : w.requests) {
    prompt += r.prompt_tokens;
    output += r.reply_tokens;
  }
  auto const real = seconds(run_time_of(w, measured));
  auto const model = seconds(run_time_of(w, simulated));
  auto const rate = [&](std::string name, std::uint64_t tokens) {
    auto const n = static_cast<double>(tokens);
    v.figures.push_back({.name = std::move(name), .measured = n / real, .simulated = n / model, .fitted = true});
  };
  v.figures.push_back({.name = "run time [s]", .measured = real, .simulated = model, .fitted = true});
  rate("output tokens/s", output);
  rate("prompt + output tokens/s", prompt + output);
}

void add_times(validated_run& v, std::string const& name, all_times const& measured, all_times const& simulated,
               moment which) {
  if (!is_known(measured, which)) {
    v.not_measured.push_back(name);
    return;
  }
  auto const real = summary_of(measured, which);
  auto const model = summary_of(simulated, which);
  auto const add = [&](std::string_view statistic, nanoseconds time_summary::* member) {
    v.figures.push_back({.name = fmt::format("{} [s], {}", name, statistic),
                         .measured = seconds(real.*member),
                         .simulated = seconds(model.*member)});
  };
  add("mean", &time_summary::mean);
  add("p50", &time_summary::p50);
  add("p95", &time_summary::p95);
  add("max", &time_summary::max);
}

void add_load(validated_run& v, measured_load const& real, std::uint32_t lanes) {
  auto const& model = v.simulated;
  v.figures.push_back(
      {.name = "requests running, mean", .measured = real.running, .simulated = model.lanes_used * lanes});
  v.figures.push_back(
      {.name = "KV tokens used [%], mean", .measured = real.kv_share * 100, .simulated = model.kv_used * 100});
  v.figures.push_back({.name = "longest line",
                       .measured = static_cast<double>(real.longest_line),
                       .simulated = static_cast<double>(model.longest_line)});
}

/// How far single requests are off in what `seconds_of` makes of their times; those of which it knows nothing are left out.
template <class SecondsOf>
void add_request_errors(validated_run& v, std::string name, all_times const& measured, all_times const& simulated,
                        SecondsOf const& seconds_of) {
  std::vector<double> errors;
  for (std::size_t i = 0; i != measured.size(); ++i) {
    auto const real = seconds_of(measured[i], i);
    auto const model = seconds_of(simulated[i], i);
    if (real > 0 && model > 0) errors.push_back(std::abs(model / real - 1));
  }
  if (errors.empty()) return;
  std::ranges::sort(errors);
  auto const n = errors.size();
  v.of_requests.push_back(
      {.name = std::move(name), .median = errors[(n * 50 + 99) / 100 - 1], .p90 = errors[(n * 90 + 99) / 100 - 1]});
}

void add_all_request_errors(validated_run& v, workload const& w, all_times const& measured,
                            all_times const& simulated) {
  auto const moment_of = [](moment which) {
    return [which](request_times const& t, std::size_t) { return seconds((t.*which).value_or(nanoseconds{})); };
  };
  add_request_errors(v, "first token", measured, simulated, moment_of(&request_times::first_token));
  add_request_errors(v, "last token", measured, simulated, moment_of(&request_times::last_token));
  add_request_errors(v, "time for a token", measured, simulated, [&](request_times const& t, std::size_t i) {
    auto const tokens = w.requests[i].reply_tokens;
    if (tokens < 2 || !t.first_token || !t.last_token) return 0.0;
    return seconds(*t.last_token - *t.first_token) / (tokens - 1);
  });
}

}  // namespace

double validated_figure::error() const noexcept {
  if (measured == simulated) return 0;
  if (measured == 0) return std::numeric_limits<double>::infinity();
  return simulated / measured - 1;
}
bool validated_figure::within_bound() const noexcept { return std::abs(error()) <= validation_bound; }
bool validated_run::within_bound() const noexcept {
  return std::ranges::all_of(figures, &validated_figure::within_bound);
}

validated_run validate_run(workload const& w, machine const& m, std::optional<measured_load> const& load) {
  if (!m.own) throw std::invalid_argument{fmt::format("nothing was measured on the engine {}", m.name)};
  auto const measured = measured_times(w);
  auto const outcome = simulate_server(w, *m.own, settings_of(m));
  validated_run v{.title = w.title,
                  .engine = title_of(m),
                  .server = std::string{name_of(*m.own)},
                  .requests = w.requests.size(),
                  .simulated = outcome.result,
                  .figures = {},
                  .not_measured = {},
                  .of_requests = {}};
  add_run_figures(v, w, measured, outcome.times);
  add_times(v, "wait", measured, outcome.times, &request_times::admitted);
  add_times(v, "first token", measured, outcome.times, &request_times::first_token);
  add_times(v, "last token", measured, outcome.times, &request_times::last_token);
  if (load)
    add_load(v, *load, m.lanes);
  else
    v.not_measured.emplace_back("load");
  add_all_request_errors(v, w, measured, outcome.times);
  return v;
}

std::span<measured_file const> measured_files() noexcept { return files; }

std::filesystem::path traces_folder(std::optional<std::string> const& given) {
  if (given) return *given;
  if (auto const* const named = std::getenv("KVLANE_TRACES"); named != nullptr && *named != '\0') return named;
  return std::filesystem::path{".."} / "shared" / "traces";
}

}  // namespace replay
