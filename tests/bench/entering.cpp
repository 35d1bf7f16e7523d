#include "baselines.hpp"
#include "catalog.hpp"
#include "standing_line.hpp"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

namespace kvlane::bench {

namespace {

/// Enqueues into a standing line. Those who have joined leave again outside the measured part.
class door {
 public:
  door(crowd const& who, std::size_t at_once) : line_{who}, source_{who.prompts}, places_(at_once) {
    for (std::size_t i = 0; i != who.waiting; ++i)
      std::ignore = source_.next();  // nobody here looks like those in line
    for (std::size_t i = 0; i != at_once; ++i) {
      auto const prompt = source_.next();
      prompts_.emplace_back(prompt.begin(), prompt.end());
    }
  }

  [[nodiscard]] nanoseconds time_enqueues(std::size_t rounds) {
    stopwatch watch;
    while (rounds != 0) {
      auto const now = std::min(rounds, places_.size());
      watch.start();
      for (std::size_t i = 0; i != now; ++i)
        if (line_.queue().enqueue({.prompt = prompts_[i], .kv_demand = 1}, places_[i], [](admission const&) {}))
          std::abort();
      watch.stop(now);
      for (auto& place : places_) place = ticket{};
      rounds -= now;
    }
    return watch.total();
  }

 private:
  standing_line<> line_;
  prompt_source source_;
  std::vector<std::vector<token_id>> prompts_;
  std::vector<ticket> places_;
};

side enqueues(crowd const& who, std::size_t at_once) {
  auto const entry = std::make_shared<door>(who, at_once);
  return {.measure = [entry](std::size_t rounds) { return entry->time_enqueues(rounds); }};
}

constexpr prompt_shape long_prompt{.length = 32'000, .common = 30'000, .own = 2000, .family = 1};
constexpr crowd with_long_prompts{.waiting = 32, .prompts = long_prompt};

/// memcmp of the shared part and memcpy of the whole, over as many prompts and copies as the queue touches.
side compare_and_copy(std::size_t prompts) {
  struct buffers {
    std::vector<std::vector<token_id>> sources;
    std::vector<std::vector<token_id>> copies;
  };
  auto const b = std::make_shared<buffers>();
  prompt_source source{long_prompt};
  for (std::size_t i = 0; i != prompts; ++i) {
    auto const prompt = source.next();
    b->sources.emplace_back(prompt.begin(), prompt.end());
  }
  b->copies = b->sources;
  return {.measure = [b](std::size_t rounds) {
    std::size_t at = 0;
    return time_of(rounds, [&] {
      auto const& from = b->sources[at];
      auto& to = b->copies[at];
      at = (at + 1) % b->sources.size();
      benchmark::DoNotOptimize(std::memcmp(from.data(), b->copies[at].data(), long_prompt.common * sizeof(token_id)));
      std::memcpy(to.data(), from.data(), from.size() * sizeof(token_id));
      benchmark::ClobberMemory();
    });
  }};
}

row enqueue_row(char const* name, crowd const& who, goal wanted) {
  return {name, a_mutex_pair, wanted, [who] { return contest{enqueues(who, 256), mutex_pair()}; }};
}

}  // namespace

topic entering() {
  return {
      "Joining the line",
      "All lanes are busy. Counted: the enqueue, with the copies of prompt and completion. Tickets are empty before. "
      "The "
      "baseline of the long prompts compares and copies into memory that is there already.",
      {enqueue_row("enqueue, 512 tokens, 16 waiting", {.waiting = 16}, stated()),
       enqueue_row("enqueue, 512 tokens, 4,096 waiting", {.waiting = 4096}, at_most(std::chrono::nanoseconds{1500})),
       enqueue_row("enqueue, 512 tokens, 65,536 waiting", {.waiting = 65'536}, stated()),
       {"enqueue, 32,000 tokens that share 30,000, 32 waiting", "memcmp + memcpy", at_most_times(3),
        [] { return contest{enqueues(with_long_prompts, 32), compare_and_copy(32)}; }}}};
}

}  // namespace kvlane::bench
