#include "page.hpp"
#include "support/queue_fixture.hpp"

#include <kvlane/clock.hpp>
#include <kvlane/prometheus.hpp>

#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_type.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using kvlane::test::page;

/// A queue with a manual clock, and the collector that watches it.
class QueueCollector : public kvlane::test::queue_fixture<> {
 protected:
  [[nodiscard]] page scrape() { return page{kvlane::basic_queue_collector{queue()}.Collect()}; }
};

TEST_F(QueueCollector, AnIdleQueueHasItsLimitsAndZeros) {
  open({.lanes = 8, .kv_capacity = 4000, .max_waiting = 20});
  auto const p = scrape();
  EXPECT_EQ(p.value("kvlane_lanes"), 8);
  EXPECT_EQ(p.value("kvlane_kv_capacity_tokens"), 4000);
  EXPECT_EQ(p.value("kvlane_waiting_places"), 20);
  for (auto const* name :
       {"kvlane_requests_running", "kvlane_requests_waiting", "kvlane_waiting_tokens", "kvlane_kv_used_tokens",
        "kvlane_kv_usage_ratio", "kvlane_held", "kvlane_draining", "kvlane_closed", "kvlane_turns_total",
        "kvlane_leases_released_total", "kvlane_leases_grown_total", "kvlane_lease_growth_refused_total",
        "kvlane_readmissions_total", "kvlane_service_samples_ignored_total"})
    EXPECT_EQ(p.value(name), 0) << name;
  EXPECT_EQ(p.series("kvlane_wait_seconds").histogram.sample_count, 0U);
  EXPECT_EQ(p.series("kvlane_overtakes").histogram.sample_count, 0U);
}

TEST_F(QueueCollector, TellsWhoRunsAndWhoWaitsAndHowMuchTheyHold) {
  open({.lanes = 2, .kv_capacity = 1000});
  send({.kv_demand = 100});
  send({.kv_demand = 150});
  send({.kv_demand = 300});
  send({.kv_demand = 40});
  send({.kv_demand = 5});
  auto const p = scrape();
  EXPECT_EQ(p.value("kvlane_requests_running"), 2);
  EXPECT_EQ(p.value("kvlane_requests_waiting"), 3);
  EXPECT_EQ(p.value("kvlane_waiting_tokens"), 345);
  EXPECT_EQ(p.value("kvlane_kv_used_tokens"), 250);
  EXPECT_EQ(p.value("kvlane_kv_usage_ratio"), 0.25);
}

TEST_F(QueueCollector, TheKvUsageIsAFractionEvenWhenCapacityWasTakenAway) {
  open({.lanes = 2, .kv_capacity = 1000});
  send({.kv_demand = 800});
  queue().update([](kvlane::limits& l) { l.kv_capacity = 400; });
  auto const p = scrape();
  EXPECT_EQ(p.value("kvlane_kv_usage_ratio"), 1.0);
  EXPECT_EQ(p.value("kvlane_kv_used_tokens"), 800) << "the excess shows in the tokens";
  EXPECT_EQ(p.value("kvlane_kv_capacity_tokens"), 400);
}

TEST_F(QueueCollector, TellsWhetherTheDoorIsHeldDrainingOrClosed) {
  open();
  {
    auto const hold = queue().hold_dispatch();
    EXPECT_EQ(scrape().value("kvlane_held"), 1);
    EXPECT_EQ(scrape().value("kvlane_draining"), 0);
  }
  queue().drain();
  EXPECT_EQ(scrape().value("kvlane_held"), 0);
  EXPECT_EQ(scrape().value("kvlane_draining"), 1);
  EXPECT_EQ(scrape().value("kvlane_closed"), 0);
  queue().close();
  EXPECT_EQ(scrape().value("kvlane_closed"), 1);
}

TEST_F(QueueCollector, CountsOutcomesByReason) {
  open({.lanes = 1, .kv_capacity = 1000, .max_waiting = 3});
  send({.kv_demand = 1});
  send({.kv_demand = 2});
  auto& impatient = send({.kv_demand = 3, .max_wait = 10ms});
  auto& leaving = send({.kv_demand = 4});
  send({.kv_demand = 5});      // no place is left
  send({.kv_demand = 5000});   // larger than the cache
  send({.priority = 99});      // nonsense
  try_send({.kv_demand = 6});  // would have to wait
  leaving.place.cancel();
  advance(10ms);
  queue().expire();
  ASSERT_EQ(impatient.refused(), kvlane::errc::timed_out);
  finish(1);  // 2 comes out of the line
  auto const p = scrape();
  EXPECT_EQ(p.outcomes("admitted", "at_once"), 1);
  EXPECT_EQ(p.outcomes("admitted", "from_line"), 1);
  EXPECT_EQ(p.outcomes("cancelled", "cancelled"), 1);
  EXPECT_EQ(p.outcomes("refused", "invalid_request"), 1);
  EXPECT_EQ(p.outcomes("refused", "never_fits"), 1);
  EXPECT_EQ(p.outcomes("refused", "would_wait"), 1);
  EXPECT_EQ(p.outcomes("refused", "queue_full"), 1);
  EXPECT_EQ(p.outcomes("refused", "timed_out"), 1);
  EXPECT_EQ(p.outcomes("refused", "would_time_out"), 0);
  EXPECT_EQ(p.outcomes("refused", "shutting_down"), 0);
  EXPECT_EQ(p.outcomes("refused", "no_longer_fits"), 0);
  EXPECT_EQ(p.family("kvlane_request_outcomes_total").metric.size(), 11U);
  EXPECT_EQ(p.value("kvlane_turns_total"), 1);
  EXPECT_EQ(p.value("kvlane_leases_released_total"), 1);
}

TEST_F(QueueCollector, CountsRefusalsOfAQueueThatChanges) {
  open({.lanes = 1, .kv_capacity = 1000});
  warm_up();
  send({.prompt_tokens = 500});
  send({.prompt_tokens = 900});
  send({.prompt_tokens = 10, .max_wait = 1ms});                    // predicted to wait longer
  queue().update([](kvlane::limits& l) { l.kv_capacity = 600; });  // 900 will never fit
  queue().close();
  send({.prompt_tokens = 10});
  auto const p = scrape();
  EXPECT_EQ(p.outcomes("refused", "would_time_out"), 1);
  EXPECT_EQ(p.outcomes("refused", "no_longer_fits"), 1);
  EXPECT_EQ(p.outcomes("refused", "shutting_down"), 1);
}

TEST_F(QueueCollector, CountsWhatBecomesOfLeases) {
  open({.lanes = 2, .kv_capacity = 100});
  auto& grows = send({.kv_demand = 20});
  EXPECT_TRUE(grows.lease().try_grow_to(30));
  EXPECT_TRUE(grows.lease().try_grow_to(40));
  EXPECT_FALSE(grows.lease().try_grow_to(200));
  auto& preempted = send({.kv_demand = 10});
  auto& again = readmit(preempted, {.kv_demand = 10});
  ASSERT_TRUE(again.runs());
  again.lease().complete({.prompt_tokens = 5, .prefill = -1ms});
  auto const p = scrape();
  EXPECT_EQ(p.value("kvlane_leases_grown_total"), 2);
  EXPECT_EQ(p.value("kvlane_lease_growth_refused_total"), 1);
  EXPECT_EQ(p.value("kvlane_readmissions_total"), 1);
  EXPECT_EQ(p.value("kvlane_leases_released_total"), 2) << "for readmission, and for good";
  EXPECT_EQ(p.value("kvlane_service_samples_ignored_total"), 1);
}

TEST_F(QueueCollector, ShowsWaitsInSecondsAndOvertakesAsTheyWere) {
  open({.lanes = 1, .kv_capacity = 100});
  send({.kv_demand = 50});
  send({.kv_demand = 1});  // will be overtaken
  send({.kv_demand = 1, .priority = 5, .saved_cost = 10});
  advance(4ms);
  finish(1);
  advance(1ms);
  finish(3);
  auto const p = scrape();
  auto const& waits = p.series("kvlane_wait_seconds").histogram;
  EXPECT_EQ(waits.sample_count, 3U);
  EXPECT_DOUBLE_EQ(waits.sample_sum, 0.009) << "none, 4 ms and 5 ms";
  auto const& overtakes = p.series("kvlane_overtakes").histogram;
  EXPECT_EQ(overtakes.sample_count, 3U);
  EXPECT_EQ(overtakes.sample_sum, 0.0) << "a higher priority does not count as overtaking";
}

/// Counts how often it is asked.
struct counting_source {
  [[nodiscard]] kvlane::queue_snapshot snapshot() const {
    ++asked;
    return {};
  }
  std::uint32_t mutable asked = 0;
};

TEST(QueueCollectorOfASource, TakesOneSnapshotForEachScrape) {
  counting_source const source;
  kvlane::basic_queue_collector const collector{source};
  EXPECT_EQ(source.asked, 0U);
  EXPECT_FALSE(collector.Collect().empty());
  EXPECT_EQ(source.asked, 1U);
  EXPECT_FALSE(collector.Collect().empty());
  EXPECT_EQ(source.asked, 2U);
}

TEST_F(QueueCollector, ShowsNothingOnceDetached) {
  open();
  kvlane::basic_queue_collector collector{queue()};
  EXPECT_FALSE(collector.Collect().empty());
  collector.detach();
  destroy_queue();
  EXPECT_TRUE(collector.Collect().empty());
}

TEST(QueueCollectorLabels, AreAddedToEverySeries) {
  kvlane::admission_queue const queue;
  auto const p = page{kvlane::queue_collector{queue, {{"model_name", "m"}, {"pod", "a-1"}}}.Collect()};
  for (auto const& family : p.families())
    for (auto const& metric : family.metric) {
      auto const labels = page::labels_of(metric);
      EXPECT_EQ(labels.at("model_name"), "m") << family.name;
      EXPECT_EQ(labels.at("pod"), "a-1") << family.name;
    }
  EXPECT_EQ(p.series("kvlane_request_outcomes_total",
                     {{"model_name", "m"}, {"outcome", "refused"}, {"pod", "a-1"}, {"reason", "queue_full"}})
                .counter.value,
            0.0);
}

/// What the constructor says about a label of this name; nothing if it likes it.
std::optional<std::string> complaint_about(std::string const& name) {
  kvlane::admission_queue const queue;
  try {
    kvlane::queue_collector const collector{queue, {{name, "x"}}};
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return std::nullopt;
}

TEST(QueueCollectorLabels, ThatPrometheusDoesNotAllowAreNamedAndRefused) {
  for (auto const* name : {"", "model-name", "1st", "__name"}) {
    auto const said = complaint_about(name);
    ASSERT_TRUE(said) << name;
    EXPECT_NE(said->find(std::string{"\""} + name + "\" cannot be a label"), std::string::npos) << *said;
  }
  EXPECT_EQ(complaint_about("_model_1"), std::nullopt);
}

TEST(QueueCollectorLabels, ThatAMetricHasAlreadyAreNamedAndRefused) {
  for (auto const* name : {"le", "outcome", "reason"}) {
    auto const said = complaint_about(name);
    ASSERT_TRUE(said) << name;
    EXPECT_NE(said->find(std::string{"the label \""} + name + "\" already"), std::string::npos) << *said;
  }
}

TEST(QueueCollectorType, IsWhatExportersHoldWeakly) {
  kvlane::admission_queue const queue;
  auto metrics = std::make_shared<kvlane::queue_collector>(queue, prometheus::Labels{{"model_name", "m"}});
  std::weak_ptr<prometheus::Collectable> const registered = metrics;
  EXPECT_FALSE(registered.lock()->Collect().empty());
  metrics.reset();
  EXPECT_TRUE(registered.expired());
}

// Anything that gives snapshots can be watched, and nothing else.
static_assert(kvlane::snapshot_source<kvlane::admission_queue>);
static_assert(kvlane::snapshot_source<kvlane::admission_core<kvlane::cache_aware>>);
static_assert(!kvlane::snapshot_source<int>);
// A collector must not outlive its queue: a queue that ends with the expression is refused.
static_assert(!std::is_constructible_v<kvlane::queue_collector, kvlane::admission_queue>);
static_assert(!std::is_copy_constructible_v<kvlane::queue_collector>);

}  // namespace
