#pragma once

#include <kvlane/fwd.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace kvlane {

/// A prompt as it is compared with others: token ids, or hashes of its prefix blocks. At most one of them is not empty.
/// A view: what it looks at must outlive it.
struct prompt_view {
  std::span<token_id const> tokens = {};
  std::span<std::uint64_t const> blocks = {};

  [[nodiscard]] constexpr bool empty() const noexcept { return tokens.empty() && blocks.empty(); }
  /// Whether this prompt begins with `prefix`; every prompt begins with an empty one.
  [[nodiscard]] constexpr bool begins_with(prompt_view const& prefix) const noexcept {
    return prefix.tokens.size() <= tokens.size() && prefix.blocks.size() <= blocks.size() &&
           prompt_view{tokens.first(prefix.tokens.size()), blocks.first(prefix.blocks.size())} == prefix;
  }
  /// Equal when both are of one kind and show the same symbols. Empty prompts are equal.
  [[nodiscard]] friend constexpr bool operator==(prompt_view const& a, prompt_view const& b) noexcept {
    return std::ranges::equal(a.tokens, b.tokens) && std::ranges::equal(a.blocks, b.blocks);
  }
};

/// A change of the engine's prefix cache: the last `tokens` tokens of `prefix` have been cached (what comes before them was
/// already), or evicted (what comes before them stays). Caches grow and shrink leaf by leaf, so every change is of this form.
struct prefix_change {
  prompt_view prefix;                ///< the whole prefix, with what has changed: tokens, or hashes of blocks
  std::uint64_t tokens = 0;          ///< how many tokens at its end have changed
  std::uint64_t cost_per_token = 1;  ///< what a cached token saves

  /// By how much it changes what the cache saves for a prompt that begins with `prefix`; saturates at 2^48 - 1.
  [[nodiscard]] constexpr std::int64_t cost() const noexcept {
    constexpr auto most = (std::uint64_t{1} << 48) - 1;
    auto const overflows = cost_per_token != 0 && tokens > most / cost_per_token;
    return static_cast<std::int64_t>(overflows ? most : tokens * cost_per_token);
  }
};

/// An owned, immutable prompt that is shared and not copied: a waiter, the policy that remembers whom it served last and
/// a cache probe that runs without the lock can all hold it.
///
/// Thread safety: distinct objects are safe, also when they share one prompt; shared objects are not.
class shared_prompt {
 public:
  shared_prompt() noexcept = default;

  /// Copies what `prompt` shows. Allocates once, unless it is empty. \throws std::bad_alloc
  explicit shared_prompt(prompt_view prompt) {
    if (prompt.empty()) return;
    auto const bytes = prompt.tokens.size_bytes() + prompt.blocks.size_bytes();
    block_ = ::new (::operator new(sizeof(block) + bytes)) block{{1}, !prompt.blocks.empty(), 0};
    block_->size = block_->of_hashes ? prompt.blocks.size() : prompt.tokens.size();
    if (block_->of_hashes)
      std::uninitialized_copy(prompt.blocks.begin(), prompt.blocks.end(), static_cast<std::uint64_t*>(block_->data()));
    else
      std::uninitialized_copy(prompt.tokens.begin(), prompt.tokens.end(), static_cast<token_id*>(block_->data()));
  }

  shared_prompt(shared_prompt const& other) noexcept : block_{other.block_} {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  shared_prompt(shared_prompt&& other) noexcept : block_{std::exchange(other.block_, nullptr)} {}
  shared_prompt& operator=(shared_prompt other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~shared_prompt() {
    if (block_ == nullptr || block_->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    block_->~block();
    ::operator delete(block_);
  }

  /// What it holds; stays valid for as long as any owner of the same prompt lives.
  [[nodiscard]] prompt_view view() const noexcept {
    if (block_ == nullptr) return {};
    if (block_->of_hashes) return {.blocks = {static_cast<std::uint64_t const*>(block_->data()), block_->size}};
    return {.tokens = {static_cast<token_id const*>(block_->data()), block_->size}};
  }

 private:
  struct block {
    std::atomic<std::uint32_t> owners;
    bool of_hashes;
    std::size_t size;
    void* data() noexcept { return this + 1; }
  };
  static_assert(alignof(block) >= alignof(std::uint64_t) && sizeof(block) % alignof(std::uint64_t) == 0);

  block* block_ = nullptr;
};

}  // namespace kvlane
