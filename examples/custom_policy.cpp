// An order of one's own in ten lines: shortest job first, where what the prefix cache holds need not be computed. The
// queue keeps its bound on overtaking whatever the policy says, so that long jobs do not starve.

#include <kvlane/kvlane.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

/// Whether `a` goes before `b`. Runs under the queue's mutex: it looks at the two and at nothing else.
struct least_to_compute {
  static std::uint64_t tokens(kvlane::waiter_base const& w) noexcept {
    return w.demand() - std::min(w.demand(), w.saved_cost());  // costs are counted in tokens here
  }
  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return tokens(a) < tokens(b);
  }
};
using shortest_first = kvlane::order_by<least_to_compute>;

/// The order in which a queue of one lane serves the same six requests.
template <class Policy>
std::string served(std::uint32_t max_overtakes) {
  std::vector<kvlane::request> const requests{
      {.prompt_tokens = 900, .tag = 1},
      {.prompt_tokens = 300, .tag = 2},
      {.prompt_tokens = 800, .saved_cost = 700, .tag = 3},  // long, but nearly all of it is cached
      {.prompt_tokens = 200, .tag = 4},
      {.prompt_tokens = 500, .tag = 5},
      {.prompt_tokens = 600, .priority = 1, .tag = 6},
  };
  std::string order;
  kvlane::basic_admission_queue<Policy> queue{{.lanes = 1, .max_overtakes = max_overtakes}};
  auto running = queue.try_admit({.prompt_tokens = 100});
  if (!running) return running.error().message();

  std::vector<kvlane::ticket> places(requests.size());
  auto const note = [&order](kvlane::admission const& outcome) {
    order += outcome ? ' ' + std::to_string(outcome->tag()) : ' ' + outcome.error().message();
  };  // the lease ends here, and the next one gets the lane
  for (std::size_t i = 0; i != requests.size(); ++i)
    if (auto now = queue.enqueue(requests[i], places[i], note)) note(*now);
  running->release();
  return order;
}

int main() {
  std::printf("fcfs:                         %s\n", served<kvlane::fcfs>(32).c_str());
  std::printf("shortest_first:               %s\n", served<shortest_first>(32).c_str());
  std::printf("shortest_first, 2 overtakes:  %s\n", served<shortest_first>(2).c_str());
}
