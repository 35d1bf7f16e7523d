#pragma once

#include <kvlane/fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kvlane::detail {

inline constexpr std::size_t not_in_heap = ~std::size_t{0};

/// The waiters that have a deadline, the first to expire on top: by (deadline, arrival). O(log n) for push, pop and
/// erase; only `reserve_one` allocates, and a waiter that goes leaves nothing behind. Nodes have `heap_index` (initially
/// not_in_heap), `deadline()` and `arrival()`.
template <class Node>
class deadline_heap {
 public:
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] Node* top() const noexcept { return heap_.empty() ? nullptr : heap_.front(); }

  /// Makes room for one more, so that the next push cannot fail. \throws std::bad_alloc
  void reserve_one() {
    if (heap_.size() == heap_.capacity()) heap_.reserve(heap_.empty() ? 16 : heap_.size() * 2);
  }

  /// Precondition: there is room.
  void push(Node& n) noexcept {
    heap_.push_back(&n);
    sift_up(heap_.size() - 1, &n);
  }

  /// Does nothing for a waiter without a deadline.
  void erase(Node& n) noexcept {
    auto const hole = std::exchange(n.heap_index, not_in_heap);
    if (hole == not_in_heap) return;
    auto* const moved = heap_.back();
    heap_.pop_back();
    if (moved == &n) return;
    if (hole > 0 && before(*moved, *heap_[(hole - 1) / 2]))
      sift_up(hole, moved);
    else
      sift_down(hole, moved);
  }

 private:
  static bool before(Node const& a, Node const& b) noexcept {
    return a.deadline() != b.deadline() ? a.deadline() < b.deadline() : a.arrival() < b.arrival();
  }
  void place(std::size_t at, Node* n) noexcept {
    heap_[at] = n;
    n->heap_index = at;
  }
  void sift_up(std::size_t at, Node* n) noexcept {
    for (; at > 0 && before(*n, *heap_[(at - 1) / 2]); at = (at - 1) / 2) place(at, heap_[(at - 1) / 2]);
    place(at, n);
  }
  void sift_down(std::size_t at, Node* n) noexcept {
    for (;;) {
      auto child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
      if (!before(*heap_[child], *n)) break;
      place(at, heap_[child]);
      at = child;
    }
    place(at, n);
  }

  std::vector<Node*> heap_;
};

}  // namespace kvlane::detail
