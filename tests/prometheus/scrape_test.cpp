#include "page.hpp"

#include <kvlane/blocking.hpp>
#include <kvlane/prometheus.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using kvlane::test::page;

constexpr std::uint64_t demand = 10;

/// All requests ask for the same, so the figures of one moment determine each other.
void expect_one_moment(page const& p) {
  auto const running = p.value("kvlane_requests_running");
  EXPECT_EQ(p.value("kvlane_kv_used_tokens"), running * demand);
  EXPECT_EQ(p.value("kvlane_kv_usage_ratio"), running * demand / p.value("kvlane_kv_capacity_tokens"));
  EXPECT_EQ(p.value("kvlane_waiting_tokens"), p.value("kvlane_requests_waiting") * demand);
  auto const admitted = p.outcomes("admitted", "at_once") + p.outcomes("admitted", "from_line");
  EXPECT_EQ(p.value("kvlane_leases_released_total"), admitted - running);
  EXPECT_EQ(static_cast<double>(p.series("kvlane_wait_seconds").histogram.sample_count), admitted);
  EXPECT_EQ(static_cast<double>(p.series("kvlane_overtakes").histogram.sample_count), admitted);
  EXPECT_LE(running, p.value("kvlane_lanes"));
}

TEST(Scrape, ShowsOneMomentWhileOthersComeAndGo) {
  kvlane::admission_queue queue{{.lanes = 2, .kv_capacity = 50}};
  kvlane::queue_collector const collector{queue};
  double admitted_before = 0;
  {
    std::vector<std::jthread> clients;
    for (auto i = 0; i != 2; ++i)
      clients.emplace_back([&queue](std::stop_token const& enough) {
        while (!enough.stop_requested()) auto const lease = queue.try_admit({.kv_demand = demand});
      });
    clients.emplace_back([&queue](std::stop_token const& enough) {
      while (!enough.stop_requested()) auto const lease = kvlane::admit(queue, {.kv_demand = demand});
    });
    for (auto scrapes = 0; scrapes != 1000 && !testing::Test::HasFailure(); ++scrapes) {
      auto const p = page{collector.Collect()};
      expect_one_moment(p);
      auto const admitted = p.outcomes("admitted", "at_once") + p.outcomes("admitted", "from_line");
      EXPECT_GE(admitted, admitted_before) << "counters never fall";
      admitted_before = admitted;
    }
  }
  auto const p = page{collector.Collect()};
  expect_one_moment(p);
  EXPECT_EQ(p.value("kvlane_requests_running"), 0);
  EXPECT_EQ(p.value("kvlane_requests_waiting"), 0);
}

TEST(Scrape, MayGoOnWhileTheCollectorIsDetachedAndTheQueueDestroyed) {
  for (auto round = 0; round != 50; ++round) {
    auto queue = std::make_unique<kvlane::admission_queue>();
    kvlane::queue_collector collector{*queue};
    std::jthread const scraper{[&collector] {
      for (auto scrapes = 0; scrapes != 1000 && !collector.Collect().empty(); ++scrapes) {
      }
    }};
    EXPECT_EQ(page{collector.Collect()}.value("kvlane_lanes"), 1);
    collector.detach();
    queue.reset();
  }
}

}  // namespace
