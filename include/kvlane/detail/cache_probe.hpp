#pragma once

#include <kvlane/prompt.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace kvlane {

namespace detail {

template <class C>
concept probes_tokens = requires(C& c, std::span<token_id const> tokens) {
  { c.saved_cost(tokens) } -> std::convertible_to<std::optional<std::uint64_t>>;
};
template <class C>
concept probes_blocks = requires(C& c, std::span<std::uint64_t const> blocks) {
  { c.saved_cost(blocks) } -> std::convertible_to<std::optional<std::uint64_t>>;
};

}  // namespace detail

/// A prefix cache that a queue can ask what it would save. `epoch()` changes whenever an answer may have changed;
/// `saved_cost(span)` takes token ids, block hashes, or both kinds, and returns a cost, or nothing for "busy, keep what
/// you have": it is asked again when the epoch has moved, so move that after the answer can be given. They must not throw
/// (that would end the program). They are called without the queue's lock, from any thread,
/// several at once for `epoch` and one at a time for `saved_cost`.
template <class C>
concept prefix_cache = std::movable<C> && (detail::probes_tokens<C> || detail::probes_blocks<C>) && requires(C& c) {
  { c.epoch() } -> std::convertible_to<std::uint64_t>;
};

namespace detail {

/// A prefix_cache whose type has been forgotten.
class cache_probe {
 public:
  cache_probe() noexcept = default;
  cache_probe(cache_probe const&) = delete;
  cache_probe& operator=(cache_probe const&) = delete;
  virtual ~cache_probe() = default;
  [[nodiscard]] virtual std::uint64_t epoch() noexcept = 0;
  [[nodiscard]] virtual std::optional<std::uint64_t> saved_cost(prompt_view prompt) noexcept = 0;
};

template <prefix_cache Cache>
class cache_probe_of final : public cache_probe {
 public:
  explicit cache_probe_of(Cache cache) : cache_{std::move(cache)} {}
  std::uint64_t epoch() noexcept override { return cache_.epoch(); }
  std::optional<std::uint64_t> saved_cost(prompt_view prompt) noexcept override {
    if constexpr (probes_blocks<Cache>)
      if (!prompt.blocks.empty()) return cache_.saved_cost(prompt.blocks);
    if constexpr (probes_tokens<Cache>)
      if (!prompt.tokens.empty()) return cache_.saved_cost(prompt.tokens);
    return std::nullopt;
  }

 private:
  Cache cache_;
};

}  // namespace detail

}  // namespace kvlane
