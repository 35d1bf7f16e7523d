#include <kvlane/kvlane.hpp>

auto refused_in_b() -> kvlane::admission;

auto refused_in_b() -> kvlane::admission {
  kvlane::admission_queue queue{{.lanes = 1, .kv_capacity = 1024}};
  return queue.try_admit({.prompt_tokens = 5000, .max_tokens = 16});
}
