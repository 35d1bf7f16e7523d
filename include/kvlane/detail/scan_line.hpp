#pragma once

#include <kvlane/waiter_base.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace kvlane::detail {

/// A waiter of a policy that scans: it knows its slot.
class scanned_waiter : public waiter_base {
 public:
  scanned_waiter() noexcept = default;
  std::size_t slot = 0;

 protected:
  ~scanned_waiter() = default;
};

/// An unordered set of waiters in one array, for policies that look at all of them. Insert may throw and then changes
/// nothing; erase is O(1) and does not allocate.
template <class Waiter>
class scan_line {
 public:
  void insert(Waiter& w) {
    w.slot = line_.size();
    line_.push_back(&w);
  }
  void erase(Waiter& w) noexcept {
    auto* const last = line_.back();
    line_[w.slot] = last;
    last->slot = w.slot;
    line_.pop_back();
  }
  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  [[nodiscard]] std::span<Waiter* const> all() const noexcept { return line_; }

 private:
  std::vector<Waiter*> line_;
};

}  // namespace kvlane::detail
