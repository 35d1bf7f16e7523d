#include "api_request.hpp"
#include "chat_template.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <ostream>
#include <string>

namespace {

using server::api;
using server::api_error;
using server::completion_request;
using server::http_call;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::variant<completion_request, api_error> read(api kind, std::string body) {
  return server::read_request(
      kind, {.method = "POST", .path = "", .body = std::move(body), .authorization = {}, .client_timeout = {}}, "m");
}

completion_request read_well(api kind, std::string body) {
  auto const r = read(kind, std::move(body));
  if (auto const* const error = std::get_if<api_error>(&r)) ADD_FAILURE() << error->message;
  return std::holds_alternative<completion_request>(r) ? std::get<completion_request>(r) : completion_request{};
}

/// The fields of a chat that are all right, with others put behind them.
std::string chat_with(std::string const& more) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], )" + more + "}";
}

// -- what is understood

TEST(ApiRequest, AChatNeedsOnlyModelAndMessages) {
  auto const r = read_well(api::chat, R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})");
  std::vector<server::chat_message> const talk{{server::role::user, "Hi"}};
  EXPECT_EQ(r.prompt, server::prompt_of(talk));
  EXPECT_FALSE(r.stream);
  EXPECT_FALSE(r.include_usage);
  EXPECT_EQ(r.max_tokens, std::nullopt);
  EXPECT_EQ(r.max_wait, std::nullopt);
  EXPECT_EQ(r.priority, 0U);
  EXPECT_EQ(r.flow, 0U);
}

TEST(ApiRequest, ContentMayBeAListOfTextParts) {
  auto const parts = read_well(
      api::chat,
      R"({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "a b"}, {"type": "text", "text": " c"}]}]})");
  auto const whole = read_well(api::chat, R"({"model": "m", "messages": [{"role": "user", "content": "a b c"}]})");
  EXPECT_EQ(parts.prompt, whole.prompt);
}

TEST(ApiRequest, AnAssistantMayHaveSaidNothing) {
  auto const r = read_well(api::chat, R"({"model": "m", "messages": [{"role": "assistant", "content": null}]})");
  EXPECT_EQ(r.prompt.size(), 3U);
}

TEST(ApiRequest, APromptIsAStringOrAListOfOneOrTokens) {
  auto const ids = server::tokenize("once upon");
  EXPECT_EQ(read_well(api::text, R"({"model": "m", "prompt": "once upon"})").prompt, ids);
  EXPECT_EQ(read_well(api::text, R"({"model": "m", "prompt": ["once upon"]})").prompt, ids);
  EXPECT_EQ(read_well(api::text, R"({"model": "m", "prompt": [17, 65535]})").prompt, (server::token_ids{17, 65535}));
}

TEST(ApiRequest, TheNewerNameOfTheCeilingWins) {
  EXPECT_EQ(read_well(api::chat, chat_with(R"("max_tokens": 5)")).max_tokens, 5U);
  EXPECT_EQ(read_well(api::chat, chat_with(R"("max_tokens": 5, "max_completion_tokens": 7)")).max_tokens, 7U);
  EXPECT_EQ(read_well(api::chat, chat_with(R"("max_tokens": null)")).max_tokens, std::nullopt);
}

TEST(ApiRequest, AHugeCeilingMeansNoLimit) {
  EXPECT_EQ(read_well(api::chat, chat_with(R"("max_tokens": 18446744073709551615)")).max_tokens, 4'294'967'295U);
}

TEST(ApiRequest, StreamOptionsAskForUsage) {
  auto const r = read_well(api::chat, chat_with(R"("stream": true, "stream_options": {"include_usage": true})"));
  EXPECT_TRUE(r.stream);
  EXPECT_TRUE(r.include_usage);
}

TEST(ApiRequest, FieldsThatOnlyChangeHowTokensAreDrawnAreIgnored) {
  read_well(api::chat, chat_with(R"("temperature": 0.7, "top_p": 1, "seed": 3, "frequency_penalty": 0, "n": 1,
                                    "tools": [], "logprobs": false, "response_format": {"type": "text"})"));
}

TEST(ApiRequest, TheUserIsTheFlowAndElseTheKey) {
  auto const flow = [](std::string const& more, std::string const& key) {
    auto const r = server::read_request(
        api::chat, {.method = "POST", .path = "", .body = chat_with(more), .authorization = key, .client_timeout = {}},
        "m");
    return std::get<completion_request>(r).flow;
  };
  auto const neutral = std::string{R"("stream": false)"};
  EXPECT_EQ(flow(R"("user": "a")", "Bearer 1"), flow(R"("user": "a")", "Bearer 2"));
  EXPECT_NE(flow(R"("user": "a")", ""), flow(R"("user": "b")", ""));
  EXPECT_NE(flow(neutral, "Bearer 1"), flow(neutral, "Bearer 2"));
  EXPECT_EQ(flow(neutral, "Bearer 1"), flow(neutral, "Bearer 1"));
  EXPECT_EQ(flow(neutral, ""), 0U);
}

TEST(ApiRequest, ItWaitsALittleLessThanTheClientDoes) {
  auto const wait = [](std::string const& header) {
    auto const r = server::read_request(
        api::chat,
        {.method = "POST", .path = "", .body = chat_with(R"("n": 1)"), .authorization = {}, .client_timeout = header},
        "m");
    return std::get<completion_request>(r).max_wait;
  };
  EXPECT_EQ(wait("20"), kvlane::duration{19'800ms});
  EXPECT_EQ(wait("0"), kvlane::duration{800ms}) << "the client cut off the fraction of a second";
  EXPECT_EQ(wait("4000000000"), kvlane::duration{12h - 200ms}) << "no exchange lasts longer";
  for (auto const* const nonsense : {"", "soon", "-1", "1.5", "99999999999"})
    EXPECT_EQ(wait(nonsense), std::nullopt) << nonsense;
}

// -- what is refused

struct bad_input {
  api kind;
  std::string body;
  int status;
  std::string param;
  std::string message;
};
void PrintTo(bad_input const& b, std::ostream* out) { *out << b.body; }

class ApiRequestRefuses : public testing::TestWithParam<bad_input> {};

TEST_P(ApiRequestRefuses, AndNamesTheField) {
  auto const& bad = GetParam();
  auto const r = read(bad.kind, bad.body);
  auto const* const error = std::get_if<api_error>(&r);
  ASSERT_NE(error, nullptr) << "was accepted";
  EXPECT_EQ(error->status, bad.status);
  EXPECT_EQ(error->param, bad.param);
  EXPECT_EQ(error->message, bad.message);
}

std::string with_messages(std::string const& messages) { return R"({"model": "m", "messages": )" + messages + "}"; }
std::string with_prompt(std::string const& prompt) { return R"({"model": "m", "prompt": )" + prompt + "}"; }

INSTANTIATE_TEST_SUITE_P(
    Body, ApiRequestRefuses,
    testing::Values(bad_input{api::chat, "", 400, "", "the body is not JSON: look at byte 1"},
                    bad_input{api::chat, "{\"model\": \"m\",}", 400, "", "the body is not JSON: look at byte 15"},
                    bad_input{api::chat, "{\"model\": \"\xff\"}", 400, "", "the body is not JSON: look at byte 12"},
                    bad_input{api::chat, R"({"max_tokens": 1e400})", 400, "",
                              "the body has a number that is too large"},
                    bad_input{api::chat, "[1]", 400, "", "the body is JSON, but not an object"}));

INSTANTIATE_TEST_SUITE_P(
    Model, ApiRequestRefuses,
    testing::Values(bad_input{api::chat, "{}", 400, "model", "model is missing; this server has 'm'"},
                    bad_input{api::chat, R"({"model": 7})", 400, "model", "model is a number; a string is needed"},
                    bad_input{api::text, R"({"model": "gpt"})", 404, "model",
                              "the model 'gpt' does not exist; this server has 'm'"}));

INSTANTIATE_TEST_SUITE_P(
    Messages, ApiRequestRefuses,
    testing::Values(
        bad_input{api::chat, R"({"model": "m"})", 400, "messages", "messages is missing"},
        bad_input{api::chat, chat_with(R"("user": [])"), 400, "user", "user is an array; a string is needed"},
        bad_input{api::chat, with_messages("\"Hi\""), 400, "messages", "messages is a string; a list is needed"},
        bad_input{api::chat, with_messages("[]"), 400, "messages", "messages is empty; at least 1 message is needed"},
        bad_input{api::chat, with_messages("[3]"), 400, "messages[0]", "messages[0] is a number; an object is needed"},
        bad_input{api::chat, with_messages(R"([{"content": "x"}])"), 400, "messages[0].role",
                  "messages[0].role is missing"},
        bad_input{api::chat, with_messages(R"([{"role": "boss", "content": "x"}])"), 400, "messages[0].role",
                  "messages[0].role is 'boss'; system, developer, user, assistant or tool is needed"},
        bad_input{api::chat, with_messages(R"([{"role": "user", "content": "x"}, {"role": "user"}])"), 400,
                  "messages[1].content", "messages[1].content is missing"},
        bad_input{api::chat, with_messages(R"([{"role": "user", "content": 5}])"), 400, "messages[0].content",
                  "messages[0].content is a number; a string or a list of text parts is needed"},
        bad_input{api::chat, with_messages(R"([{"role": "user", "content": [{"type": "image_url"}]}])"), 400,
                  "messages[0].content",
                  "messages[0].content has a part that is not text; this server knows text only"}));

INSTANTIATE_TEST_SUITE_P(
    Prompt, ApiRequestRefuses,
    testing::Values(bad_input{api::text, R"({"model": "m"})", 400, "prompt", "prompt is missing"},
                    bad_input{api::text, with_prompt("\"\""), 400, "prompt", "prompt is empty"},
                    bad_input{api::text, with_prompt("[]"), 400, "prompt",
                              "prompt is neither a string, a list of one string nor a list of token ids"},
                    bad_input{api::text, with_prompt(R"(["a", "b"])"), 400, "prompt",
                              "prompt is neither a string, a list of one string nor a list of token ids"},
                    bad_input{api::text, with_prompt("[1, -1]"), 400, "prompt",
                              "prompt has the token -1; ids from 0 to 65535 are needed"},
                    bad_input{api::text, with_prompt("[1.5]"), 400, "prompt",
                              "prompt has the token 1.5; ids from 0 to 65535 are needed"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, ApiRequestRefuses,
    testing::Values(bad_input{api::chat, chat_with(R"("max_tokens": 0)"), 400, "max_tokens",
                              "max_tokens is 0; at least 1 is needed"},
                    bad_input{api::chat, chat_with(R"("max_tokens": -1)"), 400, "max_tokens",
                              "max_tokens is -1; at least 1 is needed"},
                    bad_input{api::chat, chat_with(R"("max_tokens": 2.5)"), 400, "max_tokens",
                              "max_tokens is a number with a fraction; a whole number is needed"},
                    bad_input{api::chat, chat_with(R"("max_completion_tokens": "9")"), 400, "max_completion_tokens",
                              "max_completion_tokens is a string; a whole number is needed"},
                    bad_input{api::chat, chat_with(R"("priority": -2)"), 400, "priority",
                              "priority is -2; at least 0 is needed"},
                    bad_input{api::chat, chat_with(R"("n": 2)"), 400, "n", "n is 2; this server makes 1 choice"}));

INSTANTIATE_TEST_SUITE_P(
    Options, ApiRequestRefuses,
    testing::Values(
        bad_input{api::chat, chat_with(R"("stream": "yes")"), 400, "stream",
                  "stream is a string; true or false is needed"},
        bad_input{api::chat, chat_with(R"("stream_options": {})"), 400, "stream_options",
                  "stream_options is given, but stream is not true"},
        bad_input{api::chat, chat_with(R"("stream": true, "stream_options": 1)"), 400, "stream_options",
                  "stream_options is a number; an object is needed"},
        bad_input{api::chat, chat_with(R"("stream": true, "stream_options": {"include_usage": 1})"), 400,
                  "stream_options.include_usage", "stream_options.include_usage is a number; true or false is needed"},
        bad_input{api::chat, chat_with(R"("user": 5)"), 400, "user", "user is a number; a string is needed"},
        bad_input{api::chat, chat_with(R"("stop": "\n")"), 400, "stop",
                  "stop is not supported by this server; leave it out"},
        bad_input{api::chat, chat_with(R"("tools": [{}])"), 400, "tools",
                  "tools is not supported by this server; leave it out"}));

}  // namespace
