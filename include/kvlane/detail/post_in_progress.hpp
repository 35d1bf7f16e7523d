#pragma once

#include <utility>

namespace kvlane::detail {

/// Whether an executor destroys what it was given to run while it is being given it: because it throws, or because it has
/// stopped. Then the thread that posts goes on owning the operation; a moment later nobody would.
class post_in_progress {
 public:
  explicit post_in_progress(void const* operation) noexcept
      : operation_{operation}, outer_{std::exchange(top(), this)} {}
  post_in_progress(post_in_progress const&) = delete;
  post_in_progress& operator=(post_in_progress const&) = delete;
  ~post_in_progress() { top() = outer_; }

  [[nodiscard]] bool dropped() const noexcept { return dropped_; }
  /// Notes that `operation` is not going to be run. False unless this thread is just posting it.
  [[nodiscard]] static bool note_dropped(void const* operation) noexcept {
    for (auto* p = top(); p != nullptr; p = p->outer_)
      if (p->operation_ == operation) return p->dropped_ = true;
    return false;
  }

 private:
  static post_in_progress*& top() noexcept {
    thread_local post_in_progress* innermost = nullptr;
    return innermost;
  }

  void const* operation_;
  post_in_progress* outer_;
  bool dropped_ = false;
};

}  // namespace kvlane::detail
