#include <kvlane/prometheus.hpp>

#include <prometheus/text_serializer.h>

#include <iostream>

// Prints the page of a queue in which one request runs, one waits and two were refused.
int main() {
  kvlane::admission_queue queue{{.lanes = 1, .kv_capacity = 1024, .max_waiting = 1}};
  kvlane::ticket place;
  auto const running = queue.try_admit({.prompt_tokens = 100, .max_tokens = 16});
  auto const waits = !queue.enqueue({.prompt_tokens = 200}, place, [](kvlane::admission const&) {});
  auto const full = queue.try_admit({.prompt_tokens = 10});
  auto const never = queue.try_admit({.prompt_tokens = 5000});
  if (!running || !waits || full || never) return 1;

  kvlane::queue_collector const metrics{queue, {{"model_name", "a \"model\"\\with\nodd letters"}}};
  prometheus::TextSerializer const text;
  text.Serialize(std::cout, metrics.Collect());
  return std::cout.flush() ? 0 : 1;
}
