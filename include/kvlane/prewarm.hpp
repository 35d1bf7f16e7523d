#pragma once

#include <kvlane/admission_queue.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/observer.hpp>
#include <kvlane/request.hpp>

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace kvlane {

/// Calls `warm(lane)` on every lane that is idle, while a lease of that lane alone is held: nobody else can get it
/// meanwhile. Lanes that become free later are not visited. The report is also told to the queue's observer.
///
///     auto const report = kvlane::prewarm_lanes(queue, [&](kvlane::lane_id lane) { engine.load(lane); });
///
/// Blocks for as long as `warm` does. \throws std::bad_alloc and what `warm` throws; the lanes have come back then
template <class Queue, std::invocable<lane_id> Warm>
events::prewarmed prewarm_lanes(Queue& queue, Warm&& warm) {
  auto const before = queue.snapshot();
  auto const start = queue.now();
  // All are taken first and held until the end: none is warmed twice, and none that becomes free meanwhile is visited.
  std::vector<lease> held;
  while (auto slot = queue.try_admit({.kv_demand = 0})) held.push_back(std::move(*slot));
  for (auto const& slot : held) warm(slot.lane());
  events::prewarmed const report{.lanes = before.lanes,
                                 .active = before.lanes_busy,
                                 .idle = static_cast<std::uint32_t>(held.size()),
                                 .elapsed = queue.now() - start};
  held.clear();
  queue.report(report);
  return report;
}

}  // namespace kvlane
