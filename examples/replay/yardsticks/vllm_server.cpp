#include "yardsticks/vllm_server.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace replay {

vllm_server::vllm_server(vllm_settings const& s)
    : settings_{s}, pool_{std::max<std::size_t>(s.kv_tokens / s.block_tokens, 1) - 1} {}

bool vllm_server::can_ever_run(served_request const& r) const {
  // The last token of a reply is never read.
  return blocks_for(std::uint64_t{r.origin->prompt_tokens} + r.reply - 1) <= pool_.size();
}

std::optional<server_step> vllm_server::next_step() {
  draft d{.step = {}, .tokens_left = settings_.step_tokens};
  go_on_with_running(d);
  if (d.step.preempted == 0) admit(d);
  auto const computed = settings_.step_tokens - d.tokens_left;
  if (computed == 0) return std::nullopt;
  d.step.duration = engine_model::mixed_step_time(settings_.costs, computed, d.step.tokens.size(), d.kv_read);
  return std::move(d.step);
}

void vllm_server::go_on_with_running(draft& d) {
  for (std::size_t i = 0; i < running_.size() && d.tokens_left != 0; ++i) {
    auto& r = *running_[i];
    auto const& h = holdings_[&r];
    if (r.generated == r.reply) continue;  // its last token is on the way
    auto const tokens = std::min(r.kv_needed() - h.computed, d.tokens_left);
    if (!make_room(r, blocks_for(h.computed + tokens) - h.blocks.size(), d)) return;
    compute(r, tokens, d);
  }
}

/// Preempts from the end until so many blocks are free. False when that has hit the request itself.
bool vllm_server::make_room(served_request& r, std::size_t blocks, draft& d) {
  while (pool_.free_blocks() < blocks) {
    auto const* const newest = running_.back();
    preempt_newest(d);
    if (newest == &r) return false;
  }
  return true;
}

void vllm_server::preempt_newest(draft& d) {
  auto* const newest = running_.back();
  running_.pop_back();
  free_all(holdings_[newest]);
  line_.push_front(newest);
  ++d.step.preempted;
}

void vllm_server::admit(draft& d) {
  while (!line_.empty() && d.tokens_left != 0 && running_.size() < settings_.running) {
    auto& r = *line_.front();
    if (r.generated == r.reply) return;  // preempted with its last token on the way: it will finish
    auto found = cached_prefix(r);
    auto const revived =
        static_cast<std::size_t>(std::ranges::count_if(found, [&](auto b) { return pool_.is_free(b); }));
    if (blocks_for(r.kv_needed()) - found.size() + revived > pool_.free_blocks()) return;
    line_.pop_front();
    running_.push_back(&r);
    for (auto const b : found) pool_.share(b);
    auto& h = holdings_[&r];
    h.computed = found.size() * settings_.block_tokens;
    h.named = found.size();
    h.blocks = std::move(found);
    d.step.admitted.push_back({.who = &r, .hit_tokens = h.computed});
    compute(r, std::min(r.kv_needed() - h.computed, d.tokens_left), d);
  }
}

/// The next tokens of a request are part of the step; blocks for them are free.
void vllm_server::compute(served_request& r, std::uint64_t tokens, draft& d) {
  auto& h = holdings_[&r];
  h.computed += tokens;
  d.tokens_left -= tokens;
  d.kv_read += h.computed;
  while (h.blocks.size() < blocks_for(h.computed)) h.blocks.push_back(pool_.take());
  for (; h.named < h.computed / settings_.block_tokens; ++h.named)
    pool_.name(h.blocks[h.named], content_of(r, h.named));
  if (h.computed == r.kv_needed()) d.step.tokens.push_back({.who = &r, .nth = ++r.generated});
}

/// Cached blocks of the front of a sequence; at least one token is always computed.
std::vector<block_pool::block> vllm_server::cached_prefix(served_request const& r) const {
  std::vector<block_pool::block> found;
  auto const most = (r.kv_needed() - 1) / settings_.block_tokens;
  while (found.size() != most) {
    auto const b = pool_.find(content_of(r, found.size()));
    if (!b) break;
    found.push_back(*b);
  }
  return found;
}

block_content vllm_server::content_of(served_request const& r, std::size_t place) const {
  auto const last_token = (std::uint64_t{place} + 1) * settings_.block_tokens - 1;
  auto const id = last_token / settings_.prefix_block_tokens;
  auto const& ids = r.origin->blocks;
  if (last_token < r.origin->prompt_tokens && id < ids.size()) return {.prefix = ids[id], .place = place};
  return {.owner = r.index, .prefix = 0, .place = place};
}

void vllm_server::finish(served_request& r) {
  free_all(holdings_[&r]);
  holdings_.erase(&r);
  // Its last token may have been on the way when it was preempted.
  if (std::erase(running_, &r) == 0) std::erase(line_, &r);
}

/// The end of a sequence is free for longer than its beginning, which more requests may share.
void vllm_server::free_all(holding& h) {
  for (auto const b : h.blocks | std::views::reverse) pool_.give_back(b);
  h = {};
}

kvlane::queue_snapshot vllm_server::load() const {
  kvlane::queue_snapshot now;
  now.lanes = settings_.running;
  now.lanes_busy = static_cast<std::uint32_t>(running_.size());
  now.kv_capacity = std::uint64_t{pool_.size()} * settings_.block_tokens;
  now.kv_tokens_used = now.kv_capacity - std::uint64_t{pool_.free_blocks()} * settings_.block_tokens;
  now.waiting = line_.size();
  return now;
}

}  // namespace replay
