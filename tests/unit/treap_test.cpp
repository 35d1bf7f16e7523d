#include <kvlane/detail/treap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

using kvlane::detail::treap_hook;

/// A node that knows the size and the sum of the values of its subtree.
struct summing_node {
  int key = 0;
  std::uint64_t value = 0;
  treap_hook<summing_node> links = {};
  std::size_t size = 0;
  std::uint64_t sum = 0;
};

struct summing_node_traits {
  static treap_hook<summing_node>& hook(summing_node& n) noexcept { return n.links; }
  static bool before(summing_node const& a, summing_node const& b) noexcept { return a.key < b.key; }
  static void aggregate(summing_node& n) noexcept {
    n.size = 1;
    n.sum = n.value;
    for (auto const* const child : {n.links.left, n.links.right}) {
      if (child == nullptr) continue;
      n.size += child->size;
      n.sum += child->sum;
    }
  }
};

using summing_tree = kvlane::detail::treap<summing_node, summing_node_traits>;
using kvlane::detail::treap_weights;

std::vector<int> forwards(summing_tree const& t) {
  std::vector<int> keys;
  for (auto const* n = t.first(); n != nullptr; n = summing_tree::next(*n)) keys.push_back(n->key);
  return keys;
}

std::vector<int> backwards(summing_tree const& t) {
  std::vector<int> keys;
  for (auto const* n = t.last(); n != nullptr; n = summing_tree::previous(*n)) keys.push_back(n->key);
  return keys;
}

std::size_t height(summing_node const* n) {
  return n == nullptr ? 0 : 1 + std::max(height(summing_tree::left(*n)), height(summing_tree::right(*n)));
}

/// Links agree, weights fall downwards, and every aggregate is that of its subtree.
void expect_sound(summing_node const* n) {
  if (n == nullptr) return;
  std::size_t size = 1;
  auto sum = n->value;
  for (auto const* const child : {summing_tree::left(*n), summing_tree::right(*n)}) {
    if (child == nullptr) continue;
    EXPECT_EQ(summing_tree::parent(*child), n);
    EXPECT_LE(child->links.weight, n->links.weight);
    expect_sound(child);
    size += child->size;
    sum += child->sum;
  }
  EXPECT_EQ(n->size, size);
  EXPECT_EQ(n->sum, sum);
}

TEST(Treap, IsEmptyAtFirst) {
  summing_tree const t;
  EXPECT_TRUE(t.empty());
  EXPECT_EQ(t.root(), nullptr);
  EXPECT_EQ(t.first(), nullptr);
  EXPECT_EQ(t.last(), nullptr);
}

TEST(Treap, KeepsItsNodesInOrder) {
  std::vector<summing_node> nodes(5);
  treap_weights weights;
  summing_tree t;
  for (std::size_t i = 0; i != 5; ++i) {
    nodes[i].key = std::vector{3, 1, 5, 2, 4}[i];
    t.insert(nodes[i], weights);
  }
  EXPECT_FALSE(t.empty());
  EXPECT_EQ(t.first()->key, 1);
  EXPECT_EQ(t.last()->key, 5);
  EXPECT_EQ(forwards(t), (std::vector{1, 2, 3, 4, 5}));
  EXPECT_EQ(backwards(t), (std::vector{5, 4, 3, 2, 1}));
}

TEST(Treap, ANodeThatWasErasedCanComeBack) {
  summing_node a{.key = 1};
  summing_node b{.key = 2};
  treap_weights weights;
  summing_tree t;
  t.insert(a, weights);
  t.insert(b, weights);
  t.erase(a);
  EXPECT_EQ(forwards(t), std::vector{2});
  a.key = 3;
  t.insert(a, weights);
  EXPECT_EQ(forwards(t), (std::vector{2, 3}));
  t.erase(b);
  t.erase(a);
  EXPECT_TRUE(t.empty());
}

TEST(Treap, RefreshCarriesAChangeUpToTheRoot) {
  std::vector<summing_node> nodes(100);
  treap_weights weights;
  summing_tree t;
  for (int i = 0; i != 100; ++i) {
    nodes[static_cast<std::size_t>(i)].key = i;
    t.insert(nodes[static_cast<std::size_t>(i)], weights);
  }
  EXPECT_EQ(t.root()->sum, 0U);
  for (auto& n : nodes) {
    n.value = 7;
    summing_tree::refresh(n);
  }
  EXPECT_EQ(t.root()->sum, 700U);
  expect_sound(t.root());
}

TEST(Treap, StaysFlatWhenNodesComeSorted) {
  constexpr std::size_t many = 1 << 16;
  std::vector<summing_node> nodes(many);
  treap_weights weights;
  summing_tree t;
  for (std::size_t i = 0; i != many; ++i) {
    nodes[i].key = static_cast<int>(i);
    t.insert(nodes[i], weights);
  }
  EXPECT_EQ(t.root()->size, many);
  EXPECT_LE(height(t.root()), 60U) << "about 2.5 times the height of a perfect tree is usual";
}

TEST(Treap, HasTheSameShapeInEveryRun) {
  std::vector<summing_node> nodes(50);
  std::vector<summing_node> again(50);
  treap_weights weights;
  treap_weights other_weights;
  summing_tree t;
  summing_tree u;
  for (std::size_t i = 0; i != 50; ++i) {
    nodes[i].key = again[i].key = static_cast<int>(i * 37 % 50);
    t.insert(nodes[i], weights);
    u.insert(again[i], other_weights);
  }
  for (std::size_t i = 0; i != 50; ++i) EXPECT_EQ(nodes[i].links.weight, again[i].links.weight);
  EXPECT_EQ(t.root()->key, u.root()->key);
}

TEST(Treap, ManySmallTreesShareOneSourceOfWeights) {
  std::vector<summing_node> nodes(3000);
  std::vector<summing_tree> trees(30);
  treap_weights weights;
  for (std::size_t i = 0; i != nodes.size(); ++i) {
    nodes[i].key = static_cast<int>(i);
    trees[i % trees.size()].insert(nodes[i], weights);
  }
  for (auto const& t : trees) {
    EXPECT_EQ(t.root()->size, 100U);
    EXPECT_LE(height(t.root()), 30U) << "nodes came sorted, and every 30th weight is as good as any";
  }
}

TEST(Treap, IsAsLargeAsAPointer) { static_assert(sizeof(summing_tree) == sizeof(summing_node*)); }

TEST(Treap, FindsTheNodeThatIsNeitherBeforeNorAfter) {
  std::vector<summing_node> nodes(200);
  treap_weights weights;
  summing_tree t;
  auto const find = [&](int key) { return t.find([&](summing_node const& n) { return key - n.key; }); };
  EXPECT_EQ(find(0), nullptr) << "nobody is there";
  for (std::size_t i = 0; i != nodes.size(); ++i) {
    nodes[i].key = static_cast<int>(2 * (i * 71 % nodes.size()));
    t.insert(nodes[i], weights);
  }
  for (auto& n : nodes) EXPECT_EQ(find(n.key), &n);
  for (auto const missing : {-1, 1, 77, 199, 399, 1000}) EXPECT_EQ(find(missing), nullptr) << missing;
}

TEST(Treap, MovesWithAllItsNodes) {
  summing_node a{.key = 1};
  summing_node b{.key = 2};
  treap_weights weights;
  summing_tree from;
  from.insert(a, weights);
  from.insert(b, weights);
  summing_tree to{std::move(from)};
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(forwards(to), (std::vector{1, 2}));
  summing_tree assigned;
  assigned = std::move(to);
  EXPECT_TRUE(to.empty());
  EXPECT_EQ(forwards(assigned), (std::vector{1, 2}));
  assigned.erase(a);
  EXPECT_EQ(forwards(assigned), std::vector{2});
}

TEST(Treap, AgreesWithASetUnderRandomUse) {
  constexpr auto seed = 4242U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random{seed};
  std::vector<summing_node> nodes(300);
  for (std::size_t i = 0; i != nodes.size(); ++i) nodes[i].key = static_cast<int>(i);
  treap_weights weights;
  summing_tree t;
  std::set<int> keys;
  for (int step = 0; step != 6000; ++step) {
    auto& n = nodes[random() % nodes.size()];
    if (!keys.contains(n.key)) {
      n.value = random() % 100;
      t.insert(n, weights);
      keys.insert(n.key);
    } else if (random() % 2 == 0) {
      t.erase(n);
      keys.erase(n.key);
    } else {
      n.value = random() % 100;
      summing_tree::refresh(n);
    }
    ASSERT_EQ(forwards(t), (std::vector<int>{keys.begin(), keys.end()})) << "step " << step;
    ASSERT_EQ(backwards(t), (std::vector<int>{keys.rbegin(), keys.rend()})) << "step " << step;
    expect_sound(t.root());
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
}

}  // namespace
