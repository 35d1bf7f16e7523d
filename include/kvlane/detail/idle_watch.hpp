#pragma once

#include <kvlane/fwd.hpp>

#include <condition_variable>
#include <mutex>

namespace kvlane::detail {

/// Somebody who waits until a queue is idle. Told at most once.
class idle_watch {
 public:
  void notify() noexcept {
    // Under the mutex: whoever waits may destroy its share as soon as it sees the flag.
    std::lock_guard const lock{mutex_};
    idle_ = true;
    told_.notify_all();
  }
  /// Whether it was told before `until`.
  [[nodiscard]] bool wait_until(time_point until) {
    std::unique_lock lock{mutex_};
    auto const told = [this] { return idle_; };
    if (until != time_point::max()) return told_.wait_until(lock, until, told);
    told_.wait(lock, told);
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  bool idle_ = false;
};

}  // namespace kvlane::detail
