#include "page.hpp"

#include <kvlane/prometheus.hpp>

#include <gtest/gtest.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

namespace {

using kvlane::queue_snapshot;
using kvlane::test::page;

page page_of(queue_snapshot const& s) { return page{kvlane::metric_families(s)}; }

/// How many values the bucket with this upper bound counts; fails if there is no such bucket.
std::uint64_t up_to(::prometheus::ClientMetric::Histogram const& h, double bound) {
  for (auto const& bucket : h.bucket)
    if (bucket.upper_bound == bound) return bucket.cumulative_count;
  ADD_FAILURE() << "no bucket ends at " << bound;
  return 0;
}

TEST(MetricFamilies, EveryMetricHasHelpAndASeriesAndItsOwnName) {
  std::set<std::string> names;
  for (auto const& family : page_of({}).families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " comes twice";
    EXPECT_EQ(family.name.rfind("kvlane_", 0), 0U) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_FALSE(family.metric.empty()) << family.name;
  }
}

TEST(MetricFamilies, CountersAloneEndInTotal) {
  for (auto const& family : page_of({}).families()) {
    auto const ends_in_total = family.name.size() > 6 && family.name.substr(family.name.size() - 6) == "_total";
    EXPECT_EQ(ends_in_total, family.type == prometheus::MetricType::Counter) << family.name;
  }
}

TEST(MetricFamilies, ASnapshotWithoutCapacityHasNoUsage) {
  auto const usage = page_of({}).value("kvlane_kv_usage_ratio");
  EXPECT_EQ(usage, 0.0) << "and not 0 divided by 0";
}

TEST(MetricFamilies, WaitBucketsAreCumulativeAndContainTheirBound) {
  queue_snapshot s;
  for (auto const ms : {0U, 1U, 2U, 3U, 4U, 5U, 128U, 129U, 131'072U, 131'073U}) s.wait_ms.observe(ms);
  auto const p = page_of(s);
  auto const& h = p.series("kvlane_wait_seconds").histogram;
  EXPECT_EQ(h.bucket.size(), 20U);
  EXPECT_EQ(up_to(h, 0.0), 1U);
  EXPECT_EQ(up_to(h, 0.001), 2U);
  EXPECT_EQ(up_to(h, 0.002), 3U);
  EXPECT_EQ(up_to(h, 0.004), 5U) << "3 and 4 ms, and all that was shorter";
  EXPECT_EQ(up_to(h, 0.008), 6U);
  EXPECT_EQ(up_to(h, 0.128), 7U);
  EXPECT_EQ(up_to(h, 0.256), 8U);
  EXPECT_EQ(up_to(h, 131.072), 9U);
  EXPECT_EQ(up_to(h, std::numeric_limits<double>::infinity()), 10U);
  EXPECT_EQ(h.sample_count, 10U);
  EXPECT_DOUBLE_EQ(h.sample_sum, (1 + 2 + 3 + 4 + 5 + 128 + 129 + 131'072 + 131'073) / 1000.0);
}

TEST(MetricFamilies, OvertakeBucketsCountOvertakings) {
  queue_snapshot s;
  for (auto const times : {0U, 0U, 1U, 2U, 32U, 33U, 4096U, 4097U}) s.overtakes.observe(times);
  auto const p = page_of(s);
  auto const& h = p.series("kvlane_overtakes").histogram;
  EXPECT_EQ(h.bucket.size(), 14U);
  EXPECT_EQ(up_to(h, 0.0), 2U);
  EXPECT_EQ(up_to(h, 1.0), 3U);
  EXPECT_EQ(up_to(h, 2.0), 4U);
  EXPECT_EQ(up_to(h, 32.0), 5U);
  EXPECT_EQ(up_to(h, 64.0), 6U);
  EXPECT_EQ(up_to(h, 2048.0), 6U);
  EXPECT_EQ(up_to(h, std::numeric_limits<double>::infinity()), 8U);
  EXPECT_EQ(h.sample_sum, 0 + 0 + 1 + 2 + 32 + 33 + 4096 + 4097);
}

TEST(MetricFamilies, BucketsNeverFallAndEndWithAll) {
  queue_snapshot s;
  for (std::uint64_t value = 0; value != 3000; ++value) s.wait_ms.observe(value * value), s.overtakes.observe(value);
  auto const p = page_of(s);
  for (auto const* name : {"kvlane_wait_seconds", "kvlane_overtakes"}) {
    auto const& h = p.series(name).histogram;
    for (std::size_t i = 1; i != h.bucket.size(); ++i) {
      EXPECT_LT(h.bucket[i - 1].upper_bound, h.bucket[i].upper_bound) << name;
      EXPECT_LE(h.bucket[i - 1].cumulative_count, h.bucket[i].cumulative_count) << name;
    }
    EXPECT_TRUE(std::isinf(h.bucket.back().upper_bound)) << name;
    EXPECT_EQ(h.bucket.back().cumulative_count, h.sample_count) << name;
    EXPECT_EQ(h.sample_count, 3000U) << name;
  }
}

TEST(MetricFamilies, BoundsAreWrittenAsPeopleWriteThem) {
  auto const text = prometheus::TextSerializer{}.Serialize(kvlane::metric_families({}, {{"model_name", "m"}}));
  for (auto const* line :
       {"kvlane_wait_seconds_bucket{model_name=\"m\",le=\"0.001\"} 0\n",
        "kvlane_wait_seconds_bucket{model_name=\"m\",le=\"0.512\"} 0\n",
        "kvlane_wait_seconds_bucket{model_name=\"m\",le=\"131.072\"} 0\n",
        "kvlane_wait_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 0\n", "kvlane_wait_seconds_sum{model_name=\"m\"} 0\n",
        "# TYPE kvlane_wait_seconds histogram\n", "kvlane_lanes{model_name=\"m\"} 0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(MetricFamilies, AreTheOnesInTheDocumentWithTheirTypes) {
  std::ifstream file{KVLANE_METRICS_DOC};
  ASSERT_TRUE(file) << KVLANE_METRICS_DOC;
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);)
    if (line.rfind("| `kvlane_", 0) == 0) documented.insert(line.substr(0, line.find('|', line.find('|', 2) + 1)));
  std::set<std::string> shown;
  for (auto const& family : page_of({}).families()) {
    auto const* const type = family.type == prometheus::MetricType::Gauge     ? "gauge"
                             : family.type == prometheus::MetricType::Counter ? "counter"
                                                                              : "histogram";
    shown.insert("| `" + family.name + "` | " + type + " ");
  }
  EXPECT_EQ(shown, documented);
}

}  // namespace
