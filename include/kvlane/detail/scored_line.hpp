#pragma once

#include <kvlane/detail/order_score.hpp>
#include <kvlane/detail/scan_line.hpp>
#include <kvlane/detail/scan_order.hpp>

#include <algorithm>
#include <cstdint>

namespace kvlane::detail {

/// Waiters that are scored, grouped and sorted anew whenever somebody asks for the order.
class scored_line {
 public:
  class waiter : public scanned_waiter {
   protected:
    ~waiter() = default;
  };

  explicit scored_line(ordering_options const& options) : options_{options} { validate(options_); }

  void insert(waiter& w) {
    scan_.reserve(line_.size() + 1);
    line_.insert(w);
  }
  void erase(waiter& w, departure why) noexcept {
    if (why == departure::admitted) {
      ++turn_;
      last_admitted_ = w.shared();
    }
    line_.erase(w);
  }

  /// Whether anyone fits: cheap, and mostly nobody does.
  [[nodiscard]] bool anyone_fits(std::uint64_t tokens, std::uint32_t min_priority) const noexcept {
    return std::ranges::any_of(line_.all(), [&](waiter const* w) { return fits(*w, tokens, min_priority); });
  }
  [[nodiscard]] static bool fits(waiter const& w, std::uint64_t tokens, std::uint32_t min_priority) noexcept {
    return w.demand() <= tokens && w.priority() >= min_priority;
  }

  /// Orders the waiters for which `wanted` is true.
  template <class Wanted>
  scan_order<waiter*>& order(Wanted const& wanted) noexcept {
    scan_.clear();
    for (auto* const w : line_.all())
      if (wanted(*w))
        scan_.add({.prompt = w->prompt(),
                   .priority = w->priority(),
                   .saved_cost = w->saved_cost(),
                   .enqueued_turn = w->enqueued_turn(),
                   .arrival = w->arrival(),
                   .handle = w});
    scan_.compute(turn_, options_, last_admitted_.view());
    return scan_;
  }

 private:
  ordering_options options_;
  std::uint64_t turn_ = 0;
  shared_prompt last_admitted_;
  scan_line<waiter> line_;
  scan_order<waiter*> scan_;
};

}  // namespace kvlane::detail
