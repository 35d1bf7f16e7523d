#pragma once

#include <kvlane/work.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kvlane {

/// Speed of one phase of service in milliseconds per token, on the careful side: the larger of a moving average
/// (alpha 0.25) and the 95th percentile of the last 64 samples. Both rules are the seed's.
///
/// Thread safety: distinct objects are safe, shared objects are not. Nothing here allocates.
class phase_rate {
 public:
  static constexpr double alpha = 0.25;
  static constexpr std::size_t window = 64;

  /// Precondition: `ms_per_token` is finite and positive.
  void observe(double ms_per_token) noexcept {
    average_ = count_ == 0 ? ms_per_token : average_ * (1.0 - alpha) + ms_per_token * alpha;
    // The window is kept sorted, so that a prediction, which happens far more often than a completion, need not sort.
    auto const held = std::min(count_, window);
    auto const end = sorted_.begin() + static_cast<std::ptrdiff_t>(held);
    auto const slot = count_ % window;
    if (held == window) {
      auto const oldest = std::lower_bound(sorted_.begin(), end, recent_[slot]);
      std::move(oldest + 1, end, oldest);
      insert_sorted(ms_per_token, window - 1);
    } else {
      insert_sorted(ms_per_token, held);
    }
    recent_[slot] = ms_per_token;
    ++count_;
  }

  /// Absent while there is no sample.
  [[nodiscard]] std::optional<double> average() const noexcept {
    return count_ == 0 ? std::nullopt : std::optional{average_};
  }
  /// The value at index ceil(0.95 n) - 1 of the n last samples, sorted.
  [[nodiscard]] std::optional<double> p95() const noexcept {
    auto const n = std::min(count_, window);
    return n == 0 ? std::nullopt : std::optional{sorted_[(n * 95 + 99) / 100 - 1]};
  }
  /// Milliseconds per token to predict with: the larger of the two.
  [[nodiscard]] std::optional<double> rate() const noexcept {
    return count_ == 0 ? std::nullopt : std::optional{std::max(average_, *p95())};
  }

 private:
  void insert_sorted(double value, std::size_t held) noexcept {
    auto const end = sorted_.begin() + static_cast<std::ptrdiff_t>(held);
    auto const place = std::upper_bound(sorted_.begin(), end, value);
    std::move_backward(place, end, end + 1);
    *place = value;
  }

  std::array<double, window> recent_{};
  std::array<double, window> sorted_{};
  double average_ = 0;
  std::size_t count_ = 0;
};

/// What stands behind a predicted wait: it learns from completed requests and turns work into time.
template <class P>
concept wait_predictor =
    requires(P p, P const c, service_sample const& sample, work const& ahead, std::uint32_t lanes) {
      { p.observe(sample) } noexcept -> std::same_as<bool>;
      { c.predicted_wait(ahead, lanes) } noexcept -> std::same_as<std::optional<fractional_ms>>;
    };

/// The predictor `ewma_p95`: each phase at its careful rate, divided by the lanes. No lock.
///
///     kvlane::service_rates rates;
///     rates.observe({.prompt_tokens = 100, .decode_tokens = 100, .prefill = 100ms, .decode = 100ms});
///     rates.predicted_wait({.prompt_tokens = 100, .decode_tokens = 100}, 1);   // 200 ms
///
/// Thread safety: distinct objects are safe, shared objects are not; service_estimator puts a lock around it.
class service_rates {
 public:
  /// Learns from the phases of `sample` that have tokens and a finite positive time. A phase without tokens and time is
  /// simply absent. Returns false when a part of the sample made no sense, or nothing in it could be used.
  bool observe(service_sample const& sample) noexcept {
    auto const prefill = classify(sample.prompt_tokens, sample.prefill.count());
    auto const decode = classify(sample.decode_tokens, sample.decode.count());
    if (prefill == phase::usable) prefill_.observe(sample.prefill.count() / static_cast<double>(sample.prompt_tokens));
    if (decode == phase::usable) decode_.observe(sample.decode.count() / static_cast<double>(sample.decode_tokens));
    auto const nonsense = prefill == phase::nonsense || decode == phase::nonsense;
    return !nonsense && (prefill == phase::usable || decode == phase::usable);
  }

  /// How long `lanes` lanes (at least one) need for the work `ahead`; absent while no rate is known. A phase whose rate
  /// is not known counts nothing.
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(work const& ahead, std::uint32_t lanes) const noexcept {
    auto const prefill = prefill_.rate();
    auto const decode = decode_.rate();
    if (!prefill && !decode) return std::nullopt;
    auto const ms = prefill.value_or(0) * static_cast<double>(ahead.prompt_tokens) +
                    decode.value_or(0) * static_cast<double>(ahead.decode_tokens);
    return fractional_ms{ms / static_cast<double>(std::max(lanes, std::uint32_t{1}))};
  }

  [[nodiscard]] phase_rate const& prefill() const noexcept { return prefill_; }
  [[nodiscard]] phase_rate const& decode() const noexcept { return decode_; }

 private:
  enum class phase { absent, usable, nonsense };

  static phase classify(std::uint64_t tokens, double ms) noexcept {
    if (tokens == 0 && ms == 0.0) return phase::absent;
    return tokens > 0 && std::isfinite(ms) && ms > 0.0 ? phase::usable : phase::nonsense;
  }

  phase_rate prefill_;
  phase_rate decode_;
};

static_assert(wait_predictor<service_rates>);

}  // namespace kvlane
