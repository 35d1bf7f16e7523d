#include <kvlane/token_limit.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <type_traits>

namespace {

using kvlane::errc;
using kvlane::token_limit;
using source = token_limit::source;

constexpr std::uint32_t stored_default = 4096;

token_limit asked(std::uint32_t n) { return token_limit::from_request(n, stored_default); }
token_limit not_asked(std::uint32_t server_default) { return token_limit::from_request(std::nullopt, server_default); }

static_assert(std::is_trivially_copyable_v<token_limit>);

TEST(TokenLimit, TheWholeContextIsWhatThePromptLeaves) {
  EXPECT_EQ(*token_limit::whole_context.resolve(4, 8), 4U);
  EXPECT_EQ(*token_limit::whole_context.resolve(128, 1024), 896U);
  EXPECT_EQ(*token_limit::whole_context.resolve(0, 8), 8U);
}

TEST(TokenLimit, APromptThatFillsTheContextLeavesNothing) {
  EXPECT_EQ(*token_limit::whole_context.resolve(8, 8), 0U);
  EXPECT_EQ(*asked(4).resolve(8, 8), 0U);
}

TEST(TokenLimit, AServerDefaultWithoutABoundIsTheWholeContext) {
  auto const limit = not_asked(token_limit::unlimited);
  EXPECT_EQ(limit.kind(), source::whole_context);
  EXPECT_EQ(limit, token_limit::whole_context);
  EXPECT_EQ(*limit.resolve(5, 8), 3U);
}

TEST(TokenLimit, TheServersDefaultHoldsWhereNobodyAsked) {
  EXPECT_EQ(not_asked(4096).kind(), source::server_default);
  EXPECT_EQ(*not_asked(4096).resolve(128, 32'000), 4096U);
  EXPECT_EQ(*not_asked(8192).resolve(128, 32'000), 8192U);
}

TEST(TokenLimit, TheServersDefaultIsClampedToWhatThePromptLeaves) {
  EXPECT_EQ(*not_asked(4096).resolve(128, 1024), 896U);
}

TEST(TokenLimit, AskedTokensHoldInsteadOfTheServersDefault) {
  EXPECT_EQ(asked(4).kind(), source::asked);
  EXPECT_EQ(*asked(4).resolve(4, 8), 4U);
  EXPECT_EQ(*asked(100'000).resolve(128, 1'000'000), 100'000U);
  EXPECT_EQ(*asked(0).resolve(4, 8), 0U);
}

TEST(TokenLimit, AskedTokensAreClampedToWhatThePromptLeaves) {
  EXPECT_EQ(*asked(4).resolve(5, 8), 3U);
  EXPECT_EQ(*asked(65'536).resolve(8911, 65'536), 56'625U);
}

TEST(TokenLimit, WhoAsksForTheHighestNumberHasAsked) {
  EXPECT_EQ(asked(UINT32_MAX).kind(), source::asked);
  EXPECT_EQ(*asked(UINT32_MAX).resolve(5, 8), 3U);
}

TEST(TokenLimit, APromptAboveTheContextNeverFitsAndBothAreNamed) {
  auto const refused = token_limit::whole_context.resolve(9, 8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::never_fits);
  EXPECT_EQ(refused.error().message(), "the prompt has 9 tokens; the context holds 8");
  EXPECT_EQ(refused.error().asked_tokens(), 9U);
  EXPECT_EQ(refused.error().kv_capacity(), 8U);
  EXPECT_EQ(refused.error().retry_after(), std::nullopt);
  EXPECT_EQ(not_asked(4096).resolve(2048, 1024).error().message(),
            "the prompt has 2048 tokens; the context holds 1024");
  EXPECT_EQ(asked(1).resolve(65'537, 65'536).error().message(), "the prompt has 65537 tokens; the context holds 65536");
}

TEST(TokenLimit, AContextBeyondThirtyTwoBitsIsCutToWhatAReplyCanHave) {
  EXPECT_EQ(*token_limit::whole_context.resolve(1, UINT64_MAX), UINT32_MAX);
  EXPECT_EQ(*token_limit::whole_context.resolve(1, std::uint64_t{1} << 32), UINT32_MAX);
  EXPECT_EQ(*asked(7).resolve(1, UINT64_MAX), 7U);
}

TEST(TokenLimit, ComparesByWhereItComesFromAndHowMuchItIs) {
  EXPECT_EQ(asked(7), asked(7));
  EXPECT_NE(asked(7), asked(8));
  EXPECT_NE(asked(7), not_asked(7));
  EXPECT_NE(asked(token_limit::unlimited), token_limit::whole_context);
}

}  // namespace
