#include "support/bare_waiter.hpp"
#include "support/policy_answers.hpp"

#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using kvlane::departure;
using kvlane::fcfs;
using kvlane::test::picked;
using kvlane::test::plenty;
using kvlane::test::tags_in_order;

using fcfs_waiter = kvlane::test::bare_waiter<fcfs::waiter>;

static_assert(kvlane::ordering_policy<fcfs>);
static_assert(noexcept(std::declval<fcfs&>().insert(std::declval<fcfs::waiter&>())), "nothing of it allocates");

TEST(Fcfs, OfNobodyPicksNobody) {
  fcfs line;
  EXPECT_EQ(line.pick({.free_tokens = plenty}), nullptr);
  EXPECT_TRUE(tags_in_order(line).empty());
}

TEST(Fcfs, GoesByArrivalWhateverIsSaved) {
  fcfs_waiter first{{.arrival = 1, .tag = 1}};
  fcfs_waiter second{{.arrival = 2, .saved_cost = 1000, .tag = 2}};
  fcfs line;
  line.insert(second);
  line.insert(first);
  EXPECT_EQ(tags_in_order(line), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(picked(line, {.free_tokens = plenty}), 1U);
  line.erase(first, departure::admitted);
  EXPECT_EQ(picked(line, {.free_tokens = plenty}), 2U);
}

TEST(Fcfs, GoesByPriorityBeforeArrival) {
  fcfs_waiter low{{.arrival = 1, .tag = 1, .priority = 0}};
  fcfs_waiter high{{.arrival = 2, .tag = 2, .priority = 15}};
  fcfs_waiter middle{{.arrival = 3, .tag = 3, .priority = 7}};
  fcfs line;
  for (auto* w : {&low, &high, &middle}) line.insert(*w);
  EXPECT_EQ(tags_in_order(line), (std::vector<std::uint64_t>{2, 3, 1}));
}

TEST(Fcfs, PassesOverWhoDoesNotFit) {
  fcfs_waiter large{{.arrival = 1, .demand = 100, .tag = 1}};
  fcfs_waiter small{{.arrival = 2, .demand = 10, .tag = 2}};
  fcfs_waiter lane_only{{.arrival = 3, .demand = 0, .tag = 3}};
  fcfs line;
  for (auto* w : {&large, &small, &lane_only}) line.insert(*w);
  EXPECT_EQ(picked(line, {.free_tokens = 100}), 1U);
  EXPECT_EQ(picked(line, {.free_tokens = 99}), 2U);
  EXPECT_EQ(picked(line, {.free_tokens = 9}), 3U);
  EXPECT_EQ(picked(line, {.free_tokens = 0}), 3U);
  line.erase(lane_only, departure::cancelled);
  EXPECT_EQ(picked(line, {.free_tokens = 9}), 0U);
}

TEST(Fcfs, PicksNobodyBelowTheFloor) {
  fcfs_waiter low{{.arrival = 1, .demand = 1, .tag = 1, .priority = 3}};
  fcfs_waiter large{{.arrival = 2, .demand = 100, .tag = 2, .priority = 5}};
  fcfs line;
  line.insert(low);
  line.insert(large);
  EXPECT_EQ(picked(line, {.free_tokens = 10, .min_priority = 3}), 1U);
  EXPECT_EQ(picked(line, {.free_tokens = 10, .min_priority = 4}), 0U) << "who stands above the floor does not fit";
  EXPECT_EQ(picked(line, {.free_tokens = 100, .min_priority = 5}), 2U);
  EXPECT_EQ(picked(line, {.free_tokens = 100, .min_priority = 6}), 0U);
}

TEST(Fcfs, StopsShowingTheLineWhenTold) {
  fcfs_waiter first{{.arrival = 1}};
  fcfs_waiter second{{.arrival = 2}};
  fcfs line;
  line.insert(first);
  line.insert(second);
  int shown = 0;
  line.for_each_in_order([&](fcfs::waiter&) { return ++shown < 1; });
  EXPECT_EQ(shown, 1);
}

TEST(Fcfs, MovesWithItsWaiters) {
  fcfs_waiter one{{.arrival = 1, .tag = 1}};
  fcfs from;
  from.insert(one);
  fcfs to{std::move(from)};
  EXPECT_EQ(picked(to, {.free_tokens = plenty}), 1U);
  to.erase(one, departure::refused);
  EXPECT_EQ(picked(to, {.free_tokens = plenty}), 0U);
}

TEST(Fcfs, AgreesWithSortingUnderRandomUse) {
  constexpr auto seed = 31337U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  fcfs line;
  std::vector<std::unique_ptr<fcfs_waiter>> waiting;
  auto const before = [](auto const& a, auto const& b) {
    return a->priority() != b->priority() ? a->priority() > b->priority() : a->arrival() < b->arrival();
  };
  for (std::uint64_t step = 1; step != 10'000; ++step) {
    if (waiting.size() < 2 || random() % 2 == 0) {
      kvlane::waiter_facts const facts{
          .arrival = step, .demand = random() % 40, .tag = step, .priority = static_cast<std::uint32_t>(random() % 4)};
      waiting.push_back(std::make_unique<fcfs_waiter>(facts));
      line.insert(*waiting.back());
      std::ranges::sort(waiting, before);
    } else {
      auto const gone = waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
      line.erase(**gone, departure::cancelled);
      waiting.erase(gone);
    }
    kvlane::pick_query const q{.free_tokens = random() % 40, .min_priority = static_cast<std::uint32_t>(random() % 4)};
    auto const best = std::ranges::find_if(
        waiting, [&](auto const& w) { return w->demand() <= q.free_tokens && w->priority() >= q.min_priority; });
    ASSERT_EQ(picked(line, q), best == waiting.end() ? 0 : (*best)->tag()) << "step " << step;
  }
}

}  // namespace
