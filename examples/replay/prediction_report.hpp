#pragma once

#include "overload_trial.hpp"
#include "prediction_trial.hpp"

#include <nlohmann/json.hpp>

#include <span>
#include <string>

namespace replay {

[[nodiscard]] std::string table_of(prediction_trial const& t);
[[nodiscard]] std::string table_of(overload_trial const& t);
/// Whether the targets are met: on the measured run those of the median error, under overload those of wrong and late.
[[nodiscard]] std::string verdict_on(prediction_trial const& measured, std::span<overload_trial const> simulated);
/// Everything in the tables, unrounded; times in seconds. Keys come in a fixed order.
[[nodiscard]] nlohmann::ordered_json json_of(prediction_trial const& measured,
                                             std::span<overload_trial const> simulated);

}  // namespace replay
