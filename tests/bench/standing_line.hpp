#pragma once

#include "catalog.hpp"
#include "prompts.hpp"
#include "stopwatch.hpp"

#include <kvlane/kvlane.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace kvlane::bench {

enum class scores { equal, spread };

/// Who stands in a line.
struct crowd {
  std::size_t waiting = 1;
  std::size_t fitting_every = 1;  ///< one of so many fits when a lease is given back; the others need everything
  scores scored = scores::equal;
  prompt_shape prompts = {};
};

/// A queue of four lanes, all busy, with a crowd before it whose size stays about the same while it is measured.
template <class Mutex = std::mutex, class Clock = steady>
class standing_line {
 public:
  using queue_type = basic_admission_queue<cache_aware, null_observer, Mutex, Clock>;

  explicit standing_line(crowd const& who, Clock clock = {})
      : who_{who},
        queue_{bounds(who), cache_aware{}, null_observer{}, std::move(clock)},
        prompts_{who.prompts},
        places_(who.waiting) {
    for (std::size_t i = 0; i != lanes; ++i) leases_[i] = std::move(*queue_.try_admit({.kv_demand = small_demand}));
    free_.reserve(places_.size());
    rebuild();
  }
  standing_line(standing_line const&) = delete;
  standing_line& operator=(standing_line const&) = delete;
  ~standing_line() {
    for (auto& place : places_) place = ticket{};  // before the leases, whose end would admit them
  }

  [[nodiscard]] queue_type& queue() noexcept { return queue_; }
  [[nodiscard]] std::vector<ticket>& places() noexcept { return places_; }
  [[nodiscard]] std::mt19937_64& random() noexcept { return random_; }

  /// One admission out of the line: a lease is given back, the next waiter is picked, its callback keeps the new lease.
  void admit_next() noexcept {
    auto const giving = (empty_ + 1) % leases_.size();
    leases_[giving].release();
    empty_ = giving;
  }

  /// Times admissions. Those who were admitted are replaced outside the measured part: one by one where scores are
  /// spread; all together, when a quarter is gone, where they are equal.
  [[nodiscard]] nanoseconds time_admissions(std::size_t rounds) {
    stopwatch watch;
    while (rounds != 0) {
      auto const now = std::min(rounds, most_in_a_row());
      make_ready();
      watch.start();
      for (std::size_t i = 0; i != now; ++i) admit_next();
      watch.stop(now);
      admitted_ += now;
      rounds -= now;
    }
    return watch.total();
  }

  /// Times admissions, each with the enqueue of the next one and the end of the ticket that stood in its place.
  [[nodiscard]] nanoseconds time_whole_cycles(std::size_t rounds) {
    stopwatch watch;
    watch.start();
    for (std::size_t i = 0; i != rounds; ++i) {
      admit_next();
      refill();
    }
    watch.stop(rounds);
    admitted_ += rounds;
    return watch.total();
  }

  /// Puts somebody of the same kind into every free place.
  void refill(duration max_wait = forever) {
    while (!free_.empty()) {
      auto const slot = free_.back();
      free_.pop_back();
      join(slot, {.prompt = prompts_.next(),
                  .kv_demand = fits(slot) ? small_demand : large_demand,
                  .saved_cost = who_.scored == scores::spread ? random_() % 1'000'000 : 0,
                  .max_wait = max_wait});
    }
  }
  /// Says that somebody has left that place.
  void vacated(std::size_t slot) { free_.push_back(slot); }

  /// Puts a request into a place; it has to wait.
  void join(std::size_t slot, request const& r) {
    if (queue_.enqueue(r, places_[slot], arrival{this, slot})) std::abort();
  }

 private:
  static constexpr std::size_t lanes = 4;
  static constexpr std::uint64_t small_demand = 64;
  static constexpr std::uint64_t large_demand = small_demand * (lanes + 1);  // all there is

  struct arrival {
    void operator()(admission outcome) const noexcept {
      line->free_.push_back(slot);
      if (outcome) line->leases_[line->empty_] = std::move(*outcome);
    }
    standing_line* line;
    std::size_t slot;
  };

  static limits bounds(crowd const& who) {
    return {.lanes = lanes,
            .kv_capacity = large_demand,
            .max_waiting = static_cast<std::uint32_t>(who.waiting + 1024),
            .max_overtakes = ~std::uint32_t{0}};
  }

  [[nodiscard]] std::size_t every() const noexcept { return std::min(who_.fitting_every, who_.waiting); }
  [[nodiscard]] bool fits(std::size_t slot) const noexcept { return slot % every() == 0; }
  [[nodiscard]] std::size_t fitting() const noexcept { return (who_.waiting + every() - 1) / every(); }
  [[nodiscard]] std::size_t most_in_a_row() const noexcept {
    return std::clamp<std::size_t>(fitting() / 4, 1, who_.scored == scores::spread ? 256 : 4096);
  }

  /// Everybody leaves and a new crowd comes, in one turn; in a random order, so that kinds and families mix.
  void rebuild() {
    for (auto& place : places_) place = ticket{};
    free_.resize(places_.size());
    std::iota(free_.begin(), free_.end(), std::size_t{0});
    std::ranges::shuffle(free_, random_);
    refill();
    admitted_ = 0;
    if (who_.scored == scores::equal) return;
    // A quarter is replaced, a few at a time: waiters of many ages.
    for (std::size_t i = 0; i != std::min<std::size_t>(fitting() / 4, 1024); ++i) {
      admit_next();
      refill();
    }
  }
  void make_ready() {
    // Those who never fit grow older all the time: without a new start now and then, a later measurement would be
    // another one.
    auto const worn_out = who_.scored == scores::equal
                              ? admitted_ + most_in_a_row() > std::max<std::size_t>(fitting() / 4, 1)
                              : admitted_ > 2 * who_.waiting && who_.fitting_every > 1;
    if (worn_out)
      rebuild();
    else if (who_.scored == scores::spread)
      refill();
  }

  crowd who_;
  queue_type queue_;
  prompt_source prompts_;
  std::mt19937_64 random_{20'240'229};
  std::array<lease, lanes + 1> leases_;
  std::size_t empty_ = lanes;  // the one of leases_ that holds nothing
  std::size_t admitted_ = 0;
  std::vector<std::size_t> free_;
  std::vector<ticket> places_;
};

}  // namespace kvlane::bench
