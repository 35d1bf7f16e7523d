#include "support/extremes.hpp"

#include <kvlane/snapshot.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using kvlane::errc;
using kvlane::log2_histogram;
using kvlane::outcome_counters;
using kvlane::test::most;

/// The bucket that counts `value`.
template <std::size_t Buckets>
std::size_t bucket_of(std::uint64_t value) {
  log2_histogram<Buckets> histogram;
  histogram.observe(value);
  std::size_t bucket = 0;
  while (histogram.counts()[bucket] == 0) ++bucket;
  return bucket;
}

TEST(Log2Histogram, BucketsEndAtZeroAndThePowersOfTwo) {
  using histogram = log2_histogram<6>;
  EXPECT_EQ(histogram::upper_bound(0), 0U);
  EXPECT_EQ(histogram::upper_bound(1), 1U);
  EXPECT_EQ(histogram::upper_bound(2), 2U);
  EXPECT_EQ(histogram::upper_bound(3), 4U);
  EXPECT_EQ(histogram::upper_bound(4), 8U);
  EXPECT_EQ(histogram::upper_bound(5), most) << "the last one has no end";
}

TEST(Log2Histogram, CountsAValueInTheFirstBucketThatReachesIt) {
  EXPECT_EQ(bucket_of<6>(0), 0U);
  EXPECT_EQ(bucket_of<6>(1), 1U);
  EXPECT_EQ(bucket_of<6>(2), 2U);
  EXPECT_EQ(bucket_of<6>(3), 3U);
  EXPECT_EQ(bucket_of<6>(4), 3U);
  EXPECT_EQ(bucket_of<6>(5), 4U);
  EXPECT_EQ(bucket_of<6>(8), 4U);
  EXPECT_EQ(bucket_of<6>(9), 5U);
  EXPECT_EQ(bucket_of<6>(most), 5U);
}

TEST(Log2Histogram, EveryBoundBelongsToItsBucketAndTheNextNumberToTheNextBucket) {
  using histogram = log2_histogram<20>;
  for (std::size_t bucket = 0; bucket + 1 != 20; ++bucket) {
    EXPECT_EQ(bucket_of<20>(histogram::upper_bound(bucket)), bucket);
    EXPECT_EQ(bucket_of<20>(histogram::upper_bound(bucket) + 1), bucket + 1);
  }
}

TEST(Log2Histogram, CountsAndSums) {
  log2_histogram<4> histogram;
  for (auto const value : {0U, 1U, 1U, 2U, 3U, 100U}) histogram.observe(value);
  EXPECT_EQ(histogram.counts(), (std::array<std::uint64_t, 4>{1, 2, 1, 2}));
  EXPECT_EQ(histogram.count(), 6U);
  EXPECT_EQ(histogram.sum(), 107U);
}

TEST(Log2Histogram, TheSumSaturates) {
  log2_histogram<4> histogram;
  histogram.observe(most - 1);
  histogram.observe(1);
  EXPECT_EQ(histogram.sum(), most);
  histogram.observe(5);
  EXPECT_EQ(histogram.sum(), most);
  EXPECT_EQ(histogram.count(), 3U);
}

TEST(OutcomeCounters, CountRefusalsByTheirCode) {
  outcome_counters counters;
  counters.refused[5] = 3;
  counters.refused[9] = 4;
  EXPECT_EQ(counters.refused_for(errc::queue_full), 3U);
  EXPECT_EQ(counters.refused_for(errc::no_longer_fits), 4U);
  EXPECT_EQ(counters.refused_for(errc::timed_out), 0U);
  EXPECT_EQ(counters.refused_in_all(), 7U);
}

}  // namespace
