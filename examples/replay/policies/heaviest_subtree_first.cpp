#include "policies/heaviest_subtree_first.hpp"

#include <algorithm>

namespace replay {

namespace {

using waiter = heaviest_subtree_first::waiter;

bool fits(waiter const& w, kvlane::pick_query const& q) noexcept { return w.demand() <= q.free_tokens; }

bool ends_at(waiter const& w, std::size_t depth) noexcept { return w.prompt().blocks.size() <= depth; }

bool earlier(waiter const* a, waiter const* b) noexcept {
  return b == nullptr || (a != nullptr && a->arrival() < b->arrival());
}

}  // namespace

void heaviest_subtree_first::insert(waiter& w) {
  walk_.reserve(line_.size() + 1);  // pick must not allocate
  line_.insert(w);
}

heaviest_subtree_first::waiter* heaviest_subtree_first::pick(kvlane::pick_query const& q) noexcept {
  // Of the highest priority with somebody who fits.
  waiter const* best = nullptr;
  for (auto const* const w : line_.all())
    if (fits(*w, q) && w->priority() >= q.min_priority && (best == nullptr || w->priority() > best->priority()))
      best = w;
  if (best == nullptr) return nullptr;
  walk_.clear();
  for (auto* const w : line_.all())
    if (w->priority() == best->priority()) walk_.push_back(w);
  subtree here{.first = 0, .count = walk_.size()};
  for (auto* const w : walk_)
    if (fits(*w, q) && earlier(w, here.earliest_fitting)) here.earliest_fitting = w;
  for (std::size_t depth = 0;; ++depth) {
    auto const child = heaviest_child(here, depth, q);
    if (child.count == 0) return here.earliest_fitting;
    if (child.count == 1) return child.earliest_fitting;
    here = child;
  }
}

/// Sorts a subtree by its children. Returns the one that is next in the walk, of those with somebody who fits; an empty one
/// where there is none.
heaviest_subtree_first::subtree heaviest_subtree_first::heaviest_child(subtree const& of, std::size_t depth,
                                                                       kvlane::pick_query const& q) noexcept {
  auto const begin = walk_.begin() + static_cast<std::ptrdiff_t>(of.first);
  auto const end = begin + static_cast<std::ptrdiff_t>(of.count);
  auto const inner = std::partition(begin, end, [&](waiter const* w) { return ends_at(*w, depth); });
  std::sort(inner, end,
            [&](waiter const* a, waiter const* b) { return a->prompt().blocks[depth] < b->prompt().blocks[depth]; });
  subtree best;
  auto const stop = of.first + of.count;
  for (auto first = static_cast<std::size_t>(inner - walk_.begin()); first != stop;) {
    auto const child = child_at(first, stop, depth, q);
    first += child.count;
    if (child.earliest_fitting == nullptr) continue;
    if (child.count > best.count || (child.count == best.count && earlier(child.earliest, best.earliest))) best = child;
  }
  return best;
}

/// The child whose waiters begin at `first`.
heaviest_subtree_first::subtree heaviest_subtree_first::child_at(std::size_t first, std::size_t end, std::size_t depth,
                                                                 kvlane::pick_query const& q) const noexcept {
  subtree child{.first = first};
  auto const symbol = walk_[first]->prompt().blocks[depth];
  for (auto i = first; i != end && walk_[i]->prompt().blocks[depth] == symbol; ++i) {
    auto* const w = walk_[i];
    ++child.count;
    if (earlier(w, child.earliest)) child.earliest = w;
    if (fits(*w, q) && earlier(w, child.earliest_fitting)) child.earliest_fitting = w;
  }
  return child;
}

}  // namespace replay
