#pragma once

#include <kvlane/config.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvlane::detail {

/// Objects of one type that are made and given back without allocating: room is made beforehand, in blocks, and kept.
/// Objects stay where they are.
template <class T>
  requires std::is_trivially_destructible_v<T>
class pool {
 public:
  /// Makes room for `n` objects in all. \throws std::bad_alloc, and then nothing has changed
  void reserve(std::size_t n) {
    if (n <= room_) return;
    auto const more = std::max({n - room_, room_, std::size_t{16}});
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(std::make_unique<slot[]>(more));
    // Handed out from the front, so that what is made together lies together.
    for (auto i = more; i != 0; --i) {
      auto& fresh = blocks_.back()[i - 1];
      fresh.next = free_;
      free_ = &fresh;
    }
    room_ += more;
  }

  /// A new object. Precondition: there is room.
  template <class... Args>
  [[nodiscard]] T* make(Args&&... args) noexcept {
    KVLANE_ASSERT(free_ != nullptr, "no room was made");
    auto* const taken = free_;
    free_ = taken->next;
    return std::construct_at(&taken->object, std::forward<Args>(args)...);
  }

  void give_back(T* object) noexcept {
    auto* const returned = reinterpret_cast<slot*>(object);
    std::construct_at(&returned->next, free_);
    free_ = returned;
  }

 private:
  union slot {
    slot() noexcept : next{nullptr} {}
    slot* next;
    T object;
  };

  std::vector<std::unique_ptr<slot[]>> blocks_;
  slot* free_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace kvlane::detail
