#pragma once

#include <kvlane/detail/async_room.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace kvlane::detail {

/// The rooms of one execution context, one for each queue. It is a service of the context, so that it hears when that
/// shuts down; and it hears that before the scheduler does, which is older, and still takes what is posted meanwhile.
template <class Net>
class async_rooms final : public Net::execution_context::service {
  using base = typename Net::execution_context::service;

 public:
  inline static typename Net::execution_context::id id;

  explicit async_rooms(typename Net::execution_context& context) : base{context} {}

  /// Seats an operation in the room for the queue at this address. Null when the context is being destroyed: what dies
  /// with it may start something new. \throws std::bad_alloc
  [[nodiscard]] async_room<Net>* enter(void const* queue, async_seat& seat) {
    std::lock_guard const lock{mutex_};
    if (shut_down_) return nullptr;
    auto& room = of(queue);
    room.enter(seat);
    return &room;
  }

 private:
  struct entry {
    void const* queue;
    std::unique_ptr<async_room<Net>> room;
  };

  [[nodiscard]] async_room<Net>& of(void const* queue) {
    for (auto& e : rooms_)
      if (e.queue == queue) return *e.room;
    // Those of queues that are gone, or not used here any more. (A new queue may lie where an old one lay: an empty room
    // knows nothing of its queue.)
    std::erase_if(rooms_, [](auto& e) { return e.room->unused(); });
    return *rooms_.emplace_back(queue, std::make_unique<async_room<Net>>()).room;
  }
  void shutdown() noexcept override {
    {
      std::lock_guard const lock{mutex_};
      shut_down_ = true;
    }
    for (auto& e : rooms_) e.room->shut_down();
  }

  std::mutex mutex_;
  std::vector<entry> rooms_;
  bool shut_down_ = false;
};

}  // namespace kvlane::detail
