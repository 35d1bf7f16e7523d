#include "support/allocations.hpp"

#include <kvlane/detail/pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

using kvlane::test::allocations_of;
using kvlane::test::failing_allocation;

struct thing {
  std::uint64_t number = 7;
  thing* other = nullptr;
};

using pool = kvlane::detail::pool<thing>;

TEST(Pool, MakesObjectsAsTheirConstructorDoes) {
  pool p;
  p.reserve(2);
  auto* const plain = p.make();
  EXPECT_EQ(plain->number, 7U);
  EXPECT_EQ(plain->other, nullptr);
  auto* const given = p.make(thing{3, plain});
  EXPECT_EQ(given->number, 3U);
  EXPECT_EQ(given->other, plain);
}

TEST(Pool, ObjectsThatAreMadeTogetherLieTogether) {
  pool p;
  p.reserve(8);
  auto* const first = p.make();
  for (std::ptrdiff_t i = 1; i != 8; ++i) EXPECT_EQ(p.make(), first + i);
}

TEST(Pool, AnObjectThatComesBackIsForgotten) {
  pool p;
  p.reserve(1);
  auto* const a = p.make(thing{42, nullptr});
  p.give_back(a);
  auto* const again = p.make();
  EXPECT_EQ(again, a) << "the slot that is warm is used first";
  EXPECT_EQ(again->number, 7U);
}

TEST(Pool, ObjectsStayWhereTheyAreWhileItGrows) {
  pool p;
  std::vector<thing*> made;
  for (std::size_t n = 1; n != 2000; ++n) {
    p.reserve(n);
    made.push_back(p.make(thing{n, nullptr}));
  }
  for (std::size_t i = 0; i != made.size(); ++i) EXPECT_EQ(made[i]->number, i + 1);
}

TEST(Pool, RoomForAsManyAsAreOutIsEnough) {
  pool p;
  p.reserve(3);
  std::vector<thing*> out{p.make(), p.make(), p.make()};
  for (int i = 0; i != 1000; ++i) {
    p.give_back(out.front());
    p.reserve(3);
    out.front() = p.make();
  }
  EXPECT_EQ((std::set<thing*>{out.begin(), out.end()}).size(), 3U);
}

TEST(Pool, AllocatesWhenItMakesRoomAndAtNoOtherTime) {
  pool p;
  EXPECT_GT(allocations_of([&] { p.reserve(100); }), 0U);
  EXPECT_EQ(allocations_of([&] {
              p.reserve(100);
              p.reserve(1);
              std::vector<thing*>::size_type made = 0;
              for (; made != 100; ++made) p.give_back(p.make());
            }),
            0U);
}

TEST(Pool, GrowsGeometrically) {
  pool p;
  auto const allocated = allocations_of([&] {
    for (std::size_t n = 1; n <= 100'000; ++n) p.reserve(n);
  });
  EXPECT_LE(allocated, 40U);
}

TEST(Pool, StaysAsItIsWhenThereIsNoMemory) {
  for (std::uint64_t succeeding = 0; succeeding != 2; ++succeeding) {
    pool p;
    p.reserve(16);
    std::vector<thing*> made(16);
    for (auto& m : made) m = p.make();
    {
      failing_allocation const fails{succeeding};
      EXPECT_THROW(p.reserve(1000), std::bad_alloc);
    }
    p.give_back(made.back());
    EXPECT_EQ(allocations_of([&] { p.reserve(16); }), 0U);
    EXPECT_EQ(p.make(), made.back());
    p.reserve(1000);
    std::set<thing*> all{made.begin(), made.end()};
    for (int i = 16; i != 1000; ++i) all.insert(p.make());
    EXPECT_EQ(all.size(), 1000U);
  }
}

TEST(Pool, NeverHandsOutAnObjectTwice) {
  constexpr auto seed = 5150U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  pool p;
  std::vector<thing*> out;
  std::set<thing*> known;
  for (std::uint64_t step = 0; step != 20'000; ++step) {
    if (out.empty() || random() % 100 < 52) {
      p.reserve(out.size() + 1);
      auto* const made = p.make(thing{step, nullptr});
      made->other = made;
      ASSERT_TRUE(known.insert(made).second) << "step " << step;
      out.push_back(made);
    } else {
      std::swap(out[random() % out.size()], out.back());
      ASSERT_EQ(out.back()->other, out.back()) << "nobody has written over it";
      known.erase(out.back());
      p.give_back(out.back());
      out.pop_back();
    }
  }
}

}  // namespace
