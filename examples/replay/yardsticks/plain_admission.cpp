#include "yardsticks/plain_admission.hpp"

#include <algorithm>
#include <utility>

namespace replay {

simulation_settings with_semaphore(simulation_settings s) {
  s.limits.decode_headroom = 0;
  s.limits.growth_reserve = 0;
  s.limits.max_overtakes = 0;
  s.limits.engine_lanes = 0;
  s.reports = engine_reports::nothing;
  return s;
}

simulation_settings without_admission(simulation_settings s, std::uint32_t requests) {
  s = with_semaphore(std::move(s));
  s.limits.lanes = std::max(requests, 1U);
  s.limits.max_waiting = ~0U;
  s.limits.max_waiting_tokens = ~std::uint64_t{0};
  s.limits.max_wait = kvlane::forever;
  return s;
}

}  // namespace replay
