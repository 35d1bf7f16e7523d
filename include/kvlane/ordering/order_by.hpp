#pragma once

#include <kvlane/detail/scan_line.hpp>
#include <kvlane/ordering/policy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace kvlane {

/// The order of a comparison: priority first, then `less(a, b)` (whether `a` goes before `b`), then arrival. It looks at
/// every waiter at each pick, which is fine for lines of some hundreds.
///
///     struct smallest_first {
///       bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
///         return a.demand() < b.demand();
///       }
///     };
///     kvlane::basic_admission_queue<kvlane::order_by<smallest_first>> queue{{.lanes = 4}};
///
/// Thread safety: distinct objects are safe, shared objects are not.
template <class Less>
  requires std::strict_weak_order<Less const&, waiter_base const&, waiter_base const&>
class order_by {
 public:
  class waiter : public detail::scanned_waiter {
   protected:
    ~waiter() = default;
  };

  order_by() = default;
  explicit order_by(Less less) : less_{std::move(less)} {}

  void insert(waiter& w) {
    // for_each_in_order must not allocate.
    if (sorted_.capacity() == line_.size()) sorted_.reserve(std::max<std::size_t>(16, 2 * line_.size()));
    line_.insert(w);
  }
  void erase(waiter& w, departure) noexcept { line_.erase(w); }
  void rescore(waiter&) noexcept {}

  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    waiter* best = nullptr;
    for (auto* const w : line_.all()) {
      auto const fits = w->demand() <= q.free_tokens && w->priority() >= q.min_priority;
      if (fits && (best == nullptr || before(*w, *best))) best = w;
    }
    return best;
  }

  template <class F>
  void for_each_in_order(F&& f) noexcept {
    sorted_.assign(line_.all().begin(), line_.all().end());
    std::ranges::sort(sorted_, [this](waiter const* a, waiter const* b) { return before(*a, *b); });
    for (auto* const w : sorted_)
      if (!f(*w)) return;
  }

 private:
  bool before(waiter const& a, waiter const& b) const noexcept {
    if (a.priority() != b.priority()) return a.priority() > b.priority();
    if (std::invoke(less_, a, b)) return true;
    if (std::invoke(less_, b, a)) return false;
    return a.arrival() < b.arrival();
  }

  [[no_unique_address]] Less less_{};
  detail::scan_line<waiter> line_;
  std::vector<waiter*> sorted_;
};

}  // namespace kvlane
