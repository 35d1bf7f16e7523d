#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace server {

/// What the server counts besides the queue. Thread safety: safe.
class server_counters {
 public:
  void replied(int status) {
    std::lock_guard const lock{mutex_};
    ++replies_[status];
  }
  /// Replies by HTTP status; 499 for clients that left.
  [[nodiscard]] std::map<int, std::uint64_t> replies() const {
    std::lock_guard const lock{mutex_};
    return replies_;
  }

  std::atomic<std::uint64_t> prompt_tokens = 0;         ///< of prompts that were computed
  std::atomic<std::uint64_t> cached_prompt_tokens = 0;  ///< of these, found in the prefix cache
  std::atomic<std::uint64_t> reply_tokens = 0;
  std::atomic<std::uint64_t> streams_broken = 0;  ///< that ended with an error after they had begun

 private:
  mutable std::mutex mutex_;
  std::map<int, std::uint64_t> replies_;
};

}  // namespace server
