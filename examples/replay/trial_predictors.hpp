#pragma once

#include <kvlane/request.hpp>
#include <kvlane/work.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace replay {

/// When things happened to a request on a real server, since the start of the run.
struct measured_request {
  kvlane::time_point queued;
  kvlane::time_point admitted;
  kvlane::time_point first_token;
  kvlane::time_point last_token;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reply_tokens = 0;

  [[nodiscard]] kvlane::duration wait() const noexcept { return admitted - queued; }
  /// Tokens made by `now`: the first at first_token, the last at last_token, the others evenly between them.
  [[nodiscard]] std::uint64_t made(kvlane::time_point now) const noexcept;
};

/// Is told what an engine would tell it, when it would, and says how long a newcomer will wait. Whoever is queued is served
/// in that order. A request is its number.
class trial_predictor {
 public:
  using request_number = std::size_t;

  virtual ~trial_predictor() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// What it knows, in a few words.
  [[nodiscard]] virtual std::string_view source() const noexcept = 0;

  virtual void queued(request_number who, kvlane::time_point now) = 0;
  virtual void admitted(request_number who, kvlane::time_point now) = 0;
  /// Its reply has so many tokens.
  virtual void progressed(request_number who, std::uint64_t made, kvlane::time_point now) = 0;
  virtual void ended(request_number who, kvlane::time_point now) = 0;

  /// The wait of somebody who would be queued now; absent: it cannot tell.
  [[nodiscard]] virtual std::optional<kvlane::fractional_ms> predicted_wait(kvlane::time_point now) const = 0;
};

/// All predictors on trial, new. Their constants are those of the library, or come from `l`. They look up in `requests` what
/// an engine knows at the time; the last two, which are no predictors but yardsticks, also how long replies will be.
[[nodiscard]] std::vector<std::unique_ptr<trial_predictor>>
predictors_on_trial(std::span<measured_request const> requests, kvlane::limits const& l);

}  // namespace replay
