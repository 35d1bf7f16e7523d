// kvlane_benchmarks: measures every row of the catalog beside its baseline and prints Markdown tables. `--quick` gives
// each row little time; the options of google benchmark (`--benchmark_filter=<regex>` and others) work as usual.

#include "catalog.hpp"
#include "sampling.hpp"
#include "table.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kvlane::bench {

namespace {

std::vector<topic> all_topics() {
  return {baselines(),     fast_path(),  two_threads(), line_of_equals(), spread_line(), entering(),   leaving(),
          cached_prefix(), slow_probe(), hand_off(),    async_hand_off(), lock_hold(),   predecessor()};
}

/// Measures a row as one iteration: repetitions are our own, for both sides take turns in them.
void run(benchmark::State& state, row const& r, effort const& how, std::vector<result_line>& lines) {
  for (auto _ : state) {
    auto const f = sample(r, how);
    state.SetIterationTime(f.subject.count() * 1e-9);
    state.counters["baseline_ns"] = f.baseline.count();
    state.counters["ratio"] = f.ratio;
    state.counters["spread"] = f.spread;
    state.counters["repetitions"] = static_cast<double>(f.repetitions);
    lines.push_back({&r, f});
  }
}

/// Says on the error stream how far the run has come.
class progress : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const& runs) override {
    for (auto const& run : runs) std::cerr << run.run_name.function_name << '\n';
  }
};

bool take_quick(int& argc, char** argv) {
  auto* const end =
      std::remove_if(argv + 1, argv + argc, [](char const* a) { return std::string_view{a} == "--quick"; });
  auto const found = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return found;
}

int run_all(int argc, char** argv) {
  // Mutexes and counted pointers are cheaper in a process that never had a second thread; no server is one.
  std::thread{[] {}}.join();
  effort how;
  if (take_quick(argc, argv)) how = {.budget = std::chrono::milliseconds{120}, .fewest = 3, .most = 15};
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  auto const topics = all_topics();
  std::vector<std::vector<result_line>> lines(topics.size());
  for (std::size_t t = 0; t != topics.size(); ++t)
    for (auto const& r : topics[t].rows)
      benchmark::RegisterBenchmark((topics[t].title + ": " + r.name).c_str(),
                                   [&r, &how, &here = lines[t]](benchmark::State& s) { run(s, r, how, here); })
          ->Iterations(1)
          ->UseManualTime();
  progress reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  for (std::size_t t = 0; t != topics.size(); ++t)
    if (!lines[t].empty() || topics[t].rows.empty()) write_table(std::cout, topics[t], lines[t]);
  return 0;
}

}  // namespace

}  // namespace kvlane::bench

int main(int argc, char** argv) { return kvlane::bench::run_all(argc, argv); }
