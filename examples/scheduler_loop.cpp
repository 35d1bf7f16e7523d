// A scheduler that owns its thread: continuous batching, where every step decodes one token for all who run. Nobody calls
// it back; it looks into an inbox once in each iteration. Nothing else uses this queue, so its mutex does nothing.

#include <kvlane/kvlane.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

using namespace std::chrono_literals;
using queue_type =
    kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, kvlane::null_mutex, kvlane::manual_clock>;

class scheduler {
 public:
  void submit(std::uint64_t id, std::uint64_t prompt_tokens, std::uint32_t reply_tokens) {
    auto& s = sequences_[id] = {.prompt_tokens = prompt_tokens, .reply_tokens = reply_tokens};
    kvlane::request const r{.prompt_tokens = prompt_tokens, .max_tokens = reply_tokens, .tag = id, .max_wait = 1s};
    if (auto now = queue_.enqueue(r, s.place, box_.slot(id))) begin(id, std::move(*now));
  }

  /// One iteration; false when there is nothing left to do.
  bool step() {
    std::printf("step %d\n", ++steps_);
    queue_.expire();
    for (auto& [id, outcome] : box_.take()) begin(id, std::move(outcome));
    clock_.advance(10ms);  // the engine works: prefill of those who are new, one token for the others
    // Several may end in the same step. The hold makes their capacity one offer: without it the first one's tokens would
    // go to whoever fits into them, past a longer request that needs those of both.
    auto const hold = queue_.hold_dispatch();
    for (auto s = sequences_.begin(); s != sequences_.end();)
      s = decode(s->first, s->second) ? sequences_.erase(s) : std::next(s);
    return !sequences_.empty();
  }
  /// Known as soon as one sequence has told how long it took.
  std::optional<kvlane::fractional_ms> predicted_wait() const { return queue_.predicted_wait(); }

 private:
  struct sequence {
    std::uint64_t prompt_tokens = 0;
    std::uint32_t reply_tokens = 0;
    std::uint32_t made = 0;
    kvlane::time_point prefilled{};
    kvlane::ticket place{};  // while it waits
    kvlane::lease slot{};    // while it runs
  };

  void begin(std::uint64_t id, kvlane::admission outcome) {
    auto const id_for_print = static_cast<unsigned long long>(id);
    if (!outcome) {
      std::printf("  %llu: %s\n", id_for_print, outcome.error().message().c_str());
      sequences_.erase(id);
      return;
    }
    std::printf("  %llu begins on lane %u, after %.0f ms\n", id_for_print, outcome->lane(), outcome->waited().count());
    sequences_.at(id).slot = std::move(*outcome);
  }
  /// True when the sequence has ended, and its lane and tokens have gone back.
  bool decode(std::uint64_t id, sequence& s) {
    if (!s.slot) return false;
    if (s.made == 0) s.prefilled = clock_();
    if (++s.made < s.reply_tokens) return false;
    std::printf("  %llu ends\n", static_cast<unsigned long long>(id));
    s.slot.complete({.prompt_tokens = s.prompt_tokens,
                     .decode_tokens = s.reply_tokens - 1,  // the first came with the prefill
                     .prefill = 10ms,
                     .decode = clock_() - s.prefilled});
    return true;
  }

  kvlane::manual_clock clock_;
  queue_type queue_{{.lanes = 4, .kv_capacity = 1000}, kvlane::cache_aware{}, {}, clock_};
  kvlane::inbox box_;
  std::map<std::uint64_t, sequence> sequences_;
  int steps_ = 0;
};

int main() {
  scheduler engine;
  engine.submit(1, 400, 3);
  engine.submit(2, 500, 3);
  engine.submit(3, 900, 2);  // needs what 1 and 2 hold together
  engine.submit(4, 300, 2);  // would fit as soon as 1 has ended, but stands behind 3
  while (engine.step())
    if (auto const wait = engine.predicted_wait()) std::printf("  a newcomer would wait %.0f ms\n", wait->count());
}
