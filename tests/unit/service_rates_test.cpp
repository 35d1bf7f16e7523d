#include <kvlane/service_rates.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kvlane::fractional_ms;
using kvlane::phase_rate;
using kvlane::service_rates;
using kvlane::service_sample;

constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinite = std::numeric_limits<double>::infinity();

phase_rate after(std::vector<double> const& samples) {
  phase_rate rate;
  for (auto const ms : samples) rate.observe(ms);
  return rate;
}

/// Rates of 1 ms for a token of either phase.
service_rates one_ms_a_token() {
  service_rates rates;
  EXPECT_TRUE(rates.observe({.prompt_tokens = 100, .decode_tokens = 100, .prefill = 100ms, .decode = 100ms}));
  return rates;
}

TEST(PhaseRate, IsUnknownWithoutASample) {
  phase_rate const rate;
  EXPECT_EQ(rate.average(), std::nullopt);
  EXPECT_EQ(rate.p95(), std::nullopt);
  EXPECT_EQ(rate.rate(), std::nullopt);
}

TEST(PhaseRate, AveragesWithAQuarterOfTheNewestSample) {
  EXPECT_DOUBLE_EQ(after({4}).average().value(), 4);
  EXPECT_DOUBLE_EQ(after({4, 8}).average().value(), 5);
  EXPECT_DOUBLE_EQ(after({4, 8, 1}).average().value(), 4);
}

TEST(PhaseRate, TakesTheNinetyFifthPercentileAtTheCeilingOfItsIndex) {
  auto const of_first = [](int n) {
    phase_rate rate;
    for (int ms = n; ms != 0; --ms) rate.observe(ms);
    return rate.p95().value();
  };
  EXPECT_EQ(of_first(1), 1);
  EXPECT_EQ(of_first(2), 2);
  EXPECT_EQ(of_first(19), 19) << "ceil(18.05) is the 19th";
  EXPECT_EQ(of_first(20), 19) << "exactly the 19th";
  EXPECT_EQ(of_first(21), 20) << "ceil(19.95) is the 20th";
  EXPECT_EQ(of_first(40), 38);
  EXPECT_EQ(of_first(64), 61) << "ceil(60.8) is the 61st";
}

TEST(PhaseRate, LooksAtTheLastSixtyFourSamplesOnly) {
  phase_rate rate;
  for (int i = 0; i != 4; ++i) rate.observe(1000);
  for (int i = 0; i != 60; ++i) rate.observe(1);
  EXPECT_EQ(rate.p95(), 1000) << "four slow ones of 64";
  rate.observe(1);
  EXPECT_EQ(rate.p95(), 1) << "the first of them has left the window";
}

TEST(PhaseRate, IsTheLargerOfAverageAndPercentile) {
  auto const slow_lately = after({1, 1, 1, 10});
  EXPECT_DOUBLE_EQ(slow_lately.average().value(), 3.25);
  EXPECT_EQ(slow_lately.p95(), 10);
  EXPECT_EQ(slow_lately.rate(), 10) << "though the average is lower";

  auto jump = after(std::vector<double>(63, 1.0));
  jump.observe(1000);
  EXPECT_EQ(jump.p95(), 1);
  EXPECT_DOUBLE_EQ(jump.rate().value(), 250.75) << "though the percentile is lower";
}

TEST(PhaseRate, AgreesWithSortingTheWindowEachTime) {
  constexpr auto seed = 7411U;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random{seed};
  phase_rate rate;
  std::deque<double> window;
  for (int step = 0; step != 2000; ++step) {
    auto const ms = 1.0 + static_cast<double>(random() % 20);  // few values, so that equal ones meet
    rate.observe(ms);
    window.push_back(ms);
    if (window.size() > 64) window.pop_front();
    std::vector<double> sorted{window.begin(), window.end()};
    std::ranges::sort(sorted);
    auto const index = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(sorted.size()))) - 1;
    ASSERT_EQ(rate.p95(), sorted[index]) << "seed " << seed << ", step " << step;
  }
}

TEST(ServiceRates, PredictNothingWhileNoRateIsKnown) {
  EXPECT_EQ(service_rates{}.predicted_wait({.prompt_tokens = 100, .decode_tokens = 100}, 1), std::nullopt);
}

TEST(ServiceRates, PredictTheWorkAheadAtTheRateOfEachPhase) {
  service_rates rates;
  EXPECT_TRUE(rates.observe({.prompt_tokens = 100, .decode_tokens = 50, .prefill = 50ms, .decode = 1000ms}));
  EXPECT_EQ(rates.prefill().rate(), 0.5);
  EXPECT_EQ(rates.decode().rate(), 20);
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 10, .decode_tokens = 0}, 1), 5ms);
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 0, .decode_tokens = 10}, 1), 200ms);
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 10, .decode_tokens = 10}, 1), 205ms);
  EXPECT_EQ(rates.predicted_wait({}, 1), 0ms) << "nobody is ahead";
}

TEST(ServiceRates, DivideByTheLanes) {
  auto const rates = one_ms_a_token();
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 100, .decode_tokens = 100}, 1), 200ms);
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 80, .decode_tokens = 20}, 2), 50ms);
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 100, .decode_tokens = 100}, 0), 200ms) << "no lane counts as one";
}

TEST(ServiceRates, APhaseThatIsNotKnownCountsNothing) {
  service_rates prefill_only;
  EXPECT_TRUE(prefill_only.observe({.prompt_tokens = 100, .prefill = 100ms})) << "an embedding decodes nothing";
  EXPECT_EQ(prefill_only.predicted_wait({.prompt_tokens = 10, .decode_tokens = 10'000}, 1), 10ms);
  service_rates decode_only;
  EXPECT_TRUE(decode_only.observe({.decode_tokens = 100, .decode = 100ms})) << "the whole prompt was cached";
  EXPECT_EQ(decode_only.predicted_wait({.prompt_tokens = 10'000, .decode_tokens = 10}, 1), 10ms);
}

TEST(ServiceRates, IgnoreNonsenseAndSaySo) {
  service_rates rates;
  EXPECT_FALSE(rates.observe({})) << "empty";
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .prefill = fractional_ms{not_a_number}}));
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .prefill = fractional_ms{infinite}}));
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .prefill = -1ms}));
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .prefill = 0ms})) << "tokens in no time";
  EXPECT_FALSE(rates.observe({.prompt_tokens = 0, .prefill = 10ms})) << "time for no tokens";
  EXPECT_FALSE(rates.observe({.decode_tokens = 10, .decode = fractional_ms{not_a_number}}));
  EXPECT_FALSE(rates.observe({.decode_tokens = 10, .decode = fractional_ms{-infinite}}));
  EXPECT_FALSE(rates.observe({.decode_tokens = 0, .decode = fractional_ms{not_a_number}}));
  EXPECT_EQ(rates.prefill().rate(), std::nullopt);
  EXPECT_EQ(rates.decode().rate(), std::nullopt);
}

TEST(ServiceRates, LearnFromThePhaseThatMakesSenseAndReportTheOther) {
  service_rates rates;
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .decode_tokens = 10, .prefill = 20ms, .decode = -1ms}));
  EXPECT_EQ(rates.prefill().rate(), 2);
  EXPECT_EQ(rates.decode().rate(), std::nullopt);
  EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .decode_tokens = 10, .prefill = -1ms, .decode = 30ms}));
  EXPECT_EQ(rates.prefill().rate(), 2);
  EXPECT_EQ(rates.decode().rate(), 3);
}

TEST(ServiceRates, NonsenseLeavesWhatWasLearnedAlone) {
  auto rates = one_ms_a_token();
  for (int i = 0; i != 100; ++i) EXPECT_FALSE(rates.observe({.prompt_tokens = 10, .prefill = fractional_ms{infinite}}));
  EXPECT_EQ(rates.predicted_wait({.prompt_tokens = 100, .decode_tokens = 100}, 1), 200ms);
}

}  // namespace
