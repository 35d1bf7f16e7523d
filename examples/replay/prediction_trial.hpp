#pragma once

#include "machines.hpp"
#include "trial_predictors.hpp"
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace replay {

/// Who waited less did not really wait, and is not judged.
inline constexpr kvlane::duration least_wait = std::chrono::milliseconds{100};
/// At most so long after a request's last report the engine tells its progress again.
inline constexpr kvlane::duration report_gap = std::chrono::milliseconds{100};
/// Limits to waits by which refusals are judged.
inline constexpr std::array<kvlane::duration, 2> judged_limits{std::chrono::seconds{30}, std::chrono::seconds{60}};

/// What a limit to waits would have done: who is predicted to wait longer is refused.
struct limit_outcome {
  kvlane::duration limit{};
  std::size_t refused = 0;
  std::size_t wrongly = 0;  ///< of these, would have waited no longer
  std::size_t let_in = 0;
  std::size_t late = 0;  ///< of these, waited longer

  bool operator==(limit_outcome const&) const = default;
};

/// How good the predictions at arrival were. Errors are shares of the true wait. Where nothing was predicted the error is 1,
/// the prediction counts as 0, and nobody is refused.
struct predictor_score {
  std::string name;
  std::string source;
  double median_error = 0;
  double bias = 0;  ///< the median of what was predicted too much; negative: too little
  double p90_error = 0;
  double blind = 0;  ///< share of the arrivals for which nothing was predicted
  std::array<limit_outcome, judged_limits.size()> limits;
};

/// A measured run, and what predictors would have said in it.
struct prediction_trial {
  std::string title;
  std::size_t requests = 0;
  std::size_t judged = 0;  ///< who waited for more than least_wait
  std::vector<predictor_score> scores;
};

/// Puts all predictors on trial, without any simulation. At one moment the order is: progress, ends, arrivals, admissions.
/// Lanes are those of the machine that the run was measured on.
/// \throws std::invalid_argument when it was not measured when each request was queued and admitted
[[nodiscard]] prediction_trial try_predictors(workload const& measured, machine const& m);

}  // namespace replay
