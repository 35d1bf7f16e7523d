#include "gtest/gtest.h"
#include "lockstep.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace kvlane::lockstep {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t operations = 100'000;
#elif defined(NDEBUG)
constexpr std::size_t operations = 1'000'000;
#else
constexpr std::size_t operations = 60'000;
#endif
constexpr std::size_t operations_per_world = 500;
constexpr std::uint64_t first_seed = 20'261'201;

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random{seed};
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

void tell(coverage const& seen) {
  std::printf("%llu steps, %.1f waiting on average, %llu at most, %llu steps with a reservation, overtaken %llu times "
              "at most\n",
              static_cast<unsigned long long>(seen.steps),
              static_cast<double>(seen.waiting) / static_cast<double>(seen.steps),
              static_cast<unsigned long long>(seen.deepest), static_cast<unsigned long long>(seen.reserved),
              static_cast<unsigned long long>(seen.most_overtaken));
  for (auto const& [code, count] : seen.outcomes)
    std::printf("  %s: %llu\n", code == 0 ? "admitted" : make_error_code(static_cast<errc>(code)).message().c_str(),
                static_cast<unsigned long long>(count));
}

/// Worlds of five hundred operations, each with limits of its own, until `share` of all operations have been run.
template <class Policy>
void agree_with_the_model(std::size_t share) {
  coverage seen;
  auto seed = first_seed;
  for (; seen.steps < operations / share; ++seed) {
    auto const bytes = random_bytes(seed, operations_per_world * 24);
    try {
      pair<Policy>{script{bytes}, seen}.run(operations_per_world);
    } catch (mismatch const& m) {
      FAIL() << "seed " << seed << ": " << m.what();
    }
  }
  tell(seen);
  // The lines were long, every kind of outcome came up, and bounds were reached.
  EXPECT_GT(seen.waiting / seen.steps, 8U);
  EXPECT_GE(seen.deepest, 64U);
  EXPECT_GT(seen.reserved, seen.steps / 50);
  EXPECT_GE(seen.most_overtaken, 4U);
  EXPECT_GT(seen.readmitted, seen.steps / 100);
  for (int code = 0; code <= static_cast<int>(errc::no_longer_fits); ++code)
    EXPECT_GE(seen.outcomes[code], std::max<std::uint64_t>(1, seen.steps / 5000)) << "outcome " << code;
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(seed - 1));
}

TEST(CoreAndReferenceModel, AgreeOnEveryOutcomeWithCacheAware) { agree_with_the_model<cache_aware>(2); }
TEST(CoreAndReferenceModel, AgreeOnEveryOutcomeWithSeedOrder) { agree_with_the_model<seed_order>(4); }
TEST(CoreAndReferenceModel, AgreeOnEveryOutcomeWithFcfs) { agree_with_the_model<fcfs>(4); }

/// The same with short scripts that RapidCheck shrinks: for finding the smallest difference when there is one.
TEST(CoreAndReferenceModel, AgreeOnShrinkableScripts) {
  auto const holds = rc::check("core and model agree", [] {
    auto const bytes = *rc::gen::resize(2000, rc::gen::arbitrary<std::vector<std::uint8_t>>());
    coverage seen;
    pair<cache_aware>{script{bytes}, seen}.run(operations_per_world);
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace kvlane::lockstep
