#pragma once

#include <kvlane/detail/cache_probe.hpp>
#include <kvlane/fwd.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kvlane::test {

/// A prefix cache that says what a test has told it about prompts that begin with a symbol, and remembers what it was
/// asked. Copies share everything.
class scripted_cache {
 public:
  [[nodiscard]] std::uint64_t epoch() const noexcept { return script_->epoch.load(); }
  [[nodiscard]] std::optional<std::uint64_t> saved_cost(std::span<token_id const> prompt) noexcept {
    return answer(prompt.front());
  }
  [[nodiscard]] std::optional<std::uint64_t> saved_cost(std::span<std::uint64_t const> blocks) noexcept {
    return answer(static_cast<std::int64_t>(blocks.front()));
  }

  /// What prompts that begin with `symbol` save from now on; nothing: the cache is busy. The epoch moves.
  void set(std::int64_t symbol, std::optional<std::uint64_t> cost) {
    {
      std::lock_guard const lock{script_->mutex};
      script_->costs[symbol] = cost;
    }
    move_epoch();
  }
  void move_epoch() noexcept { script_->epoch.fetch_add(1); }
  /// Called whenever the cache is asked, from the thread that asks.
  void when_asked(std::function<void()> call) { script_->when_asked = std::move(call); }
  /// First symbols of the prompts it was asked about since the last call, in order.
  [[nodiscard]] std::vector<std::int64_t> take_asked() {
    std::lock_guard const lock{script_->mutex};
    return std::exchange(script_->asked, {});
  }

 private:
  std::optional<std::uint64_t> answer(std::int64_t symbol) {
    if (script_->when_asked) script_->when_asked();
    std::lock_guard const lock{script_->mutex};
    script_->asked.push_back(symbol);
    auto const known = script_->costs.find(symbol);
    return known == script_->costs.end() ? std::optional<std::uint64_t>{0} : known->second;
  }

  struct script {
    std::atomic<std::uint64_t> epoch{1};
    std::mutex mutex;
    std::map<std::int64_t, std::optional<std::uint64_t>> costs;
    std::vector<std::int64_t> asked;
    std::function<void()> when_asked;
  };
  std::shared_ptr<script> script_ = std::make_shared<script>();
};

static_assert(prefix_cache<scripted_cache>);

}  // namespace kvlane::test
