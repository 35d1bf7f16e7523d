#include "baselines.hpp"
#include "catalog.hpp"
#include "standing_line.hpp"
#include "table.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvlane::bench {

namespace {

template <class Queue>
concept takes_cache_events = requires(Queue& queue, prompt_view prefix) {
  queue.prefix_cached({.prefix = prefix, .tokens = 1, .cost_per_token = 1});
  queue.prefix_evicted({.prefix = prefix, .tokens = 1, .cost_per_token = 1});
};

/// Who is under the prefix that comes and goes.
struct under_prefix {
  std::size_t waiting = 4096;
  std::size_t under = 4096;
};

/// A prefix is cached and evicted in turn. Under it are all, or one family.
template <class Line>
side cache_events(under_prefix const& who)
  requires takes_cache_events<typename Line::queue_type>
{
  auto const all = who.under == who.waiting;
  prompt_shape const shape{.family = all ? 8 : who.under};
  auto const line = std::make_shared<Line>(crowd{.waiting = who.waiting, .prompts = shape});
  prompt_source source{shape};
  auto const first = source.next();
  auto const length = all ? shape.common : first.size() - shape.own;
  std::vector<token_id> const prefix{first.begin(), first.begin() + static_cast<std::ptrdiff_t>(length)};
  return {.measure = [line, prefix](std::size_t rounds) {
    auto const both = time_of((rounds + 1) / 2, [&] {
      line->queue().prefix_cached({.prefix = {.tokens = prefix}, .tokens = 100, .cost_per_token = 32});
      line->queue().prefix_evicted({.prefix = {.tokens = prefix}, .tokens = 100, .cost_per_token = 32});
    });
    return both * (static_cast<double>(rounds) / static_cast<double>((rounds + 1) / 2 * 2));
  }};
}

template <class Line>
std::vector<row> event_rows() {
  std::vector<row> rows;
  if constexpr (takes_cache_events<typename Line::queue_type>) {
    auto const add = [&](under_prefix const& who) {
      auto const name =
          who.under == who.waiting ? "all " + text_of(who.under) : text_of(who.under) + " of " + text_of(who.waiting);
      rows.push_back({name + " under the prefix", a_mutex_pair, stated(),
                      [who] { return contest{cache_events<Line>(who), mutex_pair()}; }});
    };
    for (std::size_t const n : {16U, 4096U, 65'536U}) add({n, n});
    for (std::size_t const k : {8U, 64U, 512U}) add({4096, k});
    rows.push_back({"all 4,096 together", "all 16 together", at_most_times(4),
                    [] { return contest{cache_events<Line>({4096, 4096}), cache_events<Line>({16, 16})}; }});
    rows.push_back({"512 of 4,096", "8 of 4,096", at_most_times(128),
                    [] { return contest{cache_events<Line>({4096, 512}), cache_events<Line>({4096, 8})}; }});
  }
  return rows;
}

}  // namespace

topic cached_prefix() {
  auto rows = event_rows<standing_line<>>();
  auto const* const text =
      rows.empty()
          ? "Not measured: this version takes no cache events."
          : "An event says that a prefix was cached, the next that it was evicted; the time is that of one event. All "
            "lanes are busy. Of constant cost when all waiters move together, linear in those who move at worst: 64 "
            "times as many "
            "may take 64 times as long, and twice that for caches and a logarithm.";
  return {"A cached prefix with waiters under it", text, std::move(rows)};
}

}  // namespace kvlane::bench
