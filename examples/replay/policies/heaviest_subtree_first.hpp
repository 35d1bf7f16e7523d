#pragma once

#include <kvlane/detail/scan_line.hpp>
#include <kvlane/ordering/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace replay {

/// SGLang's "dfs-weight": the line as a tree of its prompts' blocks, walked from the root to the child below which most
/// wait, then to that of the earliest waiter. A prompt that ends at a node comes after the children of the node. Everyone
/// counts; who does not fit is passed over. (SGLang takes the tree of what is cached; here it is that of who waits.)
///
/// Each pick sorts the waiters along the walk. Thread safety: distinct objects are safe, shared objects are not.
class heaviest_subtree_first {
 public:
  class waiter : public kvlane::detail::scanned_waiter {
   protected:
    ~waiter() = default;
  };

  void insert(waiter& w);
  void erase(waiter& w, kvlane::departure) noexcept { line_.erase(w); }
  void rescore(waiter&) noexcept {}
  [[nodiscard]] waiter* pick(kvlane::pick_query const& q) noexcept;

 private:
  /// Waiters below one node, next to each other in `walk_`.
  struct subtree {
    std::size_t first = 0;
    std::size_t count = 0;
    waiter* earliest = nullptr;
    waiter* earliest_fitting = nullptr;
  };
  [[nodiscard]] subtree heaviest_child(subtree const& of, std::size_t depth, kvlane::pick_query const& q) noexcept;
  [[nodiscard]] subtree child_at(std::size_t first, std::size_t end, std::size_t depth,
                                 kvlane::pick_query const& q) const noexcept;

  kvlane::detail::scan_line<waiter> line_;
  std::vector<waiter*> walk_;
};

static_assert(kvlane::ordering_policy<heaviest_subtree_first>);

}  // namespace replay
