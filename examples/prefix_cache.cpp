// Two ways in which a queue learns what the engine's prefix cache would save: it asks a cache that was attached whenever
// that cache's epoch has moved, or the engine tells it what has been cached and evicted. The order of the line follows.

#include <kvlane/kvlane.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

constexpr std::uint64_t block_tokens = 16;
using prompt = std::vector<std::uint64_t>;  // hashes of its blocks; each hash covers all that comes before it, too

/// The blocks that are cached. The engine's thread writes, the queue's callers read.
class block_cache {
 public:
  void insert(prompt const& blocks) {
    {
      std::lock_guard const lock{mutex_};
      cached_.insert(blocks.begin(), blocks.end());
    }
    ++epoch_;  // after unlocking: whoever was told "busy" asks again only when the epoch has moved
  }
  std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// The tokens that need not be computed; nothing when the answer would have to wait.
  std::optional<std::uint64_t> saved_tokens(std::span<std::uint64_t const> blocks) noexcept {
    std::unique_lock const lock{mutex_, std::try_to_lock};
    if (!lock) return std::nullopt;
    std::uint64_t tokens = 0;
    for (auto const block : blocks) {
      if (!cached_.contains(block)) break;
      tokens += block_tokens;
    }
    return tokens;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> cached_;
  std::atomic<std::uint64_t> epoch_ = 0;
};

/// What is attached. It shares the cache, for leases and tickets may keep it alive longer than the queue.
struct cache_probe {
  std::shared_ptr<block_cache> cache;
  std::uint64_t epoch() const noexcept { return cache->epoch(); }
  std::optional<std::uint64_t> saved_cost(std::span<std::uint64_t const> blocks) const noexcept {
    return cache->saved_tokens(blocks);
  }
};

/// A queue whose only lane is busy, and three requests that wait for it: one in law, one in code, one that chats.
struct waiting_line {
  kvlane::admission_queue queue{{.lanes = 1}};
  kvlane::admission busy = queue.try_admit({.prompt_tokens = 100});
  std::vector<kvlane::ticket> places;

  explicit waiting_line(std::vector<prompt> const& prompts) {
    for (auto const& p : prompts) {
      kvlane::request const r{.prefix_blocks = p, .prompt_tokens = 100, .tag = p.front()};
      auto const refused = queue.enqueue(r, places.emplace_back(), [](kvlane::admission const&) {});
      if (refused) throw std::runtime_error{refused->error().message()};
    }
  }
  void show(char const* when) const {
    std::printf("  %-33s", when);
    for (auto const& w : queue.waiters()) std::printf(" %c", static_cast<char>(w.tag));
    std::puts("");
  }
};

int main() {
  prompt const law{'l', 0x1a, 0x1b}, code{'c', 0xc0}, chat{'h'};
  std::puts("asked: the cache is attached");
  waiting_line asked{{chat, code, law}};
  auto const cache = std::make_shared<block_cache>();
  asked.queue.attach(cache_probe{cache});
  asked.show("by arrival:");
  cache->insert(code);
  asked.queue.expire();  // as good as any event: each begins with a look at the epoch
  asked.show("code is cached:");
  cache->insert(law);
  {
    auto const writing = cache->lock();
    std::thread{[&] { asked.queue.expire(); }}.join();
  }
  asked.show("law too, but the cache is busy:");
  cache->insert(chat);
  asked.queue.expire();
  asked.show("the next time it answers:");

  std::puts("told: the engine pushes each change");
  waiting_line told{{chat, code, law}};
  told.queue.prefix_cached({.prefix = {.blocks = code}, .tokens = 2 * block_tokens});
  told.show("code is cached:");
  told.queue.prefix_cached({.prefix = {.blocks = law}, .tokens = 3 * block_tokens});
  told.show("law is cached:");
  told.queue.prefix_evicted({.prefix = {.blocks = law}, .tokens = 2 * block_tokens});
  told.show("2 blocks of law are evicted:");
}
