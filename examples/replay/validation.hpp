#pragma once

#include "load_series.hpp"
#include "machines.hpp"
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace replay {

/// How far a simulated figure may be from the measured one.
inline constexpr double validation_bound = 0.10;

/// A figure that was measured, and what the simulation gives for it.
struct validated_figure {
  std::string name;
  double measured = 0;
  double simulated = 0;
  bool fitted = false;  ///< the machine's one free number was chosen by it: agreement proves nothing

  /// Of the simulation, as a share of what was measured; infinite where 0 was measured and something else came out.
  [[nodiscard]] double error() const noexcept;
  [[nodiscard]] bool within_bound() const noexcept;
};

/// How far the simulation is off for single requests, as shares of what was measured.
struct request_errors {
  std::string name;
  double median = 0;
  double p90 = 0;
};

/// A measured run beside its simulation.
struct validated_run {
  std::string title;
  std::string engine;
  std::string server;
  std::size_t requests = 0;
  run_result simulated;
  std::vector<validated_figure> figures;
  std::vector<std::string> not_measured;
  std::vector<request_errors> of_requests;  ///< told, not judged

  [[nodiscard]] bool within_bound() const noexcept;
};

/// Simulates a measured workload on the machine and the server it was measured on. `load` is what was measured there besides.
/// \throws std::invalid_argument when a request of it was not measured, or nothing was measured on that machine
[[nodiscard]] validated_run validate_run(workload const& w, machine const& m,
                                         std::optional<measured_load> const& load = {});

/// A file with measurements, and the name of the machine they were made on.
struct measured_file {
  std::string_view name;
  std::string_view machine;
  std::string_view load_series;  ///< another file; empty: there is none
};
[[nodiscard]] std::span<measured_file const> measured_files() noexcept;

/// The folder with the measurements: the given one, else that of the environment variable KVLANE_TRACES, else
/// ../shared/traces.
[[nodiscard]] std::filesystem::path traces_folder(std::optional<std::string> const& given);

[[nodiscard]] std::string table_of(validated_run const& v);
/// One line: whether all figures are within the bound, and which are not.
[[nodiscard]] std::string verdict_on(std::span<validated_run const> all);
[[nodiscard]] nlohmann::ordered_json json_of(std::span<validated_run const> all);

}  // namespace replay
