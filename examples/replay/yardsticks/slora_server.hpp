#pragma once

#include "engine_model/step_costs.hpp"
#include "yardsticks/projected_peak.hpp"
#include "yardsticks/server_model.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

namespace replay {

/// S-LoRA's sizes; the defaults are those of the measured run (see docs/calibration.md).
struct slora_settings {
  engine_model::engine_constants costs;
  std::uint64_t kv_tokens = 10'000;           ///< the pool
  std::uint64_t batch_prompt_tokens = 3'072;  ///< most prompt tokens in a prefill
  std::uint32_t running = 1'000;              ///< most requests that run at once
  std::uint32_t decodes_between = 10;         ///< decode steps between two looks at the line
  std::uint32_t tokens_per_client = 32;       ///< that an adapter of rank 8 takes from the pool, loaded or not
};

/// S-LoRA's rule. Requests are admitted in order of arrival, in mini-batches: as many from the front of the line as keep the
/// projected peak of the whole batch below the pool (see projected_peak; how long a reply will be is known to it), less
/// what the adapters of its clients take. A new mini-batch is prefilled in a step of its own, while decoding stands still,
/// and joins. Then the line is not looked at for ten decode steps; after these, before each step until somebody is admitted.
/// Nobody is ever preempted. There is no prefix cache.
class slora_server final : public server_model {
 public:
  explicit slora_server(slora_settings const& s) : settings_{s} {}

  [[nodiscard]] bool can_ever_run(served_request const& r) const override;
  void arrive(served_request& r) override { line_.push_back(&r); }
  [[nodiscard]] std::optional<server_step> next_step() override;
  void finish(served_request& r) override { std::erase(batch_, &r); }
  [[nodiscard]] kvlane::queue_snapshot load() const override;

 private:
  [[nodiscard]] std::vector<served_request*> take_mini_batch();
  [[nodiscard]] server_step prefill(std::vector<served_request*> const& mini_batch);
  [[nodiscard]] server_step decode();
  [[nodiscard]] std::uint64_t kv_tokens() const noexcept;

  slora_settings settings_;
  std::deque<served_request*> line_;
  std::vector<served_request*> batch_;
  std::uint32_t decodes_ = 0;  ///< since the last prefill, at most decodes_between
};

}  // namespace replay
