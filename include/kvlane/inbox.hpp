#pragma once

#include <kvlane/detail/callback_loop.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kvlane {

/// Where outcomes are collected for a loop that asks for them: an engine that looks once in each iteration.
///
///     kvlane::inbox box;
///     if (auto now = queue.enqueue(r, place, box.slot(id))) start(id, std::move(*now));   // at once: not in the inbox
///     ...
///     for (auto& [tag, outcome] : box.take()) start(tag, std::move(outcome));
///
/// Thread safety: shared objects are safe. Lifetime: neither copied nor moved; slots may outlive the inbox, and what arrives
/// then is given back.
class inbox {
 public:
  struct entry {
    std::uint64_t tag = 0;
    admission outcome;
  };

 private:
  struct shared_state {
    std::mutex mutex;
    std::vector<entry> entries;
    std::size_t slots = 0;  // that may still deliver: room is kept for each
    bool gone = false;      // the inbox is: what arrives goes straight back
    bool giving_back = false;
    std::function<void()> wake;

    // One after the other and not nested: what goes back may cause the next to arrive.
    void give_back(std::unique_lock<std::mutex>& lock) noexcept {
      if (std::exchange(giving_back, true)) return;
      while (!entries.empty()) {
        {
          auto const last = std::move(entries.back());
          entries.pop_back();
          lock.unlock();
        }
        lock.lock();
      }
      giving_back = false;
    }
  };

  // Foreign code, so it waits for the thread's callback loop. Made with the slot: an arrival must not allocate.
  class wake_call final : public detail::deferred_call {
   public:
    explicit wake_call(std::shared_ptr<shared_state> box) noexcept : box_{std::move(box)} {}
    void run() noexcept override {
      std::unique_ptr<wake_call> const self{this};
      {
        std::lock_guard const lock{box_->mutex};
        if (box_->gone) return;
      }
      box_->wake();
    }

   private:
    std::shared_ptr<shared_state> box_;
  };

 public:
  /// The completion of one request. Move-only.
  class slot_type {
   public:
    using is_shell_completion = void;

    slot_type(slot_type&&) noexcept = default;
    slot_type& operator=(slot_type&&) = delete;
    ~slot_type() {
      if (!box_) return;
      std::lock_guard const lock{box_->mutex};
      --box_->slots;
    }

    void operator()(admission outcome) noexcept {
      auto const box = std::exchange(box_, nullptr);
      std::unique_lock lock{box->mutex};
      auto const first = box->entries.empty();
      box->entries.push_back({tag_, std::move(outcome)});
      --box->slots;
      if (box->gone) return box->give_back(lock);
      lock.unlock();
      if (first && wake_) detail::callback_loop::of_this_thread().push(*wake_.release());
    }

   private:
    friend inbox;
    slot_type(std::shared_ptr<shared_state> box, std::uint64_t tag, std::unique_ptr<wake_call> wake) noexcept
        : box_{std::move(box)}, tag_{tag}, wake_{std::move(wake)} {}

    std::shared_ptr<shared_state> box_;
    std::uint64_t tag_;
    std::unique_ptr<wake_call> wake_;
  };

  /// `wake`, if given, is called whenever something arrives in an empty inbox: as a callback of a queue, so it must not
  /// block or throw, and may run in any thread that gives capacity back. \throws std::bad_alloc
  explicit inbox(std::function<void()> wake = {}) : box_{std::make_shared<shared_state>()} {
    box_->wake = std::move(wake);
  }
  inbox(inbox const&) = delete;
  inbox& operator=(inbox const&) = delete;
  /// Gives back what nobody took; callbacks of those who get it may run inside. Afterwards `wake` is not called any more
  /// (a call that another thread has begun goes on).
  ~inbox() {
    std::unique_lock lock{box_->mutex};
    box_->gone = true;
    box_->give_back(lock);
  }

  /// A completion that puts the outcome of one request here, under `tag`. \throws std::bad_alloc
  [[nodiscard]] slot_type slot(std::uint64_t tag) {
    auto wake = box_->wake ? std::make_unique<wake_call>(box_) : nullptr;
    std::lock_guard const lock{box_->mutex};
    make_room();
    ++box_->slots;
    return slot_type{box_, tag, std::move(wake)};
  }

  /// Everything that has arrived, in order of arrival. \throws std::bad_alloc, and then nothing is lost
  [[nodiscard]] std::vector<entry> take() {
    std::vector<entry> taken;
    std::lock_guard const lock{box_->mutex};
    taken.reserve(box_->entries.size());
    for (auto& e : box_->entries) taken.push_back(std::move(e));
    box_->entries.clear();  // keeps the room that outstanding slots count on
    return taken;
  }

  [[nodiscard]] bool empty() const noexcept {
    std::lock_guard const lock{box_->mutex};
    return box_->entries.empty();
  }

 private:
  void make_room() {
    auto const needed = box_->entries.size() + box_->slots + 1;
    if (box_->entries.capacity() < needed) box_->entries.reserve(std::max(needed, box_->entries.capacity() * 2));
  }

  std::shared_ptr<shared_state> box_;
};

}  // namespace kvlane
