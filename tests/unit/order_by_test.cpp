#include "support/bare_waiter.hpp"
#include "support/policy_answers.hpp"

#include <kvlane/ordering/order_by.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace {

using kvlane::departure;
using kvlane::order_by;
using kvlane::waiter_base;
using kvlane::test::picked;
using kvlane::test::plenty;
using kvlane::test::tags_in_order;

struct smallest_first {
  bool operator()(waiter_base const& a, waiter_base const& b) const noexcept { return a.demand() < b.demand(); }
};

using smallest_first_policy = order_by<smallest_first>;
static_assert(kvlane::ordering_policy<smallest_first_policy>);

using smallest_first_waiter = kvlane::test::bare_waiter<smallest_first_policy::waiter>;

TEST(OrderBy, OfNobodyPicksNobody) {
  smallest_first_policy line;
  EXPECT_EQ(line.pick({.free_tokens = plenty}), nullptr);
}

TEST(OrderBy, GoesByTheComparisonThenByArrival) {
  smallest_first_waiter large{{.arrival = 1, .demand = 30, .tag = 1}};
  smallest_first_waiter late{{.arrival = 3, .demand = 20, .tag = 2}};
  smallest_first_waiter early{{.arrival = 2, .demand = 20, .tag = 3}};
  smallest_first_waiter small{{.arrival = 4, .demand = 10, .tag = 4}};
  smallest_first_policy line;
  for (auto* w : {&large, &late, &early, &small}) line.insert(*w);
  EXPECT_EQ(tags_in_order(line), (std::vector<std::uint64_t>{4, 3, 2, 1}));
  EXPECT_EQ(picked(line, {.free_tokens = plenty}), 4U);
  line.erase(small, departure::admitted);
  EXPECT_EQ(picked(line, {.free_tokens = plenty}), 3U);
}

TEST(OrderBy, GoesByPriorityFirst) {
  smallest_first_waiter small{{.arrival = 1, .demand = 1, .tag = 1, .priority = 0}};
  smallest_first_waiter urgent{{.arrival = 2, .demand = 99, .tag = 2, .priority = 1}};
  smallest_first_policy line;
  line.insert(small);
  line.insert(urgent);
  EXPECT_EQ(tags_in_order(line), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(picked(line, {.free_tokens = plenty}), 2U);
}

TEST(OrderBy, PicksOnlyWhoFitsAndIsNotBelowTheFloor) {
  smallest_first_waiter small{{.arrival = 1, .demand = 10, .tag = 1, .priority = 0}};
  smallest_first_waiter urgent{{.arrival = 2, .demand = 99, .tag = 2, .priority = 5}};
  smallest_first_policy line;
  line.insert(small);
  line.insert(urgent);
  EXPECT_EQ(picked(line, {.free_tokens = 98}), 1U);
  EXPECT_EQ(picked(line, {.free_tokens = 9}), 0U);
  EXPECT_EQ(picked(line, {.free_tokens = 98, .min_priority = 1}), 0U);
  EXPECT_EQ(picked(line, {.free_tokens = 99, .min_priority = 5}), 2U);
  EXPECT_EQ(picked(line, {.free_tokens = 99, .min_priority = 6}), 0U);
}

TEST(OrderBy, StopsShowingTheLineWhenTold) {
  smallest_first_waiter first{{.arrival = 1}};
  smallest_first_waiter second{{.arrival = 2}};
  smallest_first_policy line;
  line.insert(first);
  line.insert(second);
  int shown = 0;
  line.for_each_in_order([&](smallest_first_policy::waiter&) { return ++shown < 1; });
  EXPECT_EQ(shown, 1);
}

TEST(OrderBy, TakesAComparisonWithAState) {
  struct towards {
    std::uint64_t flow;
    bool operator()(waiter_base const& a, waiter_base const& b) const noexcept {
      return (a.flow() == flow) > (b.flow() == flow);
    }
  };
  struct flow_waiter final : order_by<towards>::waiter {
    explicit flow_waiter(kvlane::waiter_facts const& facts) { facts_ = facts; }
  };
  flow_waiter other{{.arrival = 1, .tag = 1, .flow = 3}};
  flow_waiter favoured{{.arrival = 2, .tag = 2, .flow = 8}};
  order_by<towards> line{towards{8}};
  line.insert(other);
  line.insert(favoured);
  EXPECT_EQ(line.pick({})->tag(), 2U);
}

TEST(OrderBy, AgreesWithSortingUnderRandomUse) {
  constexpr auto seed = 2718U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  smallest_first_policy line;
  std::vector<std::unique_ptr<smallest_first_waiter>> waiting;
  auto const before = [](auto const& a, auto const& b) {
    if (a->priority() != b->priority()) return a->priority() > b->priority();
    return a->demand() != b->demand() ? a->demand() < b->demand() : a->arrival() < b->arrival();
  };
  for (std::uint64_t step = 1; step != 4000; ++step) {
    if (waiting.size() < 2 || random() % 2 == 0) {
      kvlane::waiter_facts const facts{
          .arrival = step, .demand = random() % 10, .tag = step, .priority = static_cast<std::uint32_t>(random() % 3)};
      waiting.push_back(std::make_unique<smallest_first_waiter>(facts));
      line.insert(*waiting.back());
      std::ranges::sort(waiting, before);
    } else {
      auto const gone = waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
      line.erase(**gone, departure::cancelled);
      waiting.erase(gone);
    }
    std::vector<std::uint64_t> expected;
    for (auto const& w : waiting) expected.push_back(w->tag());
    ASSERT_EQ(tags_in_order(line), expected) << "step " << step;
    kvlane::pick_query const q{.free_tokens = random() % 10, .min_priority = static_cast<std::uint32_t>(random() % 3)};
    auto const best = std::ranges::find_if(
        waiting, [&](auto const& w) { return w->demand() <= q.free_tokens && w->priority() >= q.min_priority; });
    ASSERT_EQ(picked(line, q), best == waiting.end() ? 0 : (*best)->tag()) << "step " << step;
  }
}

}  // namespace
