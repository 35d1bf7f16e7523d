#include "program.hpp"

#include "command_line.hpp"
#include "prediction_report.hpp"
#include "report.hpp"
#include "sweep_page.hpp"
#include "sweep_report.hpp"
#include "validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace replay {

namespace {

/// All inputs, read before anything is printed.
std::vector<workload> read_inputs(command const& c, console const& where) {
  std::vector<workload> inputs;
  for (auto const& path : c.traces) {
    auto t = read_trace_file(path, c.bad);
    for (auto const& complaint : t.complaints) where.err << "skipped " << complaint << '\n';
    inputs.push_back(reshape(std::move(t.requests), c.arrivals));
  }
  if (c.synthetic) inputs.push_back(reshape(make_synthetic(*c.synthetic), c.arrivals));
  return inputs;
}

progress_display display_for(command const& c, console const& where) {
  switch (c.progress) {
    case progress_wish::always: return progress_display::on;
    case progress_wish::never: return progress_display::off;
    case progress_wish::where_a_terminal_is: break;
  }
  return where.default_progress;
}

/// How fast the core was, in real time.
std::string speed_of(core_effort const& core) {
  using milliseconds = std::chrono::duration<double, std::milli>;
  auto text = fmt::format("core: {} decisions in {:.1f} ms and {} stretches of calls", core.decisions,
                          milliseconds{core.deciding}.count(), core.stretches);
  if (core.deciding.count() != 0)
    text += fmt::format(", {:.0f} thousand a second",
                        static_cast<double>(core.decisions) / milliseconds{core.deciding}.count());
  if (core.rescores != 0)
    text += fmt::format("; {} scores in {:.1f} ms", core.rescores, milliseconds{core.rescoring}.count());
  return text;
}

comparison::column run_column(workload const& w, policy p, command const& c, console const& where) {
  auto const display = display_for(c, where);
  auto const start = std::chrono::steady_clock::now();
  run_result result;
  {
    progress_bar bar{where.err, display, std::string{name_of(p)}, w.requests.size()};
    result = simulate(w, p, c.simulation, [&](std::uint64_t ended) { bar.show(ended); });
  }
  if (display == progress_display::on) {
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    where.err << fmt::format("{}: {:.2f} s; {}\n", name_of(p), took.count(), speed_of(result.core));
  }
  return {.used = p, .result = result};
}

comparison compare(workload const& w, command const& c, console const& where) {
  comparison all{.title = w.title, .skipped_lines = {}, .columns = {}};
  if (c.bad == bad_lines::skip) all.skipped_lines = w.skipped_lines;
  for (auto const p : c.policies) all.columns.push_back(run_column(w, p, c, where));
  return all;
}

void write_file(std::string const& path, std::string_view option, std::string_view content) {
  std::ofstream file{path, std::ios::binary};
  file << content;
  file.close();
  if (!file)
    throw trace_error{fmt::format("{}: cannot be written ({}); give {} a path in a folder that exists", path,
                                  std::error_code{errno, std::generic_category()}.message(), option)};
}

void write_json(std::string const& path, nlohmann::ordered_json const& content) {
  write_file(path, "--json", content.dump(2) + '\n');
}

void replay_all(command const& c, console const& where) {
  validate(c.simulation);
  auto const inputs = read_inputs(c, where);
  where.out << describe(c.simulation);
  std::vector<comparison> all;
  for (auto const& w : inputs) {
    all.push_back(compare(w, c, where));
    where.out << '\n' << table_of(all.back()) << std::flush;
  }
  if (c.json_file) write_json(*c.json_file, json_of(c.simulation, all));
}

/// Where all measurements are, or why they cannot be compared.
std::filesystem::path measurements_in(std::optional<std::string> const& given, std::string_view command) {
  auto folder = traces_folder(given);
  auto const demand = [&](std::string_view file) {
    if (!std::filesystem::exists(folder / file))
      throw usage_error{fmt::format("{}: there is no {} in {}; the measurements are not part of the project: name "
                                    "their folder with --traces or in KVLANE_TRACES",
                                    command, file, folder.string())};
  };
  for (auto const& f : measured_files()) {
    demand(f.name);
    if (!f.load_series.empty()) demand(f.load_series);
  }
  return folder;
}

struct measurement {
  workload requests;
  machine const* made_on;
  std::optional<measured_load> load;
};

/// All measurements, read before anything is printed.
std::vector<measurement> read_measurements(std::filesystem::path const& folder) {
  std::vector<measurement> all;
  for (auto const& f : measured_files()) {
    auto& m = all.emplace_back();
    m.requests = read_trace_file((folder / f.name).string(), bad_lines::refuse).requests;
    m.made_on = machine_named(f.machine);
    if (!f.load_series.empty()) m.load = read_load_series_file((folder / f.load_series).string());
  }
  return all;
}

/// Whether all figures are within the bound.
bool validate_all(validate_command const& c, console const& where) {
  std::vector<validated_run> all;
  for (auto const& m : read_measurements(measurements_in(c.traces_folder, "validate"))) {
    all.push_back(validate_run(m.requests, *m.made_on, m.load));
    where.out << table_of(all.back()) << '\n' << std::flush;
  }
  where.out << verdict_on(all);
  if (c.json_file) write_json(*c.json_file, json_of(all));
  return std::ranges::all_of(all, &validated_run::within_bound);
}

void predict_all(predict_command const& c, console const& where) {
  auto const all = read_measurements(measurements_in(c.traces_folder, "predict"));
  // The only run of which it was measured when requests were queued and admitted.
  auto const& with_waits = *std::ranges::find(all, policy::vllm, [](measurement const& m) { return m.made_on->own; });
  auto const measured = try_predictors(with_waits.requests, *with_waits.made_on);
  where.out << table_of(measured) << std::flush;
  std::vector<overload_trial> simulated;
  for (auto const& m : all) {
    simulated.push_back(try_under_overload(m.requests, *m.made_on));
    where.out << '\n' << table_of(simulated.back()) << std::flush;
  }
  where.out << '\n' << verdict_on(measured, simulated);
  if (c.json_file) write_json(*c.json_file, json_of(measured, simulated));
}

void sweep_all(sweep_command const& c, std::string const& command_line, console const& where) {
  validate(c.how);
  if (c.report_file) demand_charts();
  auto inputs = read_inputs(c.what, where);
  where.out << describe(c.how.simulation) << legend_of(c.how);
  std::vector<sweep_outcome> all;
  for (auto& w : inputs) {
    all.push_back(sweep(std::move(w), c.how));
    where.out << '\n' << table_of(all.back(), c.how, c.timing) << std::flush;
  }
  if (c.what.json_file) write_json(*c.what.json_file, json_of(c.how, all));
  if (c.report_file)
    write_file(*c.report_file, "--report",
               html_of(page_of(c.how, all, {.seed = c.what.arrivals.seed, .command_line = command_line})));
}

}  // namespace

int run_program(int argc, char const* const* argv, console const& where) {
  constexpr auto input_is_bad = 1;
  constexpr auto figures_are_off = 1;
  constexpr auto usage_is_bad = 2;
  try {
    auto const wish = parse_command_line(argc, argv);
    if (auto const* const validation = std::get_if<validate_command>(&wish))
      return validate_all(*validation, where) ? 0 : figures_are_off;
    if (auto const* const prediction = std::get_if<predict_command>(&wish)) {
      predict_all(*prediction, where);
      return 0;
    }
    if (auto const* const help = std::get_if<help_text>(&wish))
      where.out << help->text;
    else if (auto const* const compared = std::get_if<sweep_command>(&wish))
      sweep_all(*compared, typed_line(argc, argv), where);
    else
      replay_all(std::get<command>(wish), where);
    return 0;
  } catch (usage_error const& error) {
    where.err << "kvlane-replay: " << error.what() << "\nkvlane-replay --help lists the options.\n";
    return usage_is_bad;
  } catch (std::invalid_argument const& error) {
    where.err << "kvlane-replay: these settings make no sense: " << error.what()
              << "\nThe option of that name sets it; kvlane-replay --help lists the options.\n";
    return usage_is_bad;
  } catch (trace_error const& error) {
    where.err << error.what() << '\n';
    return input_is_bad;
  } catch (std::exception const& error) {
    where.err << "kvlane-replay: " << error.what() << '\n';
    return input_is_bad;
  }
}

}  // namespace replay
