#pragma once

#include <kvlane/result.hpp>
#include <kvlane/service_rates.hpp>
#include <kvlane/work.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace kvlane {

namespace detail {

struct estimator_state {
  std::mutex mutex;
  service_rates rates;
  work_sum active;
  work_sum queued;
  std::uint32_t concurrency = 1;

  std::optional<fractional_ms> predicted_wait() const noexcept {
    auto ahead = active;
    ahead.add(queued);
    return rates.predicted_wait(ahead.total(), concurrency);
  }
};

/// Work that counts in one of an estimator's sums for as long as the object lives.
class counted_work {
 public:
  counted_work() noexcept = default;
  counted_work(std::shared_ptr<estimator_state> state, work_sum estimator_state::* sum, work const& w) noexcept
      : state_{std::move(state)}, sum_{sum}, work_{w} {}
  counted_work(counted_work&& other) noexcept = default;
  counted_work& operator=(counted_work&& other) noexcept {
    if (this != &other) {
      release();
      state_ = std::move(other.state_);
      sum_ = other.sum_;
      work_ = other.work_;
    }
    return *this;
  }
  ~counted_work() { release(); }

  /// Takes the work out of the sum. Does nothing the second time.
  void release() noexcept {
    if (auto const state = std::move(state_)) {
      std::lock_guard const lock{state->mutex};
      (state.get()->*sum_).subtract(work_);
    }
  }
  /// Moves the work to another sum in one step.
  counted_work move_to(work_sum estimator_state::* sum) && noexcept {
    if (state_) {
      std::lock_guard const lock{state_->mutex};
      (state_.get()->*sum_).subtract(work_);
      (state_.get()->*sum).add(work_);
    }
    return {std::move(state_), sum, work_};
  }

 private:
  std::shared_ptr<estimator_state> state_;
  work_sum estimator_state::* sum_ = nullptr;
  work work_;
};

}  // namespace detail

/// Work that runs. Move-only; the work leaves the estimate when the object dies, also after the estimator has gone.
class [[nodiscard]] active_work {
 public:
  active_work() noexcept = default;
  explicit active_work(detail::counted_work work) noexcept : work_{std::move(work)} {}
  void release() noexcept { work_.release(); }

 private:
  detail::counted_work work_;
};

/// Work that waits. Move-only; becomes active by `promote`, or leaves the estimate when the object dies.
class [[nodiscard]] queued_work {
 public:
  queued_work() noexcept = default;
  explicit queued_work(detail::counted_work work) noexcept : work_{std::move(work)} {}
  [[nodiscard]] active_work promote() && noexcept {
    return active_work{std::move(work_).move_to(&detail::estimator_state::active)};
  }
  void release() noexcept { work_.release(); }

 private:
  detail::counted_work work_;
};

/// A wait predictor on its own, for servers that queue by other means. An admission queue has all this built in.
///
///     kvlane::service_estimator estimator;
///     auto waiting = estimator.reserve_queued({.prompt_tokens = 100, .decode_tokens = 50}, 30s);
///     if (!waiting) return refuse(waiting.error());        // would_time_out: predicted wait, limit, Retry-After
///     auto running = std::move(*waiting).promote();
///
/// Thread safety: shared objects are safe. Lifetime: the handles may outlive the estimator.
class service_estimator {
 public:
  /// Starts with a concurrency of 1. \throws std::bad_alloc
  service_estimator() : state_{std::make_shared<detail::estimator_state>()} {}

  /// How long all active and queued work will take; absent while no rate is known.
  [[nodiscard]] std::optional<fractional_ms> predicted_wait() const noexcept {
    std::lock_guard const lock{state_->mutex};
    return state_->predicted_wait();
  }

  /// How many requests run side by side; 0 counts as 1.
  void set_concurrency(std::uint32_t concurrency) noexcept {
    std::lock_guard const lock{state_->mutex};
    state_->concurrency = std::max(concurrency, std::uint32_t{1});
  }

  /// Counts `w` as waiting, unless the predicted wait, `w` itself not counted, is above `max_wait`. Unknown rates never
  /// refuse.
  [[nodiscard]] result<queued_work> reserve_queued(work const& w, duration max_wait = forever) noexcept {
    std::lock_guard const lock{state_->mutex};
    auto const predicted = state_->predicted_wait();
    if (max_wait != forever && predicted && *predicted > fractional_ms{max_wait}) {
      refusal_facts facts;
      facts.code = errc::would_time_out;
      facts.predicted_wait = predicted;
      facts.limit = max_wait;
      facts.retry_after = *predicted - fractional_ms{max_wait};
      return rejection{facts};
    }
    state_->queued.add(w);
    return queued_work{detail::counted_work{state_, &detail::estimator_state::queued, w}};
  }

  /// Counts `w` as running.
  [[nodiscard]] active_work start_active(work const& w) noexcept {
    std::lock_guard const lock{state_->mutex};
    state_->active.add(w);
    return active_work{detail::counted_work{state_, &detail::estimator_state::active, w}};
  }

  /// Learns from a request that has ended. Returns false when the sample was nonsense; see service_rates::observe.
  bool observe_completed(work const& done, fractional_ms prefill, fractional_ms decode) noexcept {
    std::lock_guard const lock{state_->mutex};
    return state_->rates.observe({done.prompt_tokens, done.decode_tokens, prefill, decode});
  }

 private:
  std::shared_ptr<detail::estimator_state> state_;
};

}  // namespace kvlane
