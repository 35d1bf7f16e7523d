#include <kvlane/detail/first_fit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using kvlane::detail::no_demand;
using kvlane::detail::treap_hook;
using kvlane::detail::treap_weights;

struct demanding_node {
  int key = 0;
  std::uint64_t demand = 0;
  treap_hook<demanding_node> links = {};
  std::uint64_t least = 0;
};

struct demanding_node_traits {
  static treap_hook<demanding_node>& hook(demanding_node& n) noexcept { return n.links; }
  static bool before(demanding_node const& a, demanding_node const& b) noexcept { return a.key < b.key; }
  static std::uint64_t demand(demanding_node const& n) noexcept { return n.demand; }
  static std::uint64_t& least(demanding_node& n) noexcept { return n.least; }
};

using demanding_tree = kvlane::detail::fitting_treap<demanding_node, demanding_node_traits>;

TEST(FittingTreap, OfNobodyFindsNobodyAndNeedsMoreThanThereIs) {
  demanding_tree const t;
  EXPECT_EQ(t.least_demand(), no_demand);
  EXPECT_EQ(t.first_fit(0), nullptr);
  EXPECT_EQ(t.first_fit(no_demand), nullptr);
}

TEST(FittingTreap, FindsTheFirstInOrderAndNotTheOneThatFitsBest) {
  demanding_node large{.key = 1, .demand = 10};
  demanding_node middle{.key = 2, .demand = 5};
  demanding_node exact{.key = 3, .demand = 3};
  demanding_node small{.key = 4, .demand = 1};
  demanding_tree t;
  treap_weights weights;
  for (auto* n : {&small, &middle, &large, &exact}) t.insert(*n, weights);
  EXPECT_EQ(t.first_fit(10), &large);
  EXPECT_EQ(t.first_fit(9), &middle);
  EXPECT_EQ(t.first_fit(5), &middle);
  EXPECT_EQ(t.first_fit(4), &exact);
  EXPECT_EQ(t.first_fit(2), &small);
  EXPECT_EQ(t.first_fit(0), nullptr);
  EXPECT_EQ(t.least_demand(), 1U);
}

TEST(FittingTreap, WhoNeedsNothingAlwaysFits) {
  demanding_node lane_only{.key = 2, .demand = 0};
  demanding_node large{.key = 1, .demand = 8};
  demanding_tree t;
  treap_weights weights;
  t.insert(lane_only, weights);
  t.insert(large, weights);
  EXPECT_EQ(t.first_fit(0), &lane_only);
}

TEST(FittingTreap, ForgetsTheDemandOfWhoHasLeft) {
  demanding_node large{.key = 1, .demand = 8};
  demanding_node small{.key = 2, .demand = 2};
  demanding_tree t;
  treap_weights weights;
  t.insert(large, weights);
  t.insert(small, weights);
  t.erase(small);
  EXPECT_EQ(t.least_demand(), 8U);
  EXPECT_EQ(t.first_fit(7), nullptr);
}

TEST(FittingTreap, FollowsADemandThatChanges) {
  demanding_node a{.key = 1, .demand = 8};
  demanding_node b{.key = 2, .demand = 9};
  demanding_tree t;
  treap_weights weights;
  t.insert(a, weights);
  t.insert(b, weights);
  b.demand = 1;
  demanding_tree::refresh(b);
  EXPECT_EQ(t.first_fit(1), &b);
  EXPECT_EQ(t.least_demand(), 1U);
}

TEST(FittingTreap, AgreesWithLookingAtEveryone) {
  constexpr auto seed = 977U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  std::vector<demanding_node> nodes(120);
  for (std::size_t i = 0; i != nodes.size(); ++i) nodes[i].key = static_cast<int>(i);
  std::vector<bool> in(nodes.size());
  demanding_tree t;
  treap_weights weights;
  for (int step = 0; step != 20'000; ++step) {
    auto const i = random() % nodes.size();
    auto const kept = in[i] && random() % 2 == 0;
    if (!in[i] || kept) nodes[i].demand = random() % 100;
    if (kept) {
      demanding_tree::refresh(nodes[i]);
    } else {
      in[i] ? t.erase(nodes[i]) : t.insert(nodes[i], weights);
      in[i] = !in[i];
    }
    auto const tokens = random() % 110;
    demanding_node* expected = nullptr;
    auto least = no_demand;
    for (std::size_t k = 0; k != nodes.size(); ++k) {
      if (!in[k]) continue;
      least = std::min(least, nodes[k].demand);
      if (expected == nullptr && nodes[k].demand <= tokens) expected = &nodes[k];
    }
    ASSERT_EQ(t.first_fit(tokens), expected) << "step " << step;
    ASSERT_EQ(t.least_demand(), least) << "step " << step;
  }
}

}  // namespace
