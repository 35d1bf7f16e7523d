#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace server {

/// Counts what goes on, and tells when nothing does. Thread safety: safe. Lifetime: what goes on may outlive it.
class activity {
 public:
  /// Goes on for as long as a share of the result lives.
  [[nodiscard]] std::shared_ptr<void> begin() {
    std::lock_guard const lock{state_->mutex};
    ++state_->count;
    return {state_.get(), [state = state_](void*) { state->end(); }};
  }

  /// Calls `idle` once, in any thread, as soon as nothing goes on; inside this call if that is now.
  void when_idle(std::function<void()> idle) {
    {
      std::lock_guard const lock{state_->mutex};
      if (state_->count != 0) {
        state_->idle = std::move(idle);
        return;
      }
    }
    idle();
  }

 private:
  struct state {
    void end() {
      std::function<void()> told;
      {
        std::lock_guard const lock{mutex};
        if (--count == 0) told.swap(idle);
      }
      if (told) told();
    }

    std::mutex mutex;
    std::size_t count = 0;
    std::function<void()> idle;
  };

  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace server
