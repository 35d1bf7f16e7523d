// Warming up lanes that are idle.

#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"

#include <kvlane/prewarm.hpp>

#include <gmock/gmock.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace {

using kvlane::errc;
using kvlane::lane_id;
using kvlane::prewarm_lanes;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class Prewarm : public kvlane::test::queue_fixture<kvlane::cache_aware, kvlane::test::recording_observer> {
 protected:
  std::vector<lane_id> warmed;
  auto note() {
    return [this](lane_id lane) { warmed.push_back(lane); };
  }
};

TEST_F(Prewarm, EveryIdleLaneIsWarmedOnce) {
  open({.lanes = 4});
  auto const report = prewarm_lanes(queue(), note());
  EXPECT_THAT(warmed, ElementsAre(0U, 1U, 2U, 3U));
  EXPECT_EQ(report.lanes, 4U);
  EXPECT_EQ(report.active, 0U);
  EXPECT_EQ(report.idle, 4U);
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(Prewarm, BusyLanesAreLeftAlone) {
  open({.lanes = 4, .kv_capacity = 10});
  send({.kv_demand = 10, .preferred_lane = 1});
  auto const report = prewarm_lanes(queue(), note());
  EXPECT_THAT(warmed, ElementsAre(0U, 2U, 3U)) << "a lane is enough: no KV tokens are needed";
  EXPECT_EQ(report.active, 1U);
  EXPECT_EQ(report.idle, 3U);
}

TEST_F(Prewarm, ALaneIsHeldWhileItIsWarmed) {
  open({.lanes = 1});
  prewarm_lanes(queue(), [&](lane_id) {
    EXPECT_EQ(lanes_busy(), 1U);
    EXPECT_EQ(try_send({.kv_demand = 1}).refused(), errc::would_wait);
  });
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(Prewarm, WhoeverComesMeanwhileIsServedAfterwards) {
  open({.lanes = 1});
  auto* waiter = static_cast<kvlane::test::client*>(nullptr);
  prewarm_lanes(queue(), [&](lane_id) { waiter = &send({.kv_demand = 1}); });
  EXPECT_TRUE(waiter->runs());
}

TEST_F(Prewarm, ALaneThatBecomesFreeMeanwhileIsNotVisited) {
  open({.lanes = 2});
  auto& running = send({.kv_demand = 1});
  prewarm_lanes(queue(), [&](lane_id lane) {
    warmed.push_back(lane);
    if (running.runs()) running.finish();
  });
  EXPECT_THAT(warmed, ElementsAre(1U));
  EXPECT_EQ(lanes_busy(), 0U);
}

TEST_F(Prewarm, WithoutAnIdleLaneThereIsNothingToDo) {
  open({.lanes = 0});
  EXPECT_EQ(prewarm_lanes(queue(), note()).idle, 0U);
  queue().update([](kvlane::limits& l) { l.lanes = 1; });
  send({.kv_demand = 1});
  EXPECT_EQ(prewarm_lanes(queue(), note()).idle, 0U);
  EXPECT_THAT(warmed, IsEmpty());
}

TEST_F(Prewarm, ADueWaiterKeepsIdleLanesForItself) {
  open({.lanes = 3, .kv_capacity = 10, .max_overtakes = 0});
  send({.kv_demand = 6});
  send({.kv_demand = 10});
  EXPECT_EQ(prewarm_lanes(queue(), note()).idle, 0U);
}

TEST_F(Prewarm, TheReportIsAnEventToo) {
  open({.lanes = 3});
  send({.kv_demand = 1});
  prewarm_lanes(queue(), [&](lane_id) { advance(20ms); });
  auto const reported = observer.all<kvlane::events::prewarmed>();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].lanes, 3U);
  EXPECT_EQ(reported[0].active, 1U);
  EXPECT_EQ(reported[0].idle, 2U);
  EXPECT_EQ(reported[0].elapsed, 40ms);
  EXPECT_NE(reported[0].sequence, 0U);
}

TEST_F(Prewarm, IfWarmingThrowsTheLanesComeBack) {
  open({.lanes = 3});
  EXPECT_THROW(prewarm_lanes(queue(),
                             [](lane_id lane) {
                               if (lane == 1) throw std::runtime_error{"the engine is cold"};
                             }),
               std::runtime_error);
  EXPECT_EQ(lanes_busy(), 0U);
  EXPECT_THAT(observer.all<kvlane::events::prewarmed>(), IsEmpty());
}

}  // namespace
