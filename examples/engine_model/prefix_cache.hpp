#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

namespace engine_model {

/// A prefix cache: which prefix blocks the engine still has, least recently used out first, and of those only leaves. A
/// block is evicted only when no cached block extends it, so what is cached is always whole prefixes.
///
///     prefix_cache cache{{.capacity_tokens = 1'000'000, .block_tokens = 512}};
///     cache.insert(blocks, prompt_tokens);
///     cache.leading_run(others);          // how many leading blocks of another prompt are there
///
/// It is a store of its own beside the KV reservations of running requests: what those hold is not in it, and using a
/// block does not pin it. An id stands for the whole prefix up to its block (whoever makes the ids sees to that).
class prefix_cache {
 public:
  struct size {
    std::uint64_t capacity_tokens = 0;
    std::uint32_t block_tokens = 512;  ///< as the Mooncake traces cut prompts; the last block of one may hold fewer
  };

  explicit prefix_cache(size const& s) : size_{s} {}

  /// The number of leading blocks that are cached. The search starts at `guess`, so a good one saves time.
  [[nodiscard]] std::size_t leading_run(std::span<std::uint64_t const> blocks, std::size_t guess = 0) const noexcept;

  /// Whether a block is cached, and with it the whole prefix up to it.
  [[nodiscard]] bool contains(std::uint64_t block) const noexcept { return nodes_.contains(block); }

  /// Uses all blocks of a prompt and caches those that are missing, evicting what was used least recently. Of a prompt
  /// larger than the cache its beginning is cached.
  void insert(std::span<std::uint64_t const> blocks, std::uint64_t prompt_tokens);

  /// Tokens in the first `count` blocks of a prompt.
  [[nodiscard]] std::uint64_t tokens_in(std::size_t count, std::uint64_t prompt_tokens) const noexcept;

  [[nodiscard]] std::uint64_t capacity_tokens() const noexcept { return size_.capacity_tokens; }
  [[nodiscard]] std::uint64_t used_tokens() const noexcept { return used_; }
  /// Grows whenever a block comes or goes.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

 private:
  struct node {
    std::uint64_t parent = 0;
    std::uint64_t last_use = 0;
    std::uint64_t tokens = 0;
    std::uint32_t children = 0;
    bool is_root = false;
  };

  void use(std::uint64_t id, node& n);
  bool make_room(std::uint64_t tokens);
  void evict(std::uint64_t id);
  void add(std::uint64_t id, node const& n);

  size size_;
  std::uint64_t used_ = 0;
  std::uint64_t changes_ = 0;
  std::uint64_t clock_ = 0;  // one tick for each insert
  std::unordered_map<std::uint64_t, node> nodes_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> leaves_;  // last use, id
};

}  // namespace engine_model
