#include "support/extremes.hpp"

#include <kvlane/request.hpp>
#include <kvlane/token_budget.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using kvlane::demand_of;
using kvlane::token_budget;
using kvlane::test::most;

TEST(TokenBudget, ReservesAndGivesBack) {
  token_budget budget{1024};
  EXPECT_TRUE(budget.try_reserve(demand_of({.prompt_tokens = 400, .max_tokens = 128}, {})));
  EXPECT_EQ(budget.used(), 528U);
  EXPECT_EQ(budget.free(), 496U);
  budget.release(528);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.free(), 1024U);
}

TEST(TokenBudget, ReservesTheHeadroomAndNotTheCeilingOfAReply) {
  token_budget budget{8192};
  EXPECT_TRUE(budget.try_reserve(demand_of({.prompt_tokens = 4506, .max_tokens = 4096}, {.decode_headroom = 512})));
  EXPECT_EQ(budget.used(), 5018U);
}

TEST(TokenBudget, ChangesNothingWhereTooFewAreFree) {
  token_budget budget{1000};
  ASSERT_TRUE(budget.try_reserve(800));
  EXPECT_FALSE(budget.try_reserve(300));
  EXPECT_FALSE(budget.try_reserve(201));
  EXPECT_EQ(budget.used(), 800U);
  budget.release(800);
  EXPECT_TRUE(budget.try_reserve(300));
  EXPECT_EQ(budget.used(), 300U);
}

TEST(TokenBudget, GivesTheLastTokenAndThenNothing) {
  token_budget budget{10};
  EXPECT_TRUE(budget.try_reserve(7));
  EXPECT_TRUE(budget.try_reserve(3));
  EXPECT_EQ(budget.free(), 0U);
  EXPECT_FALSE(budget.try_reserve(1));
  EXPECT_TRUE(budget.try_reserve(0)) << "a request for a lane only";
}

TEST(TokenBudget, LoweredBelowItsUseHasNothingFreeUntilEnoughCameBack) {
  token_budget budget{100};
  ASSERT_TRUE(budget.try_reserve(60));
  ASSERT_TRUE(budget.try_reserve(20));
  budget.resize(50);
  EXPECT_EQ(budget.capacity(), 50U);
  EXPECT_EQ(budget.used(), 80U) << "nothing is revoked";
  EXPECT_EQ(budget.free(), 0U);
  EXPECT_TRUE(budget.try_reserve(0));
  EXPECT_FALSE(budget.try_reserve(1));
  budget.release(20);
  EXPECT_EQ(budget.free(), 0U);
  budget.release(60);
  EXPECT_EQ(budget.free(), 50U);
}

TEST(TokenBudget, RaisedFreesAtOnce) {
  token_budget budget{10};
  ASSERT_TRUE(budget.try_reserve(10));
  budget.resize(25);
  EXPECT_EQ(budget.free(), 15U);
  EXPECT_TRUE(budget.try_reserve(15));
}

TEST(TokenBudget, KeepsAReserveBackAsFarAsThereIsOne) {
  token_budget budget{100};
  ASSERT_TRUE(budget.try_reserve(70));
  EXPECT_EQ(budget.free_beyond(0), 30U);
  EXPECT_EQ(budget.free_beyond(10), 20U);
  EXPECT_EQ(budget.free_beyond(30), 0U);
  EXPECT_EQ(budget.free_beyond(31), 0U);
  EXPECT_EQ(budget.free_beyond(most), 0U);
}

TEST(TokenBudget, DoesNotOverflow) {
  token_budget budget{most};
  EXPECT_TRUE(budget.try_reserve(most - 1));
  EXPECT_FALSE(budget.try_reserve(2));
  EXPECT_FALSE(budget.try_reserve(most));
  EXPECT_TRUE(budget.try_reserve(1));
  EXPECT_EQ(budget.used(), most);
}

#ifndef NDEBUG
TEST(TokenBudgetDeathTest, GivingBackMoreThanIsReservedIsABugInTheCaller) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  token_budget budget{10};
  ASSERT_TRUE(budget.try_reserve(3));
  EXPECT_DEATH(budget.release(4), "more KV tokens were released than are reserved");
}
#endif

}  // namespace
