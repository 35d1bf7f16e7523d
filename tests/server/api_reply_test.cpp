#include "api_reply.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>

namespace {

using nlohmann::json;
using server::api;
using server::finish_reason;
using server::reply_writer;

reply_writer writer(api kind, bool usage = false) {
  return reply_writer{{.kind = kind, .number = 7, .model = "m", .created = 1700000000, .with_usage = usage}};
}

/// The JSON of one event, which ends with an empty line.
json data_of(std::string const& event) {
  EXPECT_TRUE(event.starts_with("data: {")) << event;
  EXPECT_TRUE(event.ends_with("}\n\n")) << event;
  EXPECT_EQ(event.find('\n'), event.size() - 2) << "an event of one line";
  return json::parse(event.substr(6));
}

TEST(ApiReply, AWholeChatHasAMessageAndAUsage) {
  auto const reply = json::parse(writer(api::chat).whole(
      "so be it", finish_reason::stop, {.prompt_tokens = 20, .cached_tokens = 16, .reply_tokens = 3}));
  EXPECT_EQ(reply, json::parse(R"({
    "id": "chatcmpl-7", "object": "chat.completion", "created": 1700000000, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "so be it", "refusal": null},
                 "logprobs": null, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23,
              "prompt_tokens_details": {"cached_tokens": 16}}})"));
}

TEST(ApiReply, AWholeTextHasAText) {
  auto const reply =
      json::parse(writer(api::text).whole(" so", finish_reason::length, {.prompt_tokens = 1, .reply_tokens = 1}));
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["id"], "cmpl-7");
  EXPECT_EQ(reply["choices"],
            json::parse(R"([{"index": 0, "text": " so", "logprobs": null, "finish_reason": "length"}])"));
}

TEST(ApiReply, AStreamedChatBeginsWithTheRole) {
  EXPECT_EQ(data_of(writer(api::chat).first_event()), json::parse(R"({
    "id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1700000000, "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null}]})"));
  EXPECT_EQ(writer(api::text).first_event(), "");
}

TEST(ApiReply, EachTokenIsAnEvent) {
  EXPECT_EQ(
      data_of(writer(api::chat).text_event(" \"so\"\n"))["choices"],
      json::parse(R"([{"index": 0, "delta": {"content": " \"so\"\n"}, "logprobs": null, "finish_reason": null}])"));
  EXPECT_EQ(data_of(writer(api::text).text_event(" so"))["choices"],
            json::parse(R"([{"index": 0, "text": " so", "logprobs": null, "finish_reason": null}])"));
}

TEST(ApiReply, TheLastEventSaysWhyItEnds) {
  EXPECT_EQ(data_of(writer(api::chat).last_event(finish_reason::length))["choices"],
            json::parse(R"([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": "length"}])"));
  EXPECT_EQ(data_of(writer(api::text).last_event(finish_reason::stop))["choices"],
            json::parse(R"([{"index": 0, "text": "", "logprobs": null, "finish_reason": "stop"}])"));
}

TEST(ApiReply, UsageComesOnlyIfAskedFor) {
  EXPECT_EQ(writer(api::chat).usage_event({.prompt_tokens = 2}), "");
  EXPECT_FALSE(data_of(writer(api::chat).text_event("x")).contains("usage"));

  auto const asked = writer(api::chat, true);
  EXPECT_EQ(data_of(asked.first_event())["usage"], nullptr);
  EXPECT_EQ(data_of(asked.text_event("x"))["usage"], nullptr);
  auto const last = data_of(asked.usage_event({.prompt_tokens = 2, .cached_tokens = 0, .reply_tokens = 5}));
  EXPECT_EQ(last["choices"], json::array());
  EXPECT_EQ(last["usage"]["total_tokens"], 7);
}

TEST(ApiReply, CommentsAndErrorsAreEventsToo) {
  EXPECT_EQ(server::comment_event("keep-alive"), ": keep-alive\n\n");
  EXPECT_EQ(server::error_event(R"({"error":{}})"), "data: {\"error\":{}}\n\n");
  EXPECT_EQ(server::done_event, "data: [DONE]\n\n");
}

TEST(ApiReply, AnErrorHasTheShapeOfTheOpenAiApi) {
  auto const reply = server::to_http(
      server::api_error{.status = 404, .message = "no 'x'", .param = "model", .code = "model_not_found"});
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(
      reply.body,
      R"({"error":{"message":"no 'x'","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
  auto const plain = server::to_http(server::api_error{.status = 400, .message = "no", .param = {}, .code = {}});
  EXPECT_EQ(plain.body, R"({"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}})");
}

TEST(ApiReply, AWrongByteInAModelsNameDoesNotLoseTheReply) {
  auto const reply = server::to_http(server::api_error{.status = 404, .message = "no '\xff'", .param = {}, .code = {}});
  EXPECT_EQ(json::parse(reply.body)["error"]["message"], "no '\xEF\xBF\xBD'");
}

}  // namespace
