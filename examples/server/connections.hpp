#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace server {

/// Calls a function when a client leaves. Thread safety: safe.
class departure_bell {
 public:
  /// Calls `gone` when `ring` is called, at once if that was before. Replaces an earlier one.
  void when_gone(std::function<void()> gone) {
    {
      std::lock_guard const lock{mutex_};
      if (!rung_) {
        gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }
  void ring() {
    std::function<void()> gone;
    {
      std::lock_guard const lock{mutex_};
      rung_ = true;
      gone.swap(gone_);
    }
    if (gone) gone();
  }
  /// The reply is complete: leaving means nothing any more.
  void silence() {
    std::function<void()> gone;
    std::lock_guard const lock{mutex_};
    gone.swap(gone_);
  }

 private:
  std::mutex mutex_;
  bool rung_ = false;
  std::function<void()> gone_;
};

/// Which requests of which connection are being answered. A connection may have sent several. Thread safety: safe.
class connections {
 public:
  void add(std::uint64_t connection, std::shared_ptr<departure_bell> const& bell) {
    std::lock_guard const lock{mutex_};
    auto& bells = bells_[connection];
    std::erase_if(bells, [](auto const& b) { return b.expired(); });
    bells.push_back(bell);
  }
  void closed(std::uint64_t connection) {
    std::vector<std::weak_ptr<departure_bell>> bells;
    {
      std::lock_guard const lock{mutex_};
      auto const at = bells_.find(connection);
      if (at == bells_.end()) return;
      bells = std::move(at->second);
      bells_.erase(at);
    }
    for (auto const& weak : bells)
      if (auto const bell = weak.lock()) bell->ring();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<std::weak_ptr<departure_bell>>> bells_;
};

}  // namespace server
