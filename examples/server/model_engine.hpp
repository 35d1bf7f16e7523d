#pragma once

#include "engine.hpp"
#include "engine_model/prefix_cache.hpp"
#include "engine_model/step_costs.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace server {

struct model_settings {
  std::uint32_t lanes = 1;
  std::uint64_t cache_tokens = 65'536;
  engine_model::engine_constants costs = engine_model::a10g_engine;
  double speed = 1.0;  ///< steps take so many times less; finite and positive
};

/// A model of a continuously batching engine, in real time: all lanes share one decode step, which takes as long as
/// engine_model says and yields a token for each of them; a new generation joins at the next step, after the prefill of
/// what its prompt does not find in the prefix cache. One timer drives it, which rests while nothing runs.
///
/// The prefix cache holds whole blocks, least recently used out first, beside the KV tokens of what runs.
///
/// Lifetime: until its executor runs nothing any more.
class model_engine final : public engine {
 public:
  model_engine(asio::any_io_executor executor, model_settings const& s);
  ~model_engine() override;

  void start(generation g, event_sink sink) override;
  void extend(kvlane::lane_id lane, std::uint64_t room) override;
  void abort(kvlane::lane_id lane) noexcept override;
  [[nodiscard]] std::uint64_t cache_epoch() const noexcept override;
  [[nodiscard]] std::uint64_t cached_tokens(std::span<kvlane::token_id const> prompt) const noexcept override;

 private:
  struct run;
  /// What is told to whom once the mutex is free.
  using news = std::vector<std::pair<event_sink, engine_event>>;

  void begin_step(news& out);
  void end_step_in(std::chrono::steady_clock::duration wait);
  void end_step();
  void make_token(std::unique_ptr<run>& r, news& out);
  void finish(std::unique_ptr<run>& r, finish_reason why, news& out);
  void remember(run const& r);
  [[nodiscard]] std::uint64_t cached_tokens_locked(std::span<kvlane::token_id const> prompt) const noexcept;
  static void tell(news const& out);

  model_settings settings_;
  mutable std::mutex mutex_;
  engine_model::prefix_cache cache_;
  std::atomic<std::uint64_t> epoch_ = 0;
  std::vector<std::unique_ptr<run>> lanes_;  // by lane; null where nothing runs
  bool stepping_ = false;
  asio::steady_timer timer_;  // used under the mutex
};

}  // namespace server
