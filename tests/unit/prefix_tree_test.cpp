#include "support/bare_waiter.hpp"
#include "support/owned_prompt.hpp"
#include "support/small_stack.hpp"

#include <kvlane/detail/prefix_tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using kvlane::prompt_view;
using kvlane::token_id;
using kvlane::detail::head_of;
using kvlane::detail::kind_of;
using kvlane::detail::length_of;
using kvlane::detail::prefix_edge;
using kvlane::detail::prefix_node;
using kvlane::detail::prefix_tree;
using kvlane::detail::prompt_kind;
using kvlane::detail::tree_waiter;
using kvlane::test::on_a_small_stack;
using kvlane::test::owned_prompt;

using tokens = std::vector<token_id>;
using blocks = std::vector<std::uint64_t>;
using arrivals = std::vector<std::uint64_t>;
using waiter_in_tree = kvlane::test::bare_waiter<tree_waiter>;
using edges = kvlane::detail::treap<prefix_edge, kvlane::detail::by_symbol>;

void print(std::ostream& out, prompt_view spelt_by, std::size_t from, std::size_t to) {
  for (auto i = from; i != to; ++i) {
    if (spelt_by.blocks.empty())
      out << spelt_by.tokens[i];
    else
      out << spelt_by.blocks[i];
    out << ' ';
  }
}

/// A tree and the waiters in it, by arrival.
class grove {
 public:
  waiter_in_tree& join(std::uint64_t arrival, owned_prompt const& p) {
    auto& w = waiters_[arrival];
    w = std::make_unique<waiter_in_tree>(kvlane::waiter_facts{.arrival = arrival}, p.view());
    tree_.reserve(waiters_.size());
    tree_.insert(*w, [this](prefix_edge const& e) { note(e); });
    return *w;
  }
  waiter_in_tree& join(std::uint64_t arrival, tokens const& t) { return join(arrival, owned_prompt{t}); }

  /// Takes a waiter out and destroys it, prompt and all.
  void leave(std::uint64_t arrival) {
    tree_.erase(*waiters_.at(arrival), [this](prefix_edge const& e) { note(e); });
    waiters_.erase(arrival);
  }
  /// The same, after it has become the one served last.
  void serve(std::uint64_t arrival) {
    tree_.serve(*waiters_.at(arrival));
    leave(arrival);
  }

  [[nodiscard]] prefix_tree& tree() noexcept { return tree_; }
  [[nodiscard]] std::map<std::uint64_t, std::unique_ptr<waiter_in_tree>> const& waiters() const noexcept {
    return waiters_;
  }
  [[nodiscard]] waiter_in_tree& at(std::uint64_t arrival) { return *waiters_.at(arrival); }

  /// What the changed edges had become when they were told, from the last call on: "symbol:waiters@earliest" each.
  std::string take_changes() { return std::exchange(changes_, {}); }

  /// All that is in the tree, such as "tokens :2@1 {1 2 :2@1 {3 :1@1 =1 4 :1@2 =2}}": an edge by its symbols, how many
  /// wait below, who was first; = who ends there, * on the way of the last prompt, > how that goes on from there.
  [[nodiscard]] std::string shape() {
    std::ostringstream out;
    for (auto const* e = tree_.top().children.first(); e != nullptr; e = edges::next(*e)) {
      auto const is_root_of_nothing = e->waiters == 0 && !e->to->on_last;
      if (is_root_of_nothing) continue;
      out << (e->rank == 0 ? "tokens " : "blocks ");
      print_below(out, *e);
    }
    auto text = out.str();
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }

  [[nodiscard]] arrivals below(prefix_node& n, prefix_node const* but = nullptr) {
    arrivals found;
    tree_.for_each_below(n, but, [&](tree_waiter const& w) { found.push_back(w.arrival()); });
    return found;
  }

 private:
  void note(prefix_edge const& e) {
    // Symbols of tokens are told by their lowest bits.
    changes_ += std::to_string(static_cast<std::uint32_t>(e.symbol) ^ (e.from->depth < 0 ? 0U : 0x8000'0000U)) + ":" +
                std::to_string(e.waiters) + "@" + (e.waiters == 0 ? "-" : std::to_string(e.earliest)) + " ";
  }

  void print_below(std::ostream& out, prefix_edge const& e) {
    auto const& n = *e.to;
    EXPECT_EQ(n.in, &e);
    if (e.waiters == 0) {
      EXPECT_EQ(e.label, nullptr);
      EXPECT_EQ(e.earliest, std::numeric_limits<std::uint64_t>::max());
    } else {
      EXPECT_TRUE(waiters_.contains(e.label->arrival()) && waiters_.at(e.label->arrival()).get() == e.label)
          << "a label must be somebody who is there";
      EXPECT_GE(length_of(e.label->prompt()), static_cast<std::size_t>(n.depth));
    }
    if (e.from->depth >= 0) {
      print(out, e.label->prompt(), static_cast<std::size_t>(e.from->depth), static_cast<std::size_t>(n.depth));
      EXPECT_EQ(e.symbol, prefix_tree::symbol_at(e.label->prompt(), static_cast<std::size_t>(e.from->depth)));
    }
    out << ':' << e.waiters;
    if (e.waiters != 0) out << '@' << e.earliest;
    out << ' ';
    print_node(out, n);
  }

  void print_node(std::ostream& out, prefix_node const& n) {
    if (n.on_last) out << "* ";
    if (auto const* const onward = tree_.continuation(n)) {
      EXPECT_EQ(onward->from, &n);
      out << "> ";
      print(out, onward->label->prompt(), static_cast<std::size_t>(n.depth), static_cast<std::size_t>(n.depth) + 1);
    }
    for (auto const* w = n.ends.first(); w != nullptr; w = decltype(n.ends)::next(*w)) {
      EXPECT_EQ(w->node, &n);
      out << '=' << w->arrival() << ' ';
    }
    if (n.children.empty()) return;
    out << "{ ";
    auto earliest = std::numeric_limits<std::uint64_t>::max();
    for (auto const* e = n.children.first(); e != nullptr; e = edges::next(*e)) {
      EXPECT_EQ(e->from, &n);
      earliest = std::min(earliest, e->earliest);
      print_below(out, *e);
    }
    EXPECT_EQ(n.children.root()->earliest_of_siblings, earliest);
    out << "} ";
  }

  std::map<std::uint64_t, std::unique_ptr<waiter_in_tree>> waiters_;
  kvlane::detail::treap_weights weights_;
  prefix_tree tree_{weights_};
  std::string changes_;
};

// -- shape

TEST(PrefixTree, IsEmptyAtFirst) {
  grove g;
  EXPECT_EQ(g.shape(), "");
  EXPECT_EQ(g.tree().waiters_at(g.tree().top()), 0U);
  EXPECT_EQ(g.below(g.tree().top()), arrivals{});
}

TEST(PrefixTree, HasOneEdgeForOnePrompt) {
  grove g;
  g.join(5, {1, 2, 3});
  EXPECT_EQ(g.shape(), "tokens :1@5 { 1 2 3 :1@5 =5 }");
}

TEST(PrefixTree, PartsWherePromptsPart) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4, 5});
  EXPECT_EQ(g.shape(), "tokens :2@1 { 1 2 :2@1 { 3 :1@1 =1 4 5 :1@2 =2 } }");
}

TEST(PrefixTree, PartsAtTheRootWherePromptsHaveNothingInCommon) {
  grove g;
  g.join(1, {1, 1});
  g.join(2, {2, 1});
  EXPECT_EQ(g.shape(), "tokens :2@1 { 1 1 :1@1 =1 2 1 :1@2 =2 }");
}

TEST(PrefixTree, HasANodeWhereAPromptEndsInTheMiddleOfAnother) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2});
  EXPECT_EQ(g.shape(), "tokens :2@1 { 1 2 :2@1 =2 { 3 :1@1 =1 } }");
  g.join(3, {1, 2, 3, 4});
  EXPECT_EQ(g.shape(), "tokens :3@1 { 1 2 :3@1 =2 { 3 :2@1 =1 { 4 :1@3 =3 } } }");
}

TEST(PrefixTree, EqualPromptsEndAtOneNode) {
  grove g;
  g.join(3, {1});
  g.join(1, {1});
  g.join(2, {1});
  EXPECT_EQ(g.shape(), "tokens :3@1 { 1 :3@1 =1 =2 =3 }");
}

TEST(PrefixTree, AnEmptyPromptEndsAtTheRootOfTokens) {
  grove g;
  g.join(1, tokens{});
  g.join(2, {1});
  EXPECT_EQ(g.shape(), "tokens :2@1 =1 { 1 :1@2 =2 }");
  g.leave(2);
  EXPECT_EQ(g.shape(), "tokens :1@1 =1");
}

TEST(PrefixTree, TokensAndBlocksNeverShareANode) {
  grove g;
  g.join(1, owned_prompt{blocks{1, 2}});
  g.join(2, {1, 2});
  EXPECT_EQ(g.shape(), "tokens :1@2 { 1 2 :1@2 =2 } blocks :1@1 { 1 2 :1@1 =1 }");
  EXPECT_EQ(g.tree().waiters_at(g.tree().top()), 2U);
}

TEST(PrefixTree, TokensStandSignedAndBlocksUnsigned) {
  grove g;
  g.join(1, {3});
  g.join(2, {-2});
  g.join(3, {0});
  g.join(4, {std::numeric_limits<token_id>::min()});
  g.join(5, {std::numeric_limits<token_id>::max()});
  EXPECT_EQ(g.shape(), "tokens :5@1 { -2147483648 :1@4 =4 -2 :1@2 =2 0 :1@3 =3 3 :1@1 =1 2147483647 :1@5 =5 }");
  grove h;
  h.join(1, owned_prompt{blocks{~std::uint64_t{0}}});
  h.join(2, owned_prompt{blocks{5}});
  EXPECT_EQ(h.shape(), "blocks :2@1 { 5 :1@2 =2 18446744073709551615 :1@1 =1 }");
}

// -- leaving

TEST(PrefixTree, DissolvesANodeWherePromptsNoLongerPart) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4});
  g.leave(2);
  EXPECT_EQ(g.shape(), "tokens :1@1 { 1 2 3 :1@1 =1 }");
}

TEST(PrefixTree, DissolvesANodeWhereNobodyEndsAnyMore) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 2, 4});
  g.leave(1);
  EXPECT_EQ(g.shape(), "tokens :1@2 { 1 2 4 :1@2 =2 }");
}

TEST(PrefixTree, KeepsANodeWhereSomebodyElseEnds) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 2});
  g.join(3, {1, 2, 4});
  g.leave(1);
  EXPECT_EQ(g.shape(), "tokens :2@2 { 1 2 :2@2 =2 { 4 :1@3 =3 } }");
  g.leave(3);
  EXPECT_EQ(g.shape(), "tokens :1@2 { 1 2 :1@2 =2 }");
}

TEST(PrefixTree, KeepsANodeWhereTwoStillPart) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 3});
  g.join(3, {1, 4});
  g.leave(2);
  EXPECT_EQ(g.shape(), "tokens :2@1 { 1 :2@1 { 2 :1@1 =1 4 :1@3 =3 } }");
}

TEST(PrefixTree, IsAsItWasWhenEverybodyHasLeft) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 3});
  g.join(3, {1});
  g.join(4, tokens{});
  for (auto const arrival : {3U, 1U, 4U, 2U}) g.leave(arrival);
  EXPECT_EQ(g.shape(), "");
  g.join(5, {7});
  EXPECT_EQ(g.shape(), "tokens :1@5 { 7 :1@5 =5 }");
}

TEST(PrefixTree, KnowsWhoIsEarliestAfterTheEarliestHasLeft) {
  grove g;
  g.join(4, {1, 2});
  g.join(9, {1, 3});
  g.join(2, {1, 3});
  EXPECT_EQ(g.shape(), "tokens :3@2 { 1 :3@2 { 2 :1@4 =4 3 :2@2 =2 =9 } }");
  g.leave(2);
  EXPECT_EQ(g.shape(), "tokens :2@4 { 1 :2@4 { 2 :1@4 =4 3 :1@9 =9 } }");
  g.leave(4);
  EXPECT_EQ(g.shape(), "tokens :1@9 { 1 3 :1@9 =9 }");
  g.join(3, {1, 3, 5});
  EXPECT_EQ(g.shape(), "tokens :2@3 { 1 3 :2@3 =9 { 5 :1@3 =3 } }");
}

TEST(PrefixTree, SpellsItsEdgesAfterTheWaiterWhoSpeltThemHasLeft) {
  grove g;
  g.join(1, {1, 2, 3, 4});  // whose prompt spells everything
  g.join(2, {1, 2, 3, 5});
  g.join(3, {1, 2, 6});
  g.join(4, {1, 2, 6, 7});
  g.leave(1);
  EXPECT_EQ(g.shape(), "tokens :3@2 { 1 2 :3@2 { 3 5 :1@2 =2 6 :2@3 =3 { 7 :1@4 =4 } } }");
  g.leave(3);
  EXPECT_EQ(g.shape(), "tokens :2@2 { 1 2 :2@2 { 3 5 :1@2 =2 6 7 :1@4 =4 } }");
  g.join(5, {1, 2, 6, 7, 8});
  g.leave(2);
  g.leave(4);
  EXPECT_EQ(g.shape(), "tokens :1@5 { 1 2 6 7 8 :1@5 =5 }");
  g.join(6, {1, 2, 6, 9});
  EXPECT_EQ(g.shape(), "tokens :2@5 { 1 2 6 :2@5 { 7 8 :1@5 =5 9 :1@6 =6 } }");
}

TEST(PrefixTree, TellsEveryEdgeOnTheWayUpWhenItsFiguresHaveChanged) {
  grove g;
  g.join(4, {1, 2});
  EXPECT_EQ(g.take_changes(), "1:1@4 0:1@4 ");
  g.join(3, {1, 3});
  EXPECT_EQ(g.take_changes(), "3:1@3 1:2@3 0:2@3 ");
  g.join(5, {1, 3});
  EXPECT_EQ(g.take_changes(), "3:2@3 1:3@3 0:3@3 ");
  g.leave(3);
  EXPECT_EQ(g.take_changes(), "3:1@5 1:2@4 0:2@4 ");
  g.leave(5);
  EXPECT_EQ(g.take_changes(), "1:1@4 0:1@4 ") << "the edge that has gone is not told";
  g.leave(4);
  EXPECT_EQ(g.take_changes(), "0:0@- ");
}

// -- finding

TEST(PrefixTree, FindsTheNodeAtOrBelowWhichAllPromptsWithAPrefixEnd) {
  grove g;
  g.join(1, {1, 2, 3, 4});
  g.join(2, {1, 2, 3, 5});
  g.join(3, {1, 2});
  auto const below = [&](tokens const& prefix) {
    auto* const n = g.tree().find({.tokens = prefix});
    return n == nullptr ? arrivals{} : g.below(*n);
  };
  EXPECT_EQ(below({1}), (arrivals{3, 1, 2}));
  EXPECT_EQ(below({1, 2}), (arrivals{3, 1, 2}));
  EXPECT_EQ(below({1, 2, 3}), (arrivals{1, 2}));
  EXPECT_EQ(below({1, 2, 3, 5}), arrivals{2});
  EXPECT_EQ(below({1, 2, 3, 5, 6}), arrivals{}) << "nobody goes on like that";
  EXPECT_EQ(below({1, 3}), arrivals{}) << "it leaves an edge in the middle";
  EXPECT_EQ(below({2}), arrivals{});
  EXPECT_EQ(below({1, 2, 3, 6}), arrivals{});
}

TEST(PrefixTree, FindsEverybodyByTheEmptyPrefix) {
  grove g;
  EXPECT_EQ(g.tree().find({}), &g.tree().top());
  g.join(1, owned_prompt{blocks{1}});
  g.join(2, {1});
  EXPECT_EQ(g.tree().find({}), &g.tree().top());
  EXPECT_EQ(g.below(*g.tree().find({})), (arrivals{2, 1})) << "tokens come before blocks";
}

TEST(PrefixTree, FindsBlocksAmongBlocksOnly) {
  grove g;
  g.join(1, owned_prompt{blocks{1, 2}});
  blocks const one{1};
  tokens const same{1};
  ASSERT_NE(g.tree().find({.blocks = one}), nullptr);
  EXPECT_EQ(g.tree().find({.tokens = same}), nullptr);
}

TEST(PrefixTree, CountsThoseAtOrBelowANode) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 3});
  g.join(3, {1});
  g.join(4, {4});
  tokens const one{1};
  tokens const two{1, 2};
  EXPECT_EQ(g.tree().waiters_at(*g.tree().find({.tokens = one})), 3U);
  EXPECT_EQ(g.tree().waiters_at(*g.tree().find({.tokens = two})), 1U);
  EXPECT_EQ(g.tree().waiters_at(g.tree().top()), 4U);
}

TEST(PrefixTree, VisitsEverybodyBelowBesideThoseItIsToldToLeaveOut) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4});
  g.join(3, {1, 5});
  g.join(4, {1});
  g.join(5, {0});
  g.join(6, {9, 9});
  auto* const inner = g.at(1).node->in->from;  // of 1 2
  auto& top = g.tree().top();
  EXPECT_EQ(g.below(top), (arrivals{5, 4, 1, 2, 3, 6}));
  EXPECT_EQ(g.below(top, inner), (arrivals{5, 4, 3, 6}));
  EXPECT_EQ(g.below(top, g.at(4).node), (arrivals{5, 6}));
  EXPECT_EQ(g.below(top, g.at(6).node), (arrivals{5, 4, 1, 2, 3})) << "the last of all";
  EXPECT_EQ(g.below(*inner), (arrivals{1, 2}));
  EXPECT_EQ(g.below(*inner, g.at(1).node), arrivals{2}) << "the first child of where it began";
  EXPECT_EQ(g.below(*inner, inner), arrivals{});
  EXPECT_EQ(g.below(top, &top), arrivals{});
  EXPECT_EQ(g.below(*g.at(1).node), arrivals{1}) << "a leaf has no siblings for this purpose";
}

TEST(PrefixTree, KnowsWhereTwoWaysPart) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4});
  g.join(3, {1});
  g.join(4, {7});
  g.join(5, owned_prompt{blocks{1}});
  g.join(6, tokens{});
  auto const node = [&](std::uint64_t arrival) { return g.at(arrival).node; };
  auto* const inner = node(1)->in->from;
  EXPECT_EQ(prefix_tree::meeting(node(1), node(2)), inner);
  EXPECT_EQ(prefix_tree::meeting(node(2), node(1)), inner);
  EXPECT_EQ(prefix_tree::meeting(node(1), node(3)), node(3)) << "one above the other";
  EXPECT_EQ(prefix_tree::meeting(node(3), node(2)), node(3));
  EXPECT_EQ(prefix_tree::meeting(node(4), node(4)), node(4));
  EXPECT_EQ(prefix_tree::meeting(node(1), node(4)), node(6)) << "the root of tokens";
  EXPECT_EQ(prefix_tree::meeting(node(5), node(1)), &g.tree().top());
  EXPECT_EQ(prefix_tree::meeting(node(6), node(5)), &g.tree().top());
  EXPECT_EQ(prefix_tree::meeting(&g.tree().top(), node(2)), &g.tree().top());
  EXPECT_EQ(prefix_tree::meeting(node(2), &g.tree().top()), &g.tree().top());

  EXPECT_EQ(prefix_tree::way_down(*inner, *node(2)), node(2)->in);
  EXPECT_EQ(prefix_tree::way_down(*node(3), *node(2)), inner->in);
  EXPECT_EQ(prefix_tree::way_down(*node(6), *node(2)), node(3)->in);
  EXPECT_EQ(prefix_tree::way_down(g.tree().top(), *node(2))->to, node(6));
}

TEST(PrefixTree, SiblingsGoByWeightThenByTheEarliestThenBySymbol) {
  prefix_edge a;
  a.symbol = 1;
  a.waiters = 2;
  a.earliest = 5;
  prefix_edge b;
  b.symbol = 9;
  b.waiters = 1;
  b.earliest = 1;
  auto const only = [](prefix_edge const& x, prefix_edge const& y) { return goes_before(x, y) && !goes_before(y, x); };
  EXPECT_TRUE(only(a, b)) << "more wait below";
  b.waiters = 2;
  EXPECT_TRUE(only(b, a)) << "the earliest";
  b.earliest = 5;
  EXPECT_TRUE(only(a, b)) << "the smaller symbol";
  EXPECT_FALSE(goes_before(a, a));
  a.rank = 1;
  a.waiters = 100;
  EXPECT_TRUE(only(b, a)) << "tokens before blocks, whatever their weight";
}

// -- the prompt served last

TEST(PrefixTree, MarksTheWayOfThePromptServedLast) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4});
  g.join(3, {1, 5});
  g.serve(1);
  EXPECT_EQ(g.shape(), "tokens :2@2 * > 1 { 1 :2@2 * > 2 { 2 4 :1@2 =2 5 :1@3 =3 } }");
}

TEST(PrefixTree, RemembersThePromptServedLastWhenNobodyIsLeft) {
  grove g;
  g.join(1, {1, 2, 3});
  g.serve(1);
  EXPECT_EQ(g.shape(), "tokens :0 *");
  g.join(2, {1, 2, 3, 4});
  g.join(3, {1, 7});
  EXPECT_EQ(g.shape(), "tokens :2@2 * > 1 { 1 :2@2 * > 2 { 2 3 4 :1@2 =2 7 :1@3 =3 } }");
}

TEST(PrefixTree, MarksNodesThatAreMadeLaterAlongTheLastPrompt) {
  grove g;
  g.join(1, {1, 2, 3, 4});
  g.serve(1);
  g.join(2, {1, 2});  // a leaf on the way
  EXPECT_EQ(g.shape(), "tokens :1@2 * > 1 { 1 2 :1@2 * =2 }");
  g.join(3, {1, 2, 3, 5});  // a leaf that leaves it
  EXPECT_EQ(g.shape(), "tokens :2@2 * > 1 { 1 2 :2@2 * > 3 =2 { 3 5 :1@3 =3 } }");
  g.join(4, {1, 2, 3, 6});  // a fork on the way
  EXPECT_EQ(g.shape(), "tokens :3@2 * > 1 { 1 2 :3@2 * > 3 =2 { 3 :2@3 * { 5 :1@3 =3 6 :1@4 =4 } } }");
  g.join(5, {1, 2, 3, 5, 6});  // a fork off the way
  g.join(6, {1, 2, 3, 4});     // the whole of it
  EXPECT_EQ(g.shape(), "tokens :5@2 * > 1 { 1 2 :5@2 * > 3 =2 { 3 :4@3 * > 4 { 4 :1@6 * =6 "
                       "5 :2@3 =3 { 6 :1@5 =5 } 6 :1@4 =4 } } }");
  g.join(7, {1, 2, 3, 4, 9});  // and more
  EXPECT_EQ(g.tree().continuation(*g.at(6).node), nullptr) << "it ends there";
}

TEST(PrefixTree, KeepsTheWayWhenNodesOnItGo) {
  grove g;
  g.join(1, {1, 2, 3, 4});
  g.join(2, {1, 2, 3});
  g.join(3, {1, 2});
  g.join(4, {1});
  g.serve(1);
  EXPECT_EQ(g.shape(), "tokens :3@2 * > 1 { 1 :3@2 * > 2 =4 { 2 :2@2 * > 3 =3 { 3 :1@2 * =2 } } }");
  g.leave(3);  // from the middle
  EXPECT_EQ(g.shape(), "tokens :2@2 * > 1 { 1 :2@2 * > 2 =4 { 2 3 :1@2 * =2 } }");
  g.leave(2);  // the deepest, a leaf
  EXPECT_EQ(g.shape(), "tokens :1@4 * > 1 { 1 :1@4 * =4 }");
  g.join(5, {1, 2, 3, 4});
  EXPECT_EQ(g.shape(), "tokens :2@4 * > 1 { 1 :2@4 * > 2 =4 { 2 3 4 :1@5 * =5 } }");
}

TEST(PrefixTree, KeepsTheWayWhenItsDeepestNodeDissolves) {
  grove g;
  g.join(1, {1, 2, 3});
  g.join(2, {1, 2, 4});
  g.join(3, {1, 2, 5});
  g.join(4, {1, 9});
  g.serve(1);
  g.leave(2);  // 1 2, the deepest on the way, dissolves
  EXPECT_EQ(g.shape(), "tokens :2@3 * > 1 { 1 :2@3 * > 2 { 2 5 :1@3 =3 9 :1@4 =4 } }");
  g.serve(4);
  EXPECT_EQ(g.shape(), "tokens :1@3 * > 1 { 1 2 5 :1@3 =3 }") << "nothing is left of the way of 1 2 3";
}

TEST(PrefixTree, ForgetsOneLastPromptForTheNext) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, {1, 3});
  g.join(3, {4, 5});
  g.join(4, {4, 6});
  g.serve(1);
  g.serve(3);
  EXPECT_EQ(g.shape(), "tokens :2@2 * > 4 { 1 3 :1@2 =2 4 6 :1@4 =4 }");
  g.join(5, {4, 7});
  g.join(6, {1, 4});
  EXPECT_EQ(g.shape(), "tokens :4@2 * > 4 { 1 :2@2 { 3 :1@2 =2 4 :1@6 =6 } 4 :2@4 * { 6 :1@4 =4 7 :1@5 =5 } }");
}

TEST(PrefixTree, FollowsNothingAfterAnEmptyPrompt) {
  grove g;
  g.join(1, {1, 2});
  g.join(2, tokens{});
  g.join(3, {1, 3});
  g.serve(1);
  g.serve(2);
  EXPECT_EQ(g.shape(), "tokens :1@3 { 1 3 :1@3 =3 }");
  g.join(4, {1, 2});
  EXPECT_EQ(g.shape(), "tokens :2@3 { 1 :2@3 { 2 :1@4 =4 3 :1@3 =3 } }");
}

TEST(PrefixTree, FollowsBlocksAmongBlocksOnly) {
  grove g;
  g.join(1, owned_prompt{blocks{1, 2}});
  g.serve(1);
  g.join(2, {1, 2});
  g.join(3, owned_prompt{blocks{1, 3}});
  g.join(4, owned_prompt{blocks{1, 4}});
  EXPECT_EQ(g.shape(), "tokens :1@2 { 1 2 :1@2 =2 } blocks :2@3 * > 1 { 1 :2@3 * { 3 :1@3 =3 4 :1@4 =4 } }");
  g.serve(2);
  EXPECT_EQ(g.shape(), "tokens :0 * blocks :2@3 { 1 :2@3 { 3 :1@3 =3 4 :1@4 =4 } }");
}

// -- depth and length

TEST(PrefixTree, DoesNotRecurseIntoManyNestedPrompts) {
  // All prompts together take the square of the depth; the stack is smaller in proportion.
  constexpr std::uint64_t depth = 5000;
  tokens const longest(depth, 7);
  grove g;
  on_a_small_stack(
      [&] {
        for (std::uint64_t i = 1; i <= depth; ++i) {
          auto const n = i * 1009 % depth + 1;
          g.join(n, {longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(n)});
        }
        g.tree().serve(g.at(depth));
        auto seen = depth;
        g.tree().for_each_below(g.tree().top(), nullptr, [&](tree_waiter const&) { --seen; });
        EXPECT_EQ(seen, 0U);
        auto* const deepest = g.at(depth).node;
        EXPECT_EQ(deepest->depth, static_cast<std::int64_t>(depth));
        EXPECT_TRUE(deepest->on_last);
        EXPECT_EQ(prefix_tree::meeting(deepest, g.at(1).node), g.at(1).node);
        EXPECT_EQ(g.tree().find({.tokens = longest}), deepest);
        EXPECT_EQ(g.at(1).node->in->waiters, depth);
        for (std::uint64_t i = 1; i <= depth; ++i) g.leave(i * 2003 % depth + 1);
      },
      std::size_t{80} * 1024);
  EXPECT_EQ(g.shape(), "tokens :0 *");
}

TEST(PrefixTree, DoesNotRecurseIntoLongPrompts) {
  tokens a(100'000, 7);
  tokens b = a;
  tokens c(50'000, 7);
  a.push_back(2);
  b.push_back(1);
  c.push_back(8);
  grove g;
  on_a_small_stack([&] {
    g.join(1, a);
    g.join(2, b);
    EXPECT_EQ(g.at(1).node->in->from->depth, 100'000);
    g.tree().serve(g.at(1));
    g.join(3, c);
    EXPECT_EQ(g.at(3).node->in->from->depth, 50'000);
    EXPECT_EQ(g.tree().continuation(*g.at(3).node->in->from), g.at(1).node->in->from->in);
    EXPECT_EQ(g.tree().waiters_at(*g.tree().find(head_of({.tokens = a}, 60'000))), 2U);
    g.leave(1);
    g.leave(2);
    EXPECT_EQ(g.at(3).node->in->from->depth, 0);
  });
}

// -- against the definition

/// The same text as grove::shape, by grouping prompts symbol for symbol.
class by_definition {
 public:
  using standing = std::vector<std::pair<prompt_view, std::uint64_t>>;  // prompts and arrivals

  by_definition(standing all, prompt_view last) : all_{std::move(all)}, last_{last} {}

  [[nodiscard]] std::string shape() const {
    std::ostringstream out;
    for (auto const kind : {prompt_kind::tokens, prompt_kind::blocks}) {
      standing here;
      std::ranges::copy_if(all_, std::back_inserter(here), [&](auto const& s) { return kind_of(s.first) == kind; });
      auto const on_last = !last_.empty() && kind_of(last_) == kind;
      if (here.empty() && !on_last) continue;
      out << (kind == prompt_kind::tokens ? "tokens " : "blocks ");
      if (here.empty())
        out << ":0 * ";
      else
        print_node(out, here, 0, 0);
    }
    auto text = out.str();
    if (!text.empty()) text.pop_back();
    return text;
  }

 private:
  /// Prompts agree up to `depth`; the edge began at `from`.
  void print_node(std::ostream& out, standing const& here, std::size_t from, std::size_t depth) const {
    print(out, here.front().first, from, depth);
    out << ':' << here.size() << '@' << std::ranges::min(here, {}, &standing::value_type::second).second << ' ';
    std::map<std::uint64_t, standing> children;
    std::set<std::uint64_t> ends;
    for (auto const& s : here)
      if (length_of(s.first) == depth)
        ends.insert(s.second);
      else
        children[prefix_tree::symbol_at(s.first, depth)].push_back(s);

    auto const prefix = head_of(here.front().first, depth);
    auto const on_last = !last_.empty() && kind_of(last_) == kind_of(here.front().first) && length_of(last_) >= depth &&
                         head_of(last_, depth) == prefix;
    if (on_last) {
      out << "* ";
      if (length_of(last_) > depth && children.contains(prefix_tree::symbol_at(last_, depth))) {
        out << "> ";
        print(out, last_, depth, depth + 1);
      }
    }
    for (auto const arrival : ends) out << '=' << arrival << ' ';
    if (children.empty()) return;
    out << "{ ";
    for (auto const& [symbol, child] : children) print_node(out, child, depth, end_of(child, depth + 1));
    out << "} ";
  }

  static std::size_t end_of(standing const& here, std::size_t depth) {
    auto const goes_on = [&](auto const& s) {
      return length_of(s.first) > depth &&
             prefix_tree::symbol_at(s.first, depth) == prefix_tree::symbol_at(here.front().first, depth);
    };
    while (length_of(here.front().first) > depth && std::ranges::all_of(here, goes_on)) ++depth;
    return depth;
  }

  standing all_;
  prompt_view last_;
};

owned_prompt copy_of(prompt_view view) {
  owned_prompt p;
  p.t.assign(view.tokens.begin(), view.tokens.end());
  p.b.assign(view.blocks.begin(), view.blocks.end());
  return p;
}

owned_prompt random_prompt(std::mt19937& random, unsigned symbols, unsigned longest) {
  owned_prompt p;
  auto const length = random() % (longest + 1);
  for (std::size_t i = 0; i != length; ++i) p.t.push_back(static_cast<token_id>(random() % symbols) - 1);
  if (random() % 4 != 0) return p;
  for (auto const t : p.t) p.b.push_back(static_cast<std::uint64_t>(t));  // -1 is the highest hash
  p.t.clear();
  return p;
}

/// What begins with `prefix` is found, counted and visited, and the rest of them is what a visit leaves out.
void expect_found(grove& g, prompt_view prefix) {
  std::set<std::uint64_t> with;
  std::set<std::uint64_t> without;
  for (auto const& [arrival, w] : g.waiters()) (w->prompt().begins_with(prefix) ? with : without).insert(arrival);
  auto* const n = g.tree().find(prefix);
  ASSERT_EQ(n == nullptr, with.empty() && !prefix.empty());
  if (n == nullptr) return;
  ASSERT_EQ(g.tree().waiters_at(*n), with.size());
  auto const below = g.below(*n);
  auto const beside = g.below(g.tree().top(), n);
  ASSERT_EQ(below.size(), with.size());
  ASSERT_EQ(beside.size(), without.size());
  ASSERT_EQ((std::set<std::uint64_t>{below.begin(), below.end()}), with);
  ASSERT_EQ((std::set<std::uint64_t>{beside.begin(), beside.end()}), without);
}

TEST(PrefixTree, AgreesWithGroupingPromptsSymbolBySymbol) {
  constexpr auto first_seed = 7100U;
  for (auto seed = first_seed; seed != first_seed + 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random{seed};
    auto const symbols = 1 + static_cast<unsigned>(random() % 4);
    auto const longest = 1 + static_cast<unsigned>(random() % 9);
    auto const crowd = 2 + random() % 30;
    grove g;
    owned_prompt last;
    std::uint64_t clock = 0;
    for (int step = 0; step != 250; ++step) {
      auto const someone = [&] {
        return std::next(g.waiters().begin(), static_cast<std::ptrdiff_t>(random() % g.waiters().size()))->first;
      };
      if (g.waiters().empty() || (random() % 5 < 3 && g.waiters().size() < crowd)) {
        // One in five came before many who are here, as preempted work does.
        auto const arrival = random() % 5 == 0 ? clock++ : 100'000 + clock++;
        g.join(arrival, random_prompt(random, symbols, longest));
      } else if (random() % 3 == 0) {
        auto const served = someone();
        last = copy_of(g.at(served).prompt());
        g.serve(served);
      } else {
        g.leave(someone());
      }
      by_definition::standing all;
      for (auto const& [arrival, w] : g.waiters()) all.emplace_back(w->prompt(), arrival);
      ASSERT_EQ(g.shape(), (by_definition{all, last.view()}.shape())) << "step " << step;
      expect_found(g, random_prompt(random, symbols, longest).view());
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
}

}  // namespace
