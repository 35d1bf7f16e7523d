#include "yardsticks/block_pool.hpp"

#include <gtest/gtest.h>

namespace {

using replay::block_content;
using replay::block_pool;

TEST(BlockPool, FindsAFreeBlockUntilItIsHandedOutAgain) {
  block_pool pool{2};
  auto const a = pool.take();
  pool.name(a, {.prefix = 7});
  pool.give_back(a);
  EXPECT_EQ(pool.find({.prefix = 7}), a);
  EXPECT_EQ(pool.free_blocks(), 2U);
  EXPECT_NE(pool.take(), a) << "the other one has been free for longer";
  EXPECT_EQ(pool.find({.prefix = 7}), a);
  EXPECT_EQ(pool.take(), a);
  EXPECT_FALSE(pool.find({.prefix = 7}));
}

TEST(BlockPool, HandsOutWhatHasBeenFreeForLongest) {
  block_pool pool{3};
  auto const a = pool.take(), b = pool.take(), c = pool.take();
  pool.give_back(b);
  pool.give_back(a);
  pool.give_back(c);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), a);
  EXPECT_EQ(pool.take(), c);
}

TEST(BlockPool, FreesASharedBlockWithItsLastHolder) {
  block_pool pool{1};
  auto const a = pool.take();
  pool.share(a);
  pool.give_back(a);
  EXPECT_FALSE(pool.is_free(a));
  pool.give_back(a);
  EXPECT_TRUE(pool.is_free(a));
  pool.share(a);
  EXPECT_EQ(pool.free_blocks(), 0U) << "a free block that is found is no longer free";
}

TEST(BlockPool, KeepsTheFirstBlockOfAContent) {
  block_pool pool{2};
  auto const a = pool.take(), b = pool.take();
  pool.name(a, {.prefix = 7});
  pool.name(b, {.prefix = 7});
  EXPECT_EQ(pool.find({.prefix = 7}), a);
  pool.give_back(b);
  (void)pool.take();
  EXPECT_EQ(pool.find({.prefix = 7}), a) << "the other block never was the one that is found";
}

TEST(BlockPool, TellsPlacesOwnersAndPrefixesApart) {
  block_pool pool{1};
  pool.name(pool.take(), {.owner = 3, .prefix = 0, .place = 2});
  EXPECT_TRUE(pool.find({.owner = 3, .prefix = 0, .place = 2}));
  EXPECT_FALSE(pool.find({.owner = 3, .prefix = 0, .place = 1}));
  EXPECT_FALSE(pool.find({.owner = 4, .prefix = 0, .place = 2}));
  EXPECT_FALSE(pool.find({.prefix = 3, .place = 2}));
}

}  // namespace
