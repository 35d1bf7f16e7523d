#pragma once

#include "engine_model/step_costs.hpp"
#include "yardsticks/block_pool.hpp"
#include "yardsticks/server_model.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace replay {

/// vLLM's sizes; the defaults are those of the measured run (see docs/calibration.md).
struct vllm_settings {
  engine_model::engine_constants costs;
  std::uint64_t kv_tokens = 41'408;  ///< the pool; one of its blocks holds nothing
  std::uint32_t block_tokens = 16;
  std::uint32_t prefix_block_tokens = 16;  ///< of the workload's prefix ids; a multiple of block_tokens
  std::uint32_t running = 256;             ///< max_num_seqs
  std::uint64_t step_tokens = 2'048;       ///< max_num_batched_tokens
};

/// vLLM's rule (version 1 of its scheduler, as in 0.19). A step computes up to step_tokens tokens: first those of running
/// requests in order of admission, one each of those that decode, the rest of their prompts of the others; then prompts from
/// the front of the line while tokens of the step are left, the last of them perhaps in part. KV grows block by block. A
/// request is admitted while the blocks for its whole present sequence are free, though it takes them only as it computes;
/// nothing is kept back for replies. Where a running request finds no block, the latest admitted one loses all of its
/// blocks and goes to the front of the line, and nobody is admitted in that step; it is computed again but for what is
/// still cached. Prompts and replies are cached by whole blocks (see block_pool).
class vllm_server final : public server_model {
 public:
  explicit vllm_server(vllm_settings const& s);

  [[nodiscard]] bool can_ever_run(served_request const& r) const override;
  void arrive(served_request& r) override { line_.push_back(&r); }
  [[nodiscard]] std::optional<server_step> next_step() override;
  void finish(served_request& r) override;
  [[nodiscard]] kvlane::queue_snapshot load() const override;

 private:
  /// What a request holds.
  struct holding {
    std::vector<block_pool::block> blocks;
    std::uint64_t computed = 0;  ///< tokens whose KV is there, or will be when the steps begun so far have ended
    std::size_t named = 0;       ///< leading blocks that others can find
  };
  struct draft {
    server_step step;
    std::uint64_t tokens_left;  ///< of step_tokens
    std::uint64_t kv_read = 0;
  };

  void go_on_with_running(draft& d);
  void admit(draft& d);
  [[nodiscard]] bool make_room(served_request& r, std::size_t blocks, draft& d);
  void preempt_newest(draft& d);
  void compute(served_request& r, std::uint64_t tokens, draft& d);
  void free_all(holding& h);
  [[nodiscard]] std::vector<block_pool::block> cached_prefix(served_request const& r) const;
  [[nodiscard]] block_content content_of(served_request const& r, std::size_t place) const;
  [[nodiscard]] std::size_t blocks_for(std::uint64_t tokens) const noexcept {
    return (tokens + settings_.block_tokens - 1) / settings_.block_tokens;
  }

  vllm_settings settings_;
  block_pool pool_;
  std::deque<served_request*> line_;
  std::vector<served_request*> running_;  ///< in order of admission
  std::unordered_map<served_request const*, holding> holdings_;
};

}  // namespace replay
