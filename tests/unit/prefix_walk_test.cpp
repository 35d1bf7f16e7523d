#include "gtest/gtest.h"
#include "support/owned_prompt.hpp"
#include "support/small_stack.hpp"

#include <kvlane/detail/prefix_walk.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using kvlane::prompt_view;
using kvlane::token_id;
using kvlane::detail::common_prefix;
using kvlane::detail::compare;
using kvlane::detail::head_of;
using kvlane::detail::kind_of;
using kvlane::detail::last_prompt;
using kvlane::detail::prefix_walk;
using kvlane::detail::prompt_kind;
using kvlane::detail::walk_item;
using kvlane::test::on_a_small_stack;
using kvlane::test::owned_prompt;

using tokens = std::vector<token_id>;
using blocks = std::vector<std::uint64_t>;
using ranks = std::vector<std::uint32_t>;

struct walk_input {
  std::vector<owned_prompt> prompts = {};
  std::vector<std::uint64_t> arrivals = {};  // the positions, if empty
  owned_prompt last = {};
  last_prompt use = last_prompt::follow;
};

std::vector<walk_item> items_of(walk_input const& in) {
  std::vector<walk_item> items;
  for (std::size_t i = 0; i != in.prompts.size(); ++i)
    items.push_back({.prompt = in.prompts[i].view(), .arrival = in.arrivals.empty() ? i : in.arrivals[i]});
  return items;
}

ranks rank(walk_input const& in) {
  auto items = items_of(in);
  prefix_walk walk;
  walk.reserve(items.size());
  walk.rank(items, in.last.view(), in.use);
  ranks result;
  for (auto const& item : items) result.push_back(item.rank);
  return result;
}

/// The rule written down without any thought of cost: one node for each symbol, and recursion.
class naive_trie {
 public:
  explicit naive_trie(walk_input const& in) : in_{in} {
    auto const items = items_of(in);
    for (std::size_t i = 0; i != items.size(); ++i) add(items[i], i);
  }

  ranks walk() {
    ranks result(in_.prompts.size());
    std::uint32_t next = 0;
    auto const follow = in_.use == last_prompt::follow;
    visit(token_root_, follow ? path(in_.last.t) : std::vector<wide>{}, follow, result, next);
    visit(block_root_, follow ? path(in_.last.b) : std::vector<wide>{}, follow, result, next);
    return result;
  }

 private:
  // Stands for token ids and hashes alike, in their order: tokens are moved up to begin at 0.
  using wide = std::uint64_t;
  static wide widen(token_id symbol) {
    return static_cast<wide>(std::int64_t{symbol} - std::numeric_limits<token_id>::min());
  }
  static wide widen(std::uint64_t symbol) { return symbol; }

  struct node {
    std::map<wide, std::unique_ptr<node>> children = {};
    std::vector<std::size_t> ending = {};
    std::size_t waiters = 0;
    std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();
  };

  template <class Symbols>
  static std::vector<wide> path(Symbols const& symbols) {
    std::vector<wide> result;
    for (auto const symbol : symbols) result.push_back(widen(symbol));
    return result;
  }

  void add(walk_item const& item, std::size_t position) {
    auto const in_tokens = item.prompt.blocks.empty();
    auto* at = in_tokens ? &token_root_ : &block_root_;
    auto const count = [&] {
      ++at->waiters;
      at->earliest = std::min(at->earliest, item.arrival);
    };
    count();
    for (auto const symbol : in_tokens ? path(item.prompt.tokens) : path(item.prompt.blocks)) {
      auto& child = at->children[symbol];
      if (!child) child = std::make_unique<node>();
      at = child.get();
      count();
    }
    at->ending.push_back(position);
  }

  // `rest` is what the last prompt still has in store; `along` says that it led here.
  void visit(node const& at, std::vector<wide> const& rest, bool along, ranks& result, std::uint32_t& next) {
    std::vector<std::pair<wide, node const*>> children;
    for (auto const& [symbol, child] : at.children) children.emplace_back(symbol, child.get());
    auto const continues = [&](wide symbol) { return along && !rest.empty() && rest.front() == symbol; };
    std::sort(children.begin(), children.end(), [&](auto const& a, auto const& b) {
      if (continues(a.first) != continues(b.first)) return continues(a.first);
      if (a.second->waiters != b.second->waiters) return a.second->waiters > b.second->waiters;
      if (a.second->earliest != b.second->earliest) return a.second->earliest < b.second->earliest;
      return a.first < b.first;
    });
    for (auto const& [symbol, child] : children) {
      auto const on = continues(symbol);
      visit(*child, on ? std::vector<wide>(rest.begin() + 1, rest.end()) : std::vector<wide>{}, on, result, next);
    }
    if (at.ending.empty()) return;
    for (auto const position : at.ending) result[position] = next;
    ++next;
  }

  walk_input const& in_;
  node token_root_;
  node block_root_;
};

static_assert(noexcept(std::declval<prefix_walk&>().rank({}, {}, last_prompt::follow)));
static_assert(std::is_move_constructible_v<prefix_walk> && std::is_move_assignable_v<prefix_walk>);

bool less(owned_prompt const& a, owned_prompt const& b) {
  EXPECT_EQ(compare(a.view(), b.view()) < 0, compare(b.view(), a.view()) > 0);
  return compare(a.view(), b.view()) < 0;
}

bool equal(owned_prompt const& a, owned_prompt const& b) { return compare(a.view(), b.view()) == 0; }

TEST(PromptOrder, ComparesTokensAsSignedNumbersAndHashesAsUnsigned) {
  EXPECT_TRUE(less(tokens{-1}, tokens{1}));
  EXPECT_TRUE(less(tokens{std::numeric_limits<token_id>::min()}, tokens{0}));
  EXPECT_TRUE(less(blocks{1}, blocks{~std::uint64_t{0}}));
}

TEST(PromptOrder, IsLexicographicAndPutsAPrefixFirst) {
  EXPECT_TRUE(less(tokens{1, 2}, tokens{1, 2, 0}));
  EXPECT_TRUE(less(tokens{1, 2, 9}, tokens{1, 3}));
  EXPECT_TRUE(less(tokens{}, tokens{0}));
  EXPECT_TRUE(equal(tokens{1, 2}, tokens{1, 2}));
  EXPECT_TRUE(equal(blocks{7, 8}, blocks{7, 8}));
  EXPECT_FALSE(equal(tokens{1, 2}, tokens{1, 3}));
}

TEST(PromptOrder, TakesPromptsOfDifferentKindsForDifferentAndTokensForSmaller) {
  EXPECT_TRUE(less(tokens{9, 9}, blocks{1}));
  EXPECT_FALSE(equal(tokens{1}, blocks{1}));
  EXPECT_EQ(common_prefix(owned_prompt{tokens{1}}.view(), owned_prompt{blocks{1}}.view()), 0U);
  EXPECT_EQ(kind_of({}), prompt_kind::tokens);
  EXPECT_TRUE(equal(tokens{}, blocks{}));
}

TEST(PromptOrder, FindsTheFirstDifferenceWhereverItIs) {
  tokens const a(300, 5);
  for (std::size_t at = 0; at != a.size(); ++at) {
    auto b = a;
    b[at] = 6;
    ASSERT_EQ(common_prefix(prompt_view{.tokens = a}, prompt_view{.tokens = b}), at);
    ASSERT_EQ(common_prefix(prompt_view{.tokens = a}, prompt_view{.tokens = b}, at / 2), at);
    ASSERT_EQ(common_prefix(prompt_view{.tokens = a}, head_of({.tokens = a}, at)), at);
    ASSERT_TRUE(less(a, b));
  }
  blocks const c(100, 5);
  for (std::size_t at = 0; at != c.size(); ++at) {
    auto d = c;
    d[at] = 4;
    ASSERT_EQ(common_prefix(prompt_view{.blocks = c}, prompt_view{.blocks = d}), at);
    ASSERT_EQ(common_prefix(prompt_view{.blocks = c}, head_of({.blocks = c}, at)), at);
    ASSERT_TRUE(less(d, c));
  }
}

TEST(PrefixWalk, RanksNothingWhenThereIsNothing) {
  EXPECT_EQ(rank({}), ranks{});
  prefix_walk walk;
  walk.rank({}, {}, last_prompt::follow);
}

TEST(PrefixWalk, VisitsTheChildWithTheMostWaitersFirst) {
  EXPECT_EQ(rank({.prompts = {tokens{9, 9, 9}, tokens{1, 2, 3}, tokens{1, 2, 4}}}), (ranks{2, 0, 1}));
}

TEST(PrefixWalk, CountsEqualPromptsAsOftenAsTheyWait) {
  EXPECT_EQ(rank({.prompts = {tokens{1, 2}, tokens{1, 3}, tokens{2}, tokens{2}, tokens{2}}}), (ranks{1, 2, 0, 0, 0}));
}

TEST(PrefixWalk, VisitsTheChildWithTheEarliestWaiterFirstAmongEquallyHeavyOnes) {
  EXPECT_EQ(rank({.prompts = {tokens{1}, tokens{2}, tokens{3}}, .arrivals = {30, 10, 20}}), (ranks{2, 0, 1}));
}

TEST(PrefixWalk, LooksForTheEarliestWaiterInTheWholeSubtree) {
  EXPECT_EQ(rank({.prompts = {tokens{1, 1}, tokens{1, 2}, tokens{2, 1}, tokens{2, 2}}, .arrivals = {5, 6, 7, 4}}),
            (ranks{2, 3, 1, 0}));
}

TEST(PrefixWalk, VisitsTheSmallerSymbolFirstWhenEverythingElseIsEqual) {
  EXPECT_EQ(rank({.prompts = {tokens{3}, tokens{-2}, tokens{1}}, .arrivals = {7, 7, 7}}), (ranks{2, 0, 1}));
  EXPECT_EQ(rank({.prompts = {blocks{~std::uint64_t{0}}, blocks{1}}, .arrivals = {7, 7}}), (ranks{1, 0}));
}

TEST(PrefixWalk, PutsPromptsThatEndAtANodeBehindItsChildren) {
  EXPECT_EQ(rank({.prompts = {tokens{1, 2}, tokens{1, 2, 3}, tokens{1}}}), (ranks{1, 0, 2}));
  EXPECT_EQ(rank({.prompts = {tokens{1}, tokens{1}, tokens{1}, tokens{1, 2}}}), (ranks{1, 1, 1, 0}));
}

TEST(PrefixWalk, LetsAnEmptyPromptEndAtTheTokenRoot) {
  EXPECT_EQ(rank({.prompts = {tokens{}, blocks{1}, tokens{5}, tokens{}}}), (ranks{1, 2, 0, 1}));
}

TEST(PrefixWalk, WalksAllTokenPromptsBeforeAllBlockPrompts) {
  EXPECT_EQ(rank({.prompts = {blocks{1}, blocks{1, 2}, tokens{1}, blocks{1, 3}}, .arrivals = {0, 1, 2, 3}}),
            (ranks{3, 1, 0, 2}));
}

TEST(PrefixWalk, KeepsTokensFirstEvenIfTheLastPromptWasOfBlocks) {
  EXPECT_EQ(rank({.prompts = {blocks{1}, tokens{1}}, .last = blocks{1}}), (ranks{1, 0}));
}

TEST(PrefixWalk, GivesEqualPromptsEqualRanks) {
  EXPECT_EQ(rank({.prompts = {tokens{1, 2}, tokens{4}, tokens{1, 2}, blocks{4}, blocks{4}}}), (ranks{0, 1, 0, 2, 2}));
}

TEST(PrefixWalk, ContinuesTheLastPromptFirst) {
  std::vector<owned_prompt> const prompts{tokens{1, 1}, tokens{1, 2}, tokens{1, 3}, tokens{2, 1}};
  EXPECT_EQ(rank({.prompts = prompts}), (ranks{0, 1, 2, 3}));
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{2, 7}}), (ranks{1, 2, 3, 0}));
}

TEST(PrefixWalk, ContinuesTheLastPromptAtEveryBranchOnItsWay) {
  std::vector<owned_prompt> const prompts{tokens{1, 1, 1}, tokens{1, 1, 2}, tokens{1, 2, 1}, tokens{1, 2, 2},
                                          tokens{2}};
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{1, 2, 2}}), (ranks{2, 3, 1, 0, 4}));
}

TEST(PrefixWalk, ContinuesTheLastPromptOnlyWhileAllSymbolsSoFarEqualIt) {
  // The last prompt leaves the branch [1, 5, ...] at its second symbol; that its third is 9 means nothing there.
  std::vector<owned_prompt> const prompts{tokens{1, 5, 8}, tokens{1, 5, 9}, tokens{2}};
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{1, 6, 9}}), (ranks{0, 1, 2}));
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{1, 5, 9}}), (ranks{1, 0, 2}));
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{3, 5, 9}}), (ranks{0, 1, 2}));
}

TEST(PrefixWalk, HasNoPreferenceBeyondTheEndOfTheLastPrompt) {
  EXPECT_EQ(rank({.prompts = {tokens{2}, tokens{3}, tokens{1, 1}, tokens{1, 2}, tokens{1, 2}}, .last = tokens{1}}),
            (ranks{2, 3, 1, 0, 0}));
}

TEST(PrefixWalk, LeavesWeightsAloneOffTheWayOfTheLastPrompt) {
  EXPECT_EQ(rank({.prompts = {tokens{1}, tokens{2, 1}, tokens{2, 1}, tokens{3}}, .last = tokens{3}}),
            (ranks{2, 1, 1, 0}));
}

TEST(PrefixWalk, ContinuesBlockPromptsOnlyAfterABlockPrompt) {
  std::vector<owned_prompt> const prompts{blocks{1}, blocks{2}};
  EXPECT_EQ(rank({.prompts = prompts, .last = blocks{2}}), (ranks{1, 0}));
  EXPECT_EQ(rank({.prompts = prompts, .last = tokens{2}}), (ranks{0, 1}));
}

TEST(PrefixWalk, IgnoresTheLastPromptWhenToldTo) {
  EXPECT_EQ(rank({.prompts = {tokens{1}, tokens{2}}, .last = tokens{2}, .use = last_prompt::ignore}), (ranks{0, 1}));
  EXPECT_EQ(rank({.prompts = {blocks{1}, blocks{2}}, .last = blocks{2}, .use = last_prompt::ignore}), (ranks{0, 1}));
}

TEST(PrefixWalk, CanBeUsedAgainWithOtherPrompts) {
  prefix_walk walk;
  walk.reserve(3);
  walk_input const many{.prompts = {tokens{1}, tokens{2, 2}, tokens{2, 3}}};
  walk_input const few{.prompts = {blocks{7}, blocks{7, 1}}};
  auto a = items_of(many);
  auto b = items_of(few);
  for (int round = 0; round != 2; ++round) {
    walk.rank(a, {}, last_prompt::follow);
    EXPECT_EQ((std::array{a[0].rank, a[1].rank, a[2].rank}), (std::array{2U, 0U, 1U}));
    walk.rank(b, {}, last_prompt::follow);
    EXPECT_EQ((std::array{b[0].rank, b[1].rank}), (std::array{1U, 0U}));
  }
}

TEST(PrefixWalk, GrowsGeometricallyAndRefusesMoreThanItCanNumber) {
  prefix_walk walk;
  EXPECT_EQ(walk.capacity(), 0U);
  walk.reserve(10);
  EXPECT_EQ(walk.capacity(), 10U);
  walk.reserve(11);
  EXPECT_EQ(walk.capacity(), 20U);
  walk.reserve(3);
  EXPECT_EQ(walk.capacity(), 20U);
  EXPECT_THROW(walk.reserve(std::size_t{1} << 31), std::length_error);
  EXPECT_EQ(walk.capacity(), 20U);
}

TEST(PrefixWalk, DoesNotRecurseIntoLongPrompts) {
  tokens a(100'000, 7);
  tokens b = a;
  a.push_back(2);
  b.push_back(1);
  walk_input const in{.prompts = {a, b}, .last = b};
  ranks result;
  on_a_small_stack([&] { result = rank(in); });
  EXPECT_EQ(result, (ranks{1, 0}));
}

TEST(PrefixWalk, DoesNotRecurseIntoManyNestedPrompts) {
  tokens const longest(20'000, 7);
  std::vector<walk_item> items;
  for (std::size_t n = 0; n != longest.size(); ++n)
    items.push_back({.prompt = {.tokens = std::span{longest}.first(n)}, .arrival = n});
  on_a_small_stack([&] {
    prefix_walk walk;
    walk.reserve(items.size());
    walk.rank(items, {.tokens = longest}, last_prompt::follow);
  });
  for (std::size_t n = 0; n != items.size(); ++n) ASSERT_EQ(items[n].rank, items.size() - 1 - n);
}

std::string describe(walk_input const& in) {
  std::ostringstream text;
  auto const print = [&](owned_prompt const& p) {
    text << (p.b.empty() ? 't' : 'b') << '[';
    for (auto const symbol : p.t) text << symbol << ' ';
    for (auto const symbol : p.b) text << symbol << ' ';
    text << ']';
  };
  for (std::size_t i = 0; i != in.prompts.size(); ++i) {
    print(in.prompts[i]);
    text << '@' << in.arrivals[i] << ' ';
  }
  text << "last ";
  print(in.last);
  text << (in.use == last_prompt::follow ? " followed" : " ignored");
  return text.str();
}

class random_walks {
 public:
  explicit random_walks(std::uint32_t seed) : random_{seed} {}

  walk_input next() {
    alphabet_ = between(1, 4);
    longest_ = between(0, 6);
    walk_input in;
    auto const n = between(0, 12);
    for (std::size_t i = 0; i != n; ++i) {
      in.prompts.push_back(any());
      in.arrivals.push_back(between(0, 30));
    }
    in.last = between(0, 3) == 0 && n != 0 ? in.prompts[between(0, n - 1)] : any();
    in.use = between(0, 4) == 0 ? last_prompt::ignore : last_prompt::follow;
    return in;
  }

 private:
  std::size_t between(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>{low, high}(random_);
  }

  owned_prompt any() {
    constexpr std::array<token_id, 4> some_tokens{-1, 0, std::numeric_limits<token_id>::min(), 7};
    constexpr std::array<std::uint64_t, 4> some_hashes{1, ~std::uint64_t{0}, 0, std::uint64_t{1} << 63};
    auto const size = between(0, longest_);
    owned_prompt p;
    if (between(0, 2) == 0)
      for (std::size_t i = 0; i != size; ++i) p.b.push_back(some_hashes[between(0, alphabet_ - 1)]);
    else
      for (std::size_t i = 0; i != size; ++i) p.t.push_back(some_tokens[between(0, alphabet_ - 1)]);
    return p;
  }

  std::mt19937 random_;
  std::size_t alphabet_ = 1;
  std::size_t longest_ = 0;
};

TEST(PrefixWalk, AgreesWithARecursiveWalkOfAPlainTrie) {
  constexpr std::uint32_t seed = 20'240'611;
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_walks cases{seed};
  for (int i = 0; i != 20'000; ++i) {
    auto const in = cases.next();
    ASSERT_EQ(rank(in), naive_trie{in}.walk()) << "case " << i << ": " << describe(in);
  }
}

TEST(PrefixWalk, AgreesWithARecursiveWalkWhenPromptsAreManyAndLong) {
  constexpr std::uint32_t seed = 77;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random{seed};
  auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>{0, n - 1}(random); };
  for (int round = 0; round != 10; ++round) {
    walk_input in;
    in.prompts.emplace_back(tokens{});
    while (in.prompts.size() != 300) {
      // Each prompt leaves an earlier one somewhere and goes on for a while.
      auto next = in.prompts[below(in.prompts.size())].t;
      next.resize(below(next.size() + 1));
      next.resize(next.size() + below(150), static_cast<token_id>(below(3)));
      in.prompts.emplace_back(std::move(next));
    }
    for (auto const& p : in.prompts) in.arrivals.push_back(1'000 * (p.t.size() % 2) + below(1'000));
    in.last = in.prompts[below(300)];
    ASSERT_EQ(rank(in), naive_trie{in}.walk()) << "round " << round;
  }
}

}  // namespace
