#include "chat_template.hpp"
#include "tokenizer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

namespace {

using server::chat_message;
using server::prompt_of;
using server::role;
using server::token_ids;
using server::tokenize;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Tokenizer, AWordIsATokenWithTheSpaceBeforeIt) {
  EXPECT_THAT(tokenize("Hello, world"), SizeIs(3));
  EXPECT_THAT(tokenize("Hello,  world"), SizeIs(4)) << "only one space belongs to the word";
  EXPECT_THAT(tokenize(" world"), SizeIs(1));
  EXPECT_NE(tokenize(" world"), tokenize("world"));
  EXPECT_THAT(tokenize(""), IsEmpty());
}

TEST(Tokenizer, ALongWordIsSeveralTokens) {
  EXPECT_THAT(tokenize("abcdefgh"), SizeIs(1));
  EXPECT_THAT(tokenize("abcdefghi"), SizeIs(2));
  EXPECT_THAT(tokenize(" abcdefgh"), SizeIs(1)) << "the space is no letter";
  EXPECT_THAT(tokenize("donaudampfschifffahrt"), SizeIs(3));
}

TEST(Tokenizer, EveryByteCounts) {
  EXPECT_THAT(tokenize("\n\n"), SizeIs(2));
  EXPECT_THAT(tokenize("?!"), SizeIs(2));
  EXPECT_THAT(tokenize("Grüße"), SizeIs(1)) << "bytes above 127 are letters";
  EXPECT_THAT(tokenize("a "), SizeIs(2)) << "a space at the end has no word";
}

TEST(Tokenizer, EqualTextsHaveEqualIds) {
  EXPECT_EQ(tokenize("to be or not to be"), tokenize("to be or not to be"));
  auto const ids = tokenize("x to be or not to be");
  EXPECT_EQ(ids[1], ids[5]);
  EXPECT_EQ(ids[2], ids[6]);
}

TEST(Tokenizer, IdsOfTextAreNeverMarkers) {
  std::string text;
  for (auto i = 0; i != 5000; ++i) text += " w" + std::to_string(i);
  auto const ids = tokenize(text);
  EXPECT_THAT(ids,
              testing::Each(testing::AllOf(testing::Ge(server::first_text_token), testing::Lt(server::token_id_end))));
  EXPECT_GT(std::set<kvlane::token_id>(ids.begin(), ids.end()).size(), 4700U) << "few texts share an id";
}

TEST(Tokenizer, TextsThatBeginAlikeHaveIdsThatBeginAlike) {
  auto const a = tokenize("You are a helpful assistant. What is a lane?");
  auto const b = tokenize("You are a helpful assistant. What is a lease?");
  auto const [end, other] = std::ranges::mismatch(a, b);
  EXPECT_EQ(end - a.begin(), 10) << "up to the last word";
}

TEST(ChatTemplate, PutsEachMessageBetweenMarkersAndAsksForAReply) {
  std::vector<chat_message> const talk{{role::system, "Be brief"}, {role::user, "Hi"}};
  token_ids const expected{server::marker_of(role::system), tokenize("Be").front(),
                           tokenize(" brief").front(),      server::end_of_message,
                           server::marker_of(role::user),   tokenize("Hi").front(),
                           server::end_of_message,          server::marker_of(role::assistant)};
  EXPECT_EQ(prompt_of(talk), expected);
}

TEST(ChatTemplate, AConversationBeginsWithThePromptAndTheReplyThatItGoesOnFrom) {
  std::vector<chat_message> talk{{role::user, "Hi"}};
  auto before = prompt_of(talk);
  server::append_tokens(before, "good day.");
  talk.push_back({role::assistant, "good day."});
  talk.push_back({role::user, "What now?"});
  auto const after = prompt_of(talk);
  ASSERT_GT(after.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
}

}  // namespace
