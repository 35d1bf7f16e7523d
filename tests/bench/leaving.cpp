#include "baselines.hpp"
#include "catalog.hpp"
#include "standing_line.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace kvlane::bench {

namespace {

constexpr std::size_t in_a_row = 256;  // who leaves before others take their places

/// Takes `count` different places of a line, at random.
template <class Line>
std::vector<std::size_t> some_places(Line& line, std::size_t count) {
  std::vector<std::size_t> chosen;
  std::vector<bool> taken(line.places().size());
  while (chosen.size() != count) {
    auto const slot = line.random()() % taken.size();
    if (!taken[slot]) chosen.push_back(slot);
    taken[slot] = true;
  }
  return chosen;
}

side cancels(crowd const& who) {
  auto const line = std::make_shared<standing_line<>>(who);
  return {.measure = [line](std::size_t rounds) {
    stopwatch watch;
    while (rounds != 0) {
      auto const leaving = some_places(*line, std::min({rounds, in_a_row, line->places().size() / 2}));
      watch.start();
      for (auto const slot : leaving) line->places()[slot] = ticket{};
      watch.stop(leaving.size());
      for (auto const slot : leaving) line->vacated(slot);
      line->refill();
      rounds -= leaving.size();
    }
    return watch.total();
  }};
}

/// One deadline after the other comes, and `expire` is called for each.
side expiries(crowd const& who) {
  struct timed_line {
    explicit timed_line(crowd const& c) : line{c, clock} {
      for (std::size_t slot = 0; slot != line.places().size(); ++slot) {
        line.places()[slot] = ticket{};
        line.vacated(slot);
        join();
      }
    }
    void join() { line.refill(next_wait()); }
    duration next_wait() { return std::chrono::hours{1} + ++joined * std::chrono::nanoseconds{1}; }

    manual_clock clock;
    std::int64_t joined = 0;
    standing_line<std::mutex, manual_clock> line;
  };
  auto const here = std::make_shared<timed_line>(who);
  return {.measure = [here](std::size_t rounds) {
    auto& line = here->line;
    stopwatch watch;
    for (std::size_t done = 0; done != rounds;) {
      auto const now = std::min({rounds - done, in_a_row, line.places().size() / 2});
      here->clock.set(*line.queue().next_deadline() - std::chrono::nanoseconds{1});
      watch.start();
      for (std::size_t i = 0; i != now; ++i) {
        here->clock.advance(std::chrono::nanoseconds{1});
        benchmark::DoNotOptimize(line.queue().expire());
      }
      watch.stop(now);
      for (std::size_t i = 0; i != now; ++i) here->join();
      done += now;
    }
    return watch.total();
  }};
}

side rescores(crowd const& who) {
  auto const line = std::make_shared<standing_line<>>(who);
  return {.measure = [line](std::size_t rounds) {
    return time_of(rounds, [&] {
      auto const number = line->random()();
      line->places()[number % line->places().size()].set_saved_cost((number >> 32) % 1'000'000);
    });
  }};
}

/// The end of the ticket of somebody who has been admitted.
side late_tickets() {
  struct served {
    admission_queue queue{{.lanes = 1}};
    std::vector<ticket> places = std::vector<ticket>(in_a_row);
  };
  auto const here = std::make_shared<served>();
  return {.measure = [here](std::size_t rounds) {
    stopwatch watch;
    while (rounds != 0) {
      auto const now = std::min({rounds, here->places.size(), std::size_t{16}});
      auto held = here->queue.try_admit({.prompt_tokens = 1});
      for (std::size_t i = 0; i != now; ++i)
        std::ignore = here->queue.enqueue({.prompt_tokens = 1}, here->places[i], [](admission const&) {});
      held->release();
      watch.start();
      for (std::size_t i = 0; i != now; ++i) here->places[i] = ticket{};
      watch.stop(now);
      rounds -= now;
    }
    return watch.total();
  }};
}

row leaving_row(char const* name, goal wanted, side (*make)(crowd const&), crowd const& who) {
  return {name, a_mutex_pair, wanted, [make, who] { return contest{make(who), mutex_pair()}; }};
}

}  // namespace

topic leaving() {
  constexpr auto bound = at_most(std::chrono::microseconds{1});
  constexpr crowd many{.waiting = 65'536, .scored = scores::spread};
  constexpr crowd some{.waiting = 4096, .scored = scores::spread};
  return {"Leaving and changing places",
          "All lanes are busy and scores are spread. A cancel destroys the ticket, so that the memory goes too; "
          "whoever leaves is "
          "chosen at random. Expiry is one call of expire() for each deadline.",
          {leaving_row("cancel one of 4,096", stated(), cancels, some),
           leaving_row("cancel one of 65,536", bound, cancels, many),
           leaving_row("expire one of 4,096", stated(), expiries, some),
           leaving_row("expire one of 65,536", bound, expiries, many),
           leaving_row("rescore one of 4,096", bound, rescores, some),
           {"the end of a ticket whose request has been admitted", a_mutex_pair, stated(),
            [] { return contest{late_tickets(), mutex_pair()}; }}}};
}

}  // namespace kvlane::bench
