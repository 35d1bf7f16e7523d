#pragma once

// The engine's side of replay_run: prefills, decode steps and the tokens they yield. Included by its header alone.

#include "replay_run.hpp"

namespace replay {

/// Starts what comes next, unless a step goes on.
template <class Policy>
void replay_run<Policy>::start_step() {
  if (step_ != step::none) return;
  for (;;) {
    if (prefills_left_ != 0) return start_prefill();
    if (std::exchange(decode_left_, false) && !batch_.empty()) return start_decode();
    if (admitted_.empty() && batch_.empty()) return;
    prefills_left_ = admitted_.size();
    decode_left_ = true;
  }
}

/// Tokens of its cached blocks, but at least one token of a prompt is computed.
template <class Policy>
std::uint64_t replay_run<Policy>::cached_tokens(job const& j) const noexcept {
  auto const all = j.kv_needed();
  return std::min(cache_.tokens_in(j.cached_blocks, j.origin->prompt_tokens), all - std::min<std::uint64_t>(all, 1));
}

template <class Policy>
void replay_run<Policy>::start_prefill() {
  auto& j = *admitted_.front();
  j.cached_blocks = cache_.leading_run(j.origin->blocks, j.cached_blocks);
  auto const hit = cached_tokens(j);
  auto const computed = j.kv_needed() - hit;
  if (j.generated == 0) {
    fate_of(j).computed_tokens += computed;
    record_.prefilled(j.origin->prompt_tokens, hit);
  } else {
    fate_of(j).recomputed_tokens += computed;
    record_.recomputed(computed);
  }
  j.service.prompt_tokens += computed;
  step_ = step::prefill;
  step_end_ = now_ + prefill_time(settings_.engine, computed);
}

template <class Policy>
void replay_run<Policy>::start_decode() {
  std::uint64_t kv_tokens = 0;
  for (auto const* const j : batch_) kv_tokens += j->kv_needed();
  step_ = step::decode;
  step_end_ = now_ + decode_time(settings_.engine, batch_.size(), kv_tokens);
}

template <class Policy>
void replay_run<Policy>::end_step() {
  if (std::exchange(step_, step::none) == step::decode) {
    for (auto* const j : batch_) ++j->service.decode_tokens;
    emit_tokens(0);
  } else {
    auto& j = *admitted_.front();
    admitted_.pop_front();
    --prefills_left_;
    cache_.insert(j.origin->blocks, j.origin->prompt_tokens);
    if (j.generated == 0) {
      fate_of(j).first_token = now_.time_since_epoch();
      record_.first_token(now_ - arrival_of(j));
    }
    j.token_at = now_;
    j.service.prefill += now_ - j.admitted_at;
    batch_.push_back(&j);
    emit_tokens(batch_.size() - 1);
  }
  rescore_line();
  close_event();
}

/// Each request of the batch from place `first` on has got a token: it ends, or grows for its next one.
template <class Policy>
void replay_run<Policy>::emit_tokens(std::size_t first) {
  for (auto i = first; i != batch_.size(); ++i) {
    auto& j = *batch_[i];
    if (j.generated < j.reply) ++j.generated;  // a reply may have been recorded as empty
    if (learns()) core_.progressed(j.held, j.generated - j.generated_before, now_);
    if (j.generated < j.reply) continue;
    finish(j);
    batch_[i] = nullptr;
  }
  std::erase(batch_, nullptr);
  // Only now, so that whatever has come back can be grown into.
  for (auto i = first; i < batch_.size(); ++i) make_room_for_next_token(i);
}

/// Grows the lease of the request at place `i`, at the expense of the newest of the batch where nothing is free.
template <class Policy>
void replay_run<Policy>::make_room_for_next_token(std::size_t i) {
  auto& j = *batch_[i];
  while (!core_.try_grow(j.held, j.kv_needed())) {
    auto& newest = *batch_.back();
    batch_.pop_back();
    preempt(newest);
    if (&newest == &j) return;
  }
}

}  // namespace replay
