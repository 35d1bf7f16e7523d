#include "support/extremes.hpp"

#include <kvlane/work.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using namespace std::chrono_literals;
using kvlane::service_sample;
using kvlane::work;
using kvlane::detail::saturated;
using kvlane::detail::wide_sum;
using kvlane::detail::work_sum;
using kvlane::test::most;

TEST(Work, IsNothingUnlessSaid) {
  EXPECT_EQ(work{}.prompt_tokens, 0U);
  EXPECT_EQ(work{}.decode_tokens, 0U);
}

TEST(ServiceSample, IsNothingUnlessSaid) {
  EXPECT_EQ(service_sample{}.prompt_tokens, 0U);
  EXPECT_EQ(service_sample{}.decode_tokens, 0U);
  EXPECT_EQ(service_sample{}.prefill, 0ms);
  EXPECT_EQ(service_sample{}.decode, 0ms);
}

TEST(WorkSum, AddsAndTakesOutEachPhaseByItself) {
  work_sum sum;
  sum.add({.prompt_tokens = 5, .decode_tokens = 7});
  sum.add({.prompt_tokens = 10, .decode_tokens = 100});
  EXPECT_EQ(sum.total().prompt_tokens, 15U);
  EXPECT_EQ(sum.total().decode_tokens, 107U);
  sum.subtract({.prompt_tokens = 5, .decode_tokens = 7});
  EXPECT_EQ(sum.total().prompt_tokens, 10U);
  EXPECT_EQ(sum.total().decode_tokens, 100U);
}

TEST(WorkSum, AddsAnotherSum) {
  work_sum sum;
  sum.add({.prompt_tokens = 1, .decode_tokens = 2});
  work_sum other;
  other.add({.prompt_tokens = 10, .decode_tokens = 20});
  sum.add(other);
  EXPECT_EQ(sum.total().prompt_tokens, 11U);
  EXPECT_EQ(sum.total().decode_tokens, 22U);
}

TEST(WorkSum, SaturatesWhatItSaysAndNotWhatItKnows) {
  work_sum sum;
  sum.add({.prompt_tokens = most, .decode_tokens = most});
  sum.add({.prompt_tokens = 3, .decode_tokens = most});
  EXPECT_EQ(sum.total().prompt_tokens, most);
  EXPECT_EQ(sum.total().decode_tokens, most);
  sum.subtract({.prompt_tokens = most, .decode_tokens = most});
  EXPECT_EQ(sum.total().prompt_tokens, 3U);
  EXPECT_EQ(sum.total().decode_tokens, most);
}

TEST(Saturated, StopsAtTheHighestNumber) {
  EXPECT_EQ(saturated(0), 0U);
  EXPECT_EQ(saturated(wide_sum{most}), most);
  EXPECT_EQ(saturated(wide_sum{most} - 1), most - 1);
  EXPECT_EQ(saturated(wide_sum{most} + 1), most);
  EXPECT_EQ(saturated(wide_sum{most} * 1000), most);
}

}  // namespace
