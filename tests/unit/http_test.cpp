#include <kvlane/http.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kvlane::blocked_on;
using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::http_reply;
using kvlane::http_table;
using kvlane::invalid_field;
using kvlane::refusal_cause;
using kvlane::refusal_facts;
using kvlane::rejection;
using kvlane::to_http;

rejection refused(errc code, std::optional<fractional_ms> retry_after = 2400ms) {
  return rejection{refusal_facts{.code = code, .retry_after = retry_after}};
}

nlohmann::json error_of(http_reply const& reply) {
  auto const body = nlohmann::json::parse(reply.body);
  EXPECT_EQ(body.size(), 1U) << reply.body;
  auto error = body.at("error");
  EXPECT_EQ(error.size(), 4U) << reply.body;
  EXPECT_TRUE(error.at("param").is_null()) << reply.body;
  return error;
}

struct row {
  errc code;
  int status;
  std::string type;
  std::string openai_code;
  bool retry_after;
};

std::vector<row> const contract{
    {errc::invalid_request, 400, "invalid_request_error", "invalid_request_error", false},
    {errc::never_fits, 400, "invalid_request_error", "context_length_exceeded", false},
    {errc::would_wait, 429, "rate_limit_error", "rate_limit_exceeded", true},
    {errc::queue_full, 429, "rate_limit_error", "rate_limit_exceeded", true},
    {errc::would_time_out, 429, "rate_limit_error", "rate_limit_exceeded", true},
    {errc::timed_out, 429, "rate_limit_error", "rate_limit_exceeded", true},
    {errc::cancelled, 499, "invalid_request_error", "request_cancelled", false},
    {errc::shutting_down, 503, "server_error", "service_unavailable", false},
    {errc::no_longer_fits, 503, "server_error", "service_unavailable", false},
};

TEST(ToHttp, TellsEveryRefusalByTheTable) {
  EXPECT_EQ(contract.size(), 9U) << "every code has a row";
  for (auto const& r : contract) {
    SCOPED_TRACE(kvlane::make_error_code(r.code).message());
    auto const reply = to_http(refused(r.code));
    EXPECT_EQ(reply.status, r.status);
    EXPECT_EQ(reply.retry_after, r.retry_after ? std::optional{3s} : std::nullopt);
    EXPECT_EQ(reply.should_retry, std::nullopt);
    auto const error = error_of(reply);
    EXPECT_EQ(error.at("type"), r.type);
    EXPECT_EQ(error.at("code"), r.openai_code);
    EXPECT_EQ(error.at("message"), refused(r.code).message());
  }
}

TEST(ToHttp, SaysNothingAboutComingBackWhereNothingIsKnown) {
  for (auto const& r : contract) {
    auto const reply = to_http(refused(r.code, std::nullopt));
    EXPECT_EQ(reply.retry_after, std::nullopt);
    EXPECT_EQ(reply.should_retry, std::nullopt);
  }
}

TEST(ToHttp, TellsClientsToGiveUpWhereTheWaitIsLongerThanTheyCanBeTold) {
  EXPECT_EQ(to_http(refused(errc::queue_full, 60'000ms)).should_retry, std::nullopt);
  EXPECT_EQ(to_http(refused(errc::queue_full, 60'000ms)).retry_after, 60s);
  EXPECT_EQ(to_http(refused(errc::queue_full, 60'000.5ms)).should_retry, false);
  EXPECT_EQ(to_http(refused(errc::queue_full, 60'000.5ms)).retry_after, 60s);
  EXPECT_EQ(to_http(refused(errc::would_time_out, 1h)).should_retry, false);
}

TEST(ToHttp, DoesNotTalkOfRetryingWhereComingBackDoesNotHelp) {
  EXPECT_EQ(to_http(refused(errc::never_fits, 1h)).should_retry, std::nullopt);
  EXPECT_EQ(to_http(refused(errc::cancelled, 1h)).should_retry, std::nullopt);
}

TEST(ToHttp, WritesTheBodyOfAFullLine) {
  auto const reply = to_http(rejection{{.code = errc::queue_full,
                                        .blocked = blocked_on::tokens,
                                        .asked_tokens = 528,
                                        .free_tokens = 24,
                                        .waiting = 16,
                                        .max_waiting = 16,
                                        .retry_after = 1ms}});
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.retry_after, 1s);
  EXPECT_EQ(
      reply.body,
      R"({"error":{"message":"the line is full: 16 of 16 requests wait; KV tokens are short: asked 528, free 24",)"
      R"("type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}})");
}

TEST(ToHttp, WritesTheBodyOfAPromptThatIsTooLong) {
  EXPECT_EQ(
      to_http(
          rejection{
              {.code = errc::never_fits, .cause = refusal_cause::context, .asked_tokens = 2048, .kv_capacity = 1024}})
          .body,
      R"({"error":{"message":"the prompt has 2048 tokens; the context holds 1024",)"
      R"("type":"invalid_request_error","param":null,"code":"context_length_exceeded"}})");
}

TEST(ToHttp, WritesTheBodyOfAWaitThatWouldBeTooLong) {
  EXPECT_EQ(to_http(rejection{{.code = errc::would_time_out, .predicted_wait = 900ms, .limit = 500ms}}).body,
            R"({"error":{"message":"the predicted wait of 900 ms is above the limit of 500 ms",)"
            R"("type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}})");
}

TEST(ToHttp, WritesTheBodyOfAnInvalidRequest) {
  EXPECT_EQ(to_http(rejection{{.field = invalid_field::priority, .field_value = 16, .field_bound = 15}}).body,
            R"({"error":{"message":"priority is 16; the highest is 15",)"
            R"("type":"invalid_request_error","param":null,"code":"invalid_request_error"}})");
}

TEST(ToHttp, WritesTheBodyOfAServerThatDrains) {
  EXPECT_EQ(to_http(rejection{{.code = errc::shutting_down, .cause = refusal_cause::draining}}).body,
            R"({"error":{"message":"the server is draining and takes no new requests",)"
            R"("type":"server_error","param":null,"code":"service_unavailable"}})");
}

TEST(HttpTable, AnyRowCanBeReplaced) {
  http_table table;
  table[errc::queue_full].status = 503;
  auto const reply = to_http(refused(errc::queue_full), table);
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.retry_after, 3s);
  EXPECT_EQ(error_of(reply).at("code"), "rate_limit_exceeded") << "the rest of the row stays";
  EXPECT_EQ(to_http(refused(errc::would_wait), table).status, 429) << "and so do the others";
  EXPECT_EQ(to_http(refused(errc::queue_full)).status, 429) << "and the table of the library";
}

TEST(HttpTable, AReplacedRowDecidesWhetherToNameAMoment) {
  http_table table;
  table[errc::queue_full].retry_after = false;
  table[errc::shutting_down].retry_after = true;
  EXPECT_EQ(to_http(refused(errc::queue_full, 1h), table).retry_after, std::nullopt);
  EXPECT_EQ(to_http(refused(errc::queue_full, 1h), table).should_retry, std::nullopt);
  EXPECT_EQ(to_http(refused(errc::shutting_down), table).retry_after, 3s);
}

TEST(HttpTable, ItsWordsAreEscaped) {
  http_table table;
  table[errc::cancelled].type = "a \"quoted\" \\ word";
  table[errc::cancelled].code = "line\nbreak\x01";
  EXPECT_EQ(to_http(rejection{{.code = errc::cancelled, .waited = 1500ms}}, table).body,
            R"({"error":{"message":"cancelled after 1500 ms in line","type":"a \"quoted\" \\ word",)"
            R"("param":null,"code":"line\nbreak\u0001"}})");
}

TEST(HttpTable, WordsThatAreNoTextDoNotStopTheReply) {
  http_table table;
  table[errc::cancelled].code = "gone\xff";
  EXPECT_EQ(error_of(to_http(refused(errc::cancelled), table)).at("code"), "gone\uFFFD");
}

TEST(HttpTable, CanBeReadWithoutChangingIt) {
  http_table const table;
  EXPECT_EQ(table[errc::no_longer_fits].status, 503);
  EXPECT_EQ(table[errc::no_longer_fits].code, "service_unavailable");
  EXPECT_FALSE(table[errc::no_longer_fits].retry_after);
}

}  // namespace
