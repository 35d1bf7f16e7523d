#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

namespace replay {

/// What a KV block holds: a part of a prefix that several requests may share, or of what one request has generated.
struct block_content {
  static constexpr std::uint64_t shared = ~std::uint64_t{0};

  std::uint64_t owner = shared;  ///< whose it is, unless everybody's
  std::uint64_t prefix = 0;      ///< id of the prefix that it ends, where it is shared
  std::uint64_t place = 0;       ///< which block of the request it is

  bool operator==(block_content const&) const = default;
  struct hash {
    [[nodiscard]] std::size_t operator()(block_content const& c) const noexcept {
      auto const mixed = (c.owner * 0x9E3779B97F4A7C15ULL ^ c.prefix) * 0xC2B2AE3D27D4EB4FULL ^ c.place;
      return std::hash<std::uint64_t>{}(mixed * 0x165667B19E3779F9ULL);
    }
  };
};

/// The KV blocks of an engine that keeps running requests and its prefix cache in one pool, as vLLM does. A block that nobody
/// holds is free, but what it holds can still be found until the block is handed out again: those free for longest go
/// first. (engine_model::prefix_cache is the other kind, a store beside the pool.)
class block_pool {
 public:
  using block = std::size_t;

  explicit block_pool(std::size_t blocks);

  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  [[nodiscard]] std::size_t free_blocks() const noexcept { return free_.size(); }
  [[nodiscard]] bool is_free(block b) const noexcept { return slots_[b].holders == 0; }

  /// The block that holds this, free or not.
  [[nodiscard]] std::optional<block> find(block_content const& content) const;

  /// A block to be written; what it held is forgotten. There must be a free one.
  [[nodiscard]] block take();
  /// One holder more for a block that was found.
  void share(block b);
  /// One holder less. The last one frees it, as the newest of the free blocks.
  void give_back(block b);
  /// From now on the block can be found under its content, unless another one is.
  void name(block b, block_content const& content);

 private:
  struct slot {
    std::uint32_t holders = 0;
    std::optional<block_content> content = {};
    std::list<block>::iterator place = {};  ///< in the list of free blocks, if it is free
  };

  std::vector<slot> slots_;
  std::list<block> free_;  ///< those free for longest first
  std::unordered_map<block_content, block, block_content::hash> known_;
};

}  // namespace replay
