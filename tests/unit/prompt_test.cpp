#include <kvlane/prompt.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using kvlane::prompt_view;
using kvlane::shared_prompt;
using kvlane::token_id;

using tokens = std::vector<token_id>;
using blocks = std::vector<std::uint64_t>;

static_assert(std::is_nothrow_copy_constructible_v<shared_prompt>, "sharing does not allocate");
static_assert(std::is_nothrow_move_constructible_v<shared_prompt>);
static_assert(std::is_nothrow_copy_assignable_v<shared_prompt>);

tokens tokens_of(shared_prompt const& p) { return {p.view().tokens.begin(), p.view().tokens.end()}; }
blocks blocks_of(shared_prompt const& p) { return {p.view().blocks.begin(), p.view().blocks.end()}; }

TEST(PromptView, IsEmptyWhereItShowsNeitherTokensNorBlocks) {
  tokens const some_tokens{1};
  blocks const some_blocks{1};
  EXPECT_TRUE(prompt_view{}.empty());
  EXPECT_FALSE((prompt_view{.tokens = some_tokens}).empty());
  EXPECT_FALSE((prompt_view{.blocks = some_blocks}).empty());
}

TEST(PromptView, ComparesSymbolsAndNotAddresses) {
  tokens const a{1, 2, 3};
  tokens const b{1, 2, 3};
  tokens const longer{1, 2, 3, 4};
  EXPECT_EQ((prompt_view{.tokens = a}), (prompt_view{.tokens = b}));
  EXPECT_NE((prompt_view{.tokens = a}), (prompt_view{.tokens = longer}));
  EXPECT_NE((prompt_view{.tokens = a}), prompt_view{});
  EXPECT_EQ(prompt_view{}, prompt_view{});
}

TEST(PromptView, TokensNeverEqualBlocks) {
  tokens const as_tokens{1, 2, 3};
  blocks const as_blocks{1, 2, 3};
  EXPECT_NE((prompt_view{.tokens = as_tokens}), (prompt_view{.blocks = as_blocks}));
}

TEST(SharedPrompt, CopiesTheTokensItIsMadeOf) {
  tokens mine{3, -1, 2};
  shared_prompt const kept{{.tokens = mine}};
  mine.assign({9, 9, 9});
  EXPECT_EQ(tokens_of(kept), (tokens{3, -1, 2}));
  EXPECT_TRUE(kept.view().blocks.empty());
}

TEST(SharedPrompt, CopiesTheBlocksItIsMadeOf) {
  blocks mine{UINT64_MAX, 0, 7};
  shared_prompt const kept{{.blocks = mine}};
  mine.assign({9, 9, 9});
  EXPECT_EQ(blocks_of(kept), (blocks{UINT64_MAX, 0, 7}));
  EXPECT_TRUE(kept.view().tokens.empty());
}

TEST(SharedPrompt, OfNothingIsEmpty) {
  EXPECT_TRUE(shared_prompt{}.view().empty());
  EXPECT_TRUE(shared_prompt{prompt_view{}}.view().empty());
  shared_prompt const nothing;
  shared_prompt const copy = nothing;
  EXPECT_TRUE(copy.view().empty());
}

TEST(SharedPrompt, CopiesShareOnePrompt) {
  shared_prompt const one{{.tokens = tokens{1, 2, 3}}};
  shared_prompt const other = one;
  EXPECT_EQ(one.view().tokens.data(), other.view().tokens.data());
  EXPECT_EQ(other.view().tokens.size(), 3U);
}

TEST(SharedPrompt, LivesAsLongAsAnyOfItsOwners) {
  std::optional<shared_prompt> first{std::in_place, prompt_view{.tokens = tokens{1, 2, 3}}};
  shared_prompt second = *first;
  auto const view = second.view();
  first.reset();
  EXPECT_EQ((tokens{view.tokens.begin(), view.tokens.end()}), (tokens{1, 2, 3}));
  shared_prompt const third = std::move(second);
  EXPECT_EQ(third.view().tokens.data(), view.tokens.data());
}

TEST(SharedPrompt, MovedFromIsEmpty) {
  shared_prompt from{{.tokens = tokens{1}}};
  shared_prompt const to = std::move(from);
  EXPECT_TRUE(from.view().empty());
  EXPECT_EQ(tokens_of(to), tokens{1});
}

TEST(SharedPrompt, AssignmentReplacesAndMayBeToItself) {
  shared_prompt p{{.tokens = tokens{1}}};
  shared_prompt const q{{.blocks = blocks{5}}};
  p = q;
  EXPECT_EQ(blocks_of(p), blocks{5});
  EXPECT_TRUE(p.view().tokens.empty());
  auto const& same = p;
  p = same;
  EXPECT_EQ(blocks_of(p), blocks{5});
  p = shared_prompt{};
  EXPECT_TRUE(p.view().empty());
  EXPECT_EQ(blocks_of(q), blocks{5});
}

TEST(SharedPrompt, OwnersOnDifferentThreadsNeedNoLock) {
  shared_prompt const kept{{.tokens = tokens{1, 2, 3}}};
  auto const copy_and_drop = [](shared_prompt mine) {
    for (int i = 0; i != 10'000; ++i) {
      shared_prompt const copy = mine;
      if (copy.view().tokens.size() != 3) FAIL() << "round " << i;
    }
  };
  std::thread one{copy_and_drop, kept};
  std::thread other{copy_and_drop, kept};
  one.join();
  other.join();
  EXPECT_EQ(tokens_of(kept), (tokens{1, 2, 3}));
}

}  // namespace
