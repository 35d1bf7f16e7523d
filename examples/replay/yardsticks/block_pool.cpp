#include "yardsticks/block_pool.hpp"

#include <cassert>

namespace replay {

block_pool::block_pool(std::size_t blocks) : slots_(blocks) {
  for (block b = 0; b != blocks; ++b) slots_[b].place = free_.insert(free_.end(), b);
}

std::optional<block_pool::block> block_pool::find(block_content const& content) const {
  auto const at = known_.find(content);
  return at == known_.end() ? std::nullopt : std::optional{at->second};
}

block_pool::block block_pool::take() {
  assert(!free_.empty());
  auto const b = free_.front();
  free_.pop_front();
  auto& s = slots_[b];
  if (s.content) known_.erase(*s.content);
  s.content.reset();
  s.holders = 1;
  return b;
}

void block_pool::share(block b) {
  auto& s = slots_[b];
  if (s.holders++ == 0) free_.erase(s.place);
}

void block_pool::give_back(block b) {
  auto& s = slots_[b];
  assert(s.holders != 0);
  if (--s.holders == 0) s.place = free_.insert(free_.end(), b);
}

void block_pool::name(block b, block_content const& content) {
  if (known_.emplace(content, b).second) slots_[b].content = content;
}

}  // namespace replay
