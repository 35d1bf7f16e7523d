#pragma once

#include <kvlane/detail/arrival_list.hpp>
#include <kvlane/detail/deadline_heap.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/waiter_base.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace kvlane {

/// A place in the line of an admission_core, owned by whoever drives the core: it must stay where it is from the moment
/// it joins until its outcome has been taken. `Policy::waiter` adds the policy's nodes.
///
/// Thread safety: as the core it waits in.
template <class Policy>
class core_waiter : public Policy::waiter {
 public:
  core_waiter() noexcept = default;
  ~core_waiter() = default;

  /// Copies the prompt that it will be ordered by. Must have happened before it joins. Allocates. \throws std::bad_alloc
  void copy_prompt(prompt_view prompt) { this->prompt_ = shared_prompt{prompt}; }

  [[nodiscard]] bool in_line() const noexcept { return in_line_; }
  /// Whether it is work that was preempted.
  [[nodiscard]] bool readmitted() const noexcept { return line.readmitted; }
  /// How often it has been overtaken. Precondition: in_line().
  [[nodiscard]] std::uint32_t overtaken() const noexcept {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(detail::arrival_list<core_waiter>::overtaken(*this), ~0U));
  }
  /// What became of it: a grant, or why there is none. Meaningful once the core has put it into a list of outcomes.
  [[nodiscard]] std::variant<rejection, grant> const& outcome() const noexcept { return outcome_; }
  [[nodiscard]] grant const* granted() const noexcept { return std::get_if<grant>(&outcome_); }

  // The nodes of the core's own structures.
  detail::arrival_hook<core_waiter> line;
  std::size_t heap_index = detail::not_in_heap;

 private:
  template <class>
  friend class admission_core;
  template <class>
  friend class outcome_list;

  std::variant<rejection, grant> outcome_;
  core_waiter* next_ = nullptr;
  work expected_;
  std::optional<lane_id> preferred_lane_;
  blocked_on blocked_ = blocked_on::nothing;  // what it lacked when it was refused
  bool in_line_ = false;
};

/// Waiters whose wait has ended, in the order in which they are to be told. Owns nothing and never allocates.
template <class Policy>
class outcome_list {
 public:
  using waiter = core_waiter<Policy>;

  outcome_list() noexcept = default;
  outcome_list(outcome_list&& other) noexcept
      : first_{std::exchange(other.first_, nullptr)}, last_{std::exchange(other.last_, nullptr)} {}
  outcome_list& operator=(outcome_list&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] waiter* front() const noexcept { return first_; }
  [[nodiscard]] static waiter* next(waiter const& w) noexcept { return w.next_; }

  void push_back(waiter& w) noexcept {
    w.next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = &w;
    last_ = &w;
  }
  waiter* pop_front() noexcept {
    auto* const w = first_;
    if (w == nullptr) return nullptr;
    first_ = std::exchange(w->next_, nullptr);
    if (first_ == nullptr) last_ = nullptr;
    return w;
  }
  /// Takes `w` out, wherever it is; false when it is not here. O(n).
  bool remove(waiter& w) noexcept {
    waiter* before = nullptr;
    for (auto* at = first_; at != nullptr; before = std::exchange(at, at->next_)) {
      if (at != &w) continue;
      (before == nullptr ? first_ : before->next_) = std::exchange(w.next_, nullptr);
      if (last_ == &w) last_ = before;
      return true;
    }
    return false;
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

}  // namespace kvlane
