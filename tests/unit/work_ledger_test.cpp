#include "support/extremes.hpp"

#include <kvlane/detail/work_ledger.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using kvlane::highest_priority;
using kvlane::work;
using kvlane::detail::work_ledger;
using kvlane::test::most;

TEST(WorkLedger, IsEmptyAtFirst) {
  for (std::uint32_t priority = 0; priority <= highest_priority; ++priority) {
    EXPECT_EQ(work_ledger{}.ahead_of(priority).prompt_tokens, 0U);
    EXPECT_EQ(work_ledger{}.ahead_of(priority).decode_tokens, 0U);
  }
}

TEST(WorkLedger, RunningWorkIsAheadOfEverybody) {
  work_ledger ledger;
  ledger.start({.prompt_tokens = 100, .decode_tokens = 7});
  for (std::uint32_t priority = 0; priority <= highest_priority; ++priority) {
    EXPECT_EQ(ledger.ahead_of(priority).prompt_tokens, 100U);
    EXPECT_EQ(ledger.ahead_of(priority).decode_tokens, 7U);
  }
  ledger.finish({.prompt_tokens = 100, .decode_tokens = 7});
  EXPECT_EQ(ledger.ahead_of(0).prompt_tokens, 0U);
  EXPECT_EQ(ledger.ahead_of(0).decode_tokens, 0U);
}

TEST(WorkLedger, TellsRunningWorkApart) {
  work_ledger ledger;
  ledger.start({.prompt_tokens = 100, .decode_tokens = 7});
  ledger.queue(3, {.prompt_tokens = 10, .decode_tokens = 3});
  EXPECT_EQ(ledger.running().prompt_tokens, 100U);
  EXPECT_EQ(ledger.running().decode_tokens, 7U);
}

TEST(WorkLedger, QueuedWorkIsAheadOfItsPriorityAndThoseBelow) {
  work_ledger ledger;
  ledger.queue(0, {.prompt_tokens = 1});
  ledger.queue(5, {.prompt_tokens = 10, .decode_tokens = 3});
  ledger.queue(15, {.prompt_tokens = 100});
  EXPECT_EQ(ledger.ahead_of(0).prompt_tokens, 111U);
  EXPECT_EQ(ledger.ahead_of(1).prompt_tokens, 110U);
  EXPECT_EQ(ledger.ahead_of(5).prompt_tokens, 110U);
  EXPECT_EQ(ledger.ahead_of(5).decode_tokens, 3U);
  EXPECT_EQ(ledger.ahead_of(6).prompt_tokens, 100U);
  EXPECT_EQ(ledger.ahead_of(6).decode_tokens, 0U);
  EXPECT_EQ(ledger.ahead_of(15).prompt_tokens, 100U);
  ledger.unqueue(5, {.prompt_tokens = 10, .decode_tokens = 3});
  EXPECT_EQ(ledger.ahead_of(0).prompt_tokens, 101U);
}

TEST(WorkLedger, SaturatesAndRecovers) {
  work_ledger ledger;
  ledger.start({.prompt_tokens = most, .decode_tokens = most});
  ledger.queue(3, {.prompt_tokens = most, .decode_tokens = 5});
  EXPECT_EQ(ledger.ahead_of(0).prompt_tokens, most);
  EXPECT_EQ(ledger.ahead_of(0).decode_tokens, most);
  ledger.finish({.prompt_tokens = most, .decode_tokens = most});
  ledger.unqueue(3, {.prompt_tokens = most, .decode_tokens = 5});
  ledger.queue(3, {.prompt_tokens = 2});
  EXPECT_EQ(ledger.ahead_of(0).prompt_tokens, 2U);
  EXPECT_EQ(ledger.ahead_of(0).decode_tokens, 0U);
}

}  // namespace
