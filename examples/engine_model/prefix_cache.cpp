#include "prefix_cache.hpp"

#include <algorithm>

namespace engine_model {

std::uint64_t prefix_cache::tokens_in(std::size_t count, std::uint64_t prompt_tokens) const noexcept {
  return std::min<std::uint64_t>(std::uint64_t{count} * size_.block_tokens, prompt_tokens);
}

std::size_t prefix_cache::leading_run(std::span<std::uint64_t const> blocks, std::size_t guess) const noexcept {
  // What is cached is whole prefixes: below a cached block everything is cached, above a missing one nothing.
  auto run = std::min(guess, blocks.size());
  while (run != 0 && !nodes_.contains(blocks[run - 1])) --run;
  while (run != blocks.size() && nodes_.contains(blocks[run])) ++run;
  return run;
}

void prefix_cache::insert(std::span<std::uint64_t const> blocks, std::uint64_t prompt_tokens) {
  ++clock_;
  auto const cached = leading_run(blocks);
  for (auto const id : blocks.first(cached)) use(id, nodes_.at(id));
  for (auto i = cached; i != blocks.size(); ++i) {
    auto const tokens = tokens_in(i + 1, prompt_tokens) - tokens_in(i, prompt_tokens);
    if (!make_room(tokens)) return;
    add(blocks[i], {.parent = i == 0 ? 0 : blocks[i - 1], .last_use = clock_, .tokens = tokens, .is_root = i == 0});
  }
}

void prefix_cache::use(std::uint64_t id, node& n) {
  if (n.children == 0) {
    leaves_.erase({n.last_use, id});
    leaves_.insert({clock_, id});
  }
  n.last_use = clock_;
}

/// Evicts until `tokens` fit. False when only what is being inserted is left.
bool prefix_cache::make_room(std::uint64_t tokens) {
  while (tokens > size_.capacity_tokens - used_) {
    if (leaves_.empty() || leaves_.begin()->first == clock_) return false;
    evict(leaves_.begin()->second);
  }
  return true;
}

void prefix_cache::evict(std::uint64_t id) {
  auto const at = nodes_.find(id);
  auto const gone = at->second;
  nodes_.erase(at);
  leaves_.erase({gone.last_use, id});
  used_ -= gone.tokens;
  ++changes_;
  if (gone.is_root) return;
  auto& parent = nodes_.at(gone.parent);
  if (--parent.children == 0) leaves_.insert({parent.last_use, gone.parent});
}

void prefix_cache::add(std::uint64_t id, node const& n) {
  if (!n.is_root) {
    auto& parent = nodes_.at(n.parent);
    if (parent.children++ == 0) leaves_.erase({parent.last_use, n.parent});
  }
  nodes_.emplace(id, n);
  leaves_.insert({n.last_use, id});
  used_ += n.tokens;
  ++changes_;
}

}  // namespace engine_model
