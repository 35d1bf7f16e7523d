// Requests from their arrival to the end of their reply, with an engine that does what the test says.

#include "fake_exchange.hpp"
#include "scripted_engine.hpp"
#include "service.hpp"

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

namespace {

using kvlane::errc;
using nlohmann::json;
using server::finish_reason;
using server::prefilled;
using server::room_needed;
using server::test::fake_exchange;
using server::test::scripted_engine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class Service : public testing::Test {
 protected:
  using client = std::shared_ptr<fake_exchange>;

  void open(kvlane::limits const& l) {
    server::service_settings s;
    s.limits = l;
    s.context_tokens = context_tokens;
    s.growth_step = 4;
    s.model = "m";
    s.quiet = true;
    service_.emplace(s, context_.get_executor(), engine_);
  }

  /// Prompts are given as numbers of tokens.
  client post(std::size_t prompt_tokens, json more = json::object(), std::string timeout = {}) {
    json body{{"model", "m"}, {"prompt", std::vector<int>(prompt_tokens, 50)}, {"ignore_eos", true}};
    body.update(more);
    auto const c = std::make_shared<fake_exchange>();
    service_->handle({.method = "POST",
                      .path = "/v1/completions",
                      .body = body.dump(),
                      .authorization = {},
                      .client_timeout = std::move(timeout)},
                     c);
    settle();
    return c;
  }
  client stream(std::size_t prompt_tokens, json more = json::object()) {
    more["stream"] = true;
    return post(prompt_tokens, std::move(more));
  }
  json page(std::string const& path, int status = 200) {
    auto const c = std::make_shared<fake_exchange>();
    service_->handle({.method = "GET", .path = path, .body = {}, .authorization = {}, .client_timeout = {}}, c);
    EXPECT_EQ(c->whole.value().status, status);
    return json::parse(c->whole.value().body);
  }

  /// Lets everything happen that can.
  void settle() {
    context_.restart();
    context_.poll();
  }
  void leave(client const& c) {
    c->leave();
    settle();
  }
  void make_tokens(kvlane::lane_id lane, std::uint32_t count) {
    engine_.make_tokens(lane, count);
    settle();
  }
  void need_room(kvlane::lane_id lane) {
    engine_.tell(lane, room_needed{});
    settle();
  }
  void end(kvlane::lane_id lane) {
    engine_.end(lane);
    settle();
  }

  kvlane::queue_snapshot snapshot() { return service_->queue().snapshot(); }
  void expect_all_free() {
    auto const s = snapshot();
    EXPECT_EQ(s.lanes_busy, 0U);
    EXPECT_EQ(s.kv_tokens_used, 0U);
    EXPECT_EQ(s.waiting, 0U);
    EXPECT_THAT(service_->running(), IsEmpty());
    EXPECT_THAT(engine_.running, IsEmpty());
  }

  std::uint64_t context_tokens = 1000;
  scripted_engine engine_;
  std::optional<server::service> service_;
  asio::io_context context_;  // dies first: it holds the requests
};

// -- replies

TEST_F(Service, AWholeReplyComesAtTheEnd) {
  open({.lanes = 1});
  auto const c = post(10, {{"max_tokens", 3}});
  ASSERT_THAT(engine_.starts, SizeIs(1));
  EXPECT_EQ(engine_.starts[0].prompt.size(), 10U);
  EXPECT_EQ(engine_.starts[0].max_tokens, 3U);
  engine_.tell(0, prefilled{.cached_tokens = 8});
  make_tokens(0, 2);
  EXPECT_FALSE(c->answered());
  end(0);
  ASSERT_TRUE(c->whole);
  auto const body = json::parse(c->whole->body);
  EXPECT_EQ(body["choices"][0]["text"], " t100 t101");
  EXPECT_EQ(body["usage"], json::parse(R"({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12,
                                           "prompt_tokens_details": {"cached_tokens": 8}})"));
  expect_all_free();
}

TEST_F(Service, AStreamHasEachTokenAsItComesAndThenTheEnd) {
  open({.lanes = 1});
  auto const c = stream(10, {{"stream_options", {{"include_usage", true}}}});
  EXPECT_TRUE(c->streaming) << "its client knows at once that it has been admitted";
  make_tokens(0, 1);
  EXPECT_THAT(c->events(), SizeIs(1));
  make_tokens(0, 1);
  end(0);
  auto const events = c->events();
  ASSERT_THAT(events, SizeIs(5));
  EXPECT_THAT(events[1], HasSubstr(R"("text":" t101")"));
  EXPECT_THAT(events[2], HasSubstr(R"("finish_reason":"stop")"));
  EXPECT_THAT(events[3], HasSubstr(R"("completion_tokens":2)"));
  EXPECT_EQ(events[4], "data: [DONE]");
  EXPECT_TRUE(c->stream_ended);
  expect_all_free();
}

TEST_F(Service, NothingIsSentWhileARequestWaits) {
  open({.lanes = 1});
  post(10);
  auto const c = stream(10);
  EXPECT_FALSE(c->streaming) << "it may still be refused, and then with a status";
  end(0);
  EXPECT_TRUE(c->streaming);
  end(0);
  expect_all_free();
}

TEST_F(Service, TheNextOnTheLaneIsLeftAlone) {
  open({.lanes = 1});
  post(10);
  auto const next = post(10);
  end(0);
  EXPECT_THAT(engine_.aborts, IsEmpty()) << "the lane belongs to another request by now";
  ASSERT_THAT(engine_.running, SizeIs(1));
  end(0);
  EXPECT_TRUE(next->answered());
}

// -- refusals

TEST_F(Service, ARefusalHasItsStatusAndRetryAfterEvenWhereAStreamWasAskedFor) {
  open({.lanes = 1, .kv_capacity = 500, .max_waiting = 1});
  post(10);
  post(10);
  auto const c = stream(10);
  ASSERT_TRUE(c->whole);
  EXPECT_EQ(c->whole->status, 429);
  EXPECT_EQ(json::parse(c->whole->body)["error"],
            json::parse(R"({"message": "the line is full: 1 of 1 requests wait; lanes are short: asked 1, free 0",
                            "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"})"));
}

TEST_F(Service, APromptAboveTheContextNeverFits) {
  context_tokens = 20;
  open({.lanes = 1});
  auto const c = post(21);
  ASSERT_TRUE(c->whole);
  EXPECT_EQ(c->whole->status, 400);
  auto const error = json::parse(c->whole->body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["message"], "the prompt has 21 tokens; the context holds 20");
}

TEST_F(Service, ThePriorityIsTheQueuesToJudge) {
  open({.lanes = 1});
  auto const c = post(10, {{"priority", 16}});
  ASSERT_TRUE(c->whole);
  EXPECT_EQ(c->whole->status, 400);
  EXPECT_THAT(c->whole->body, HasSubstr("priority is 16; the highest is 15"));
}

TEST_F(Service, WhoIsDrainingTakesNothingNewAndFinishesTheRest) {
  open({.lanes = 1});
  auto const runs = post(10);
  auto const waits = post(10);
  EXPECT_EQ(page("/health")["status"], "ok");
  service_->drain();
  auto const late = post(10);
  ASSERT_TRUE(late->whole);
  EXPECT_EQ(late->whole->status, 503);
  EXPECT_THAT(late->whole->body, HasSubstr("the server is draining and takes no new requests"));
  EXPECT_EQ(page("/health", 503)["status"], "draining");
  end(0);
  end(0);
  EXPECT_EQ(runs->whole.value().status, 200);
  EXPECT_EQ(waits->whole.value().status, 200);
  expect_all_free();
}

TEST_F(Service, ClosingAnswersWhoWaitsAndWhoRunsAndAStreamEndsWithAnError) {
  open({.lanes = 2});
  auto const streams = stream(10);
  auto const runs = post(10);
  auto const waits = post(10);
  make_tokens(0, 1);
  service_->close();
  settle();
  EXPECT_EQ(waits->whole.value().status, 503);
  EXPECT_EQ(runs->whole.value().status, 503);
  EXPECT_TRUE(streams->stream_ended);
  EXPECT_EQ(json::parse(streams->events().back().substr(6))["error"]["code"], "service_unavailable");
  EXPECT_THAT(streams->stream, testing::Not(HasSubstr("[DONE]")));
  expect_all_free();
}

TEST_F(Service, TheClientsTimeoutBoundsItsWait) {
  open({.lanes = 1});
  post(10);
  post(10);
  EXPECT_EQ(service_->queue().next_deadline(), std::nullopt);
  post(10, json::object(), "20");
  auto const deadline = service_->queue().next_deadline();
  ASSERT_TRUE(deadline);
  EXPECT_LE(*deadline, std::chrono::steady_clock::now() + 20s);
}

// -- clients that leave

TEST_F(Service, AClientThatLeavesWhileItWaitsGivesItsPlaceUpAtOnce) {
  open({.lanes = 1});
  post(10);
  auto const c = post(10);
  EXPECT_EQ(snapshot().waiting, 1U);
  leave(c);
  EXPECT_EQ(snapshot().waiting, 0U);
  EXPECT_EQ(snapshot().counters.cancelled, 1U);
  EXPECT_FALSE(c->answered()) << "nobody is there to read it";
  EXPECT_EQ(service_->counters().replies().at(499), 1U);
  end(0);
  expect_all_free();
}

TEST_F(Service, AClientThatLeavesAStreamGivesLaneAndTokensUpAtOnce) {
  open({.lanes = 1});
  auto const c = stream(10);
  auto const next = post(10);
  make_tokens(0, 3);
  leave(c);
  EXPECT_THAT(engine_.aborts, ElementsAre(0));
  EXPECT_THAT(engine_.starts, SizeIs(2)) << "the next one runs there";
  EXPECT_FALSE(c->stream_ended);
  end(0);
  EXPECT_TRUE(next->answered());
  expect_all_free();
}

TEST_F(Service, TokensThatComeAfterTheClientHasLeftAreNoMatter) {
  open({.lanes = 1});
  auto const c = stream(10);
  engine_.make_tokens(0, 3);
  c->leave();
  engine_.make_tokens(0, 3);
  settle();
  expect_all_free();
}

// -- replies that grow

TEST_F(Service, AReplyThatOutgrowsItsReservationGetsMore) {
  open({.lanes = 1, .kv_capacity = 100, .decode_headroom = 4});
  auto const c = post(10, {{"max_tokens", 10}});
  EXPECT_EQ(snapshot().kv_tokens_used, 14U);
  EXPECT_EQ(engine_.running.at(0).g.room, 14U);
  make_tokens(0, 4);
  need_room(0);
  EXPECT_EQ(snapshot().kv_tokens_used, 18U);
  EXPECT_EQ(engine_.running.at(0).g.room, 18U);
  make_tokens(0, 4);
  need_room(0);
  EXPECT_EQ(engine_.running.at(0).g.room, 20U) << "no more than the reply can need";
  make_tokens(0, 2);
  end(0);
  EXPECT_THAT(engine_.starts, SizeIs(1));
  expect_all_free();
}

TEST_F(Service, AReplyThatCannotGrowGivesWayAndGoesOnLater) {
  open({.lanes = 2, .kv_capacity = 30, .decode_headroom = 4});
  auto const grows = stream(10, {{"max_tokens", 10}});
  auto const other = post(12, {{"max_tokens", 4}});
  EXPECT_EQ(snapshot().kv_tokens_used, 30U);
  make_tokens(0, 4);
  need_room(0);
  EXPECT_THAT(engine_.aborts, ElementsAre(0)) << "the engine is off the lane before it is given back";
  EXPECT_EQ(snapshot().kv_tokens_used, 16U);
  EXPECT_EQ(snapshot().waiting, 1U);
  EXPECT_EQ(grows->events().back(), ": preempted: waits for KV tokens");

  end(1);
  ASSERT_THAT(engine_.starts, SizeIs(3));
  auto const& again = engine_.starts.back();
  EXPECT_EQ(again.prompt.size(), 14U);
  EXPECT_EQ(again.reply_so_far, 4U);
  EXPECT_EQ(again.max_tokens, 6U);
  EXPECT_EQ(again.room, 18U);
  make_tokens(again.lane, 1);
  end(again.lane);
  EXPECT_THAT(grows->stream, HasSubstr(" t104"));
  EXPECT_EQ(grows->events().back(), "data: [DONE]");
  EXPECT_EQ(snapshot().counters.readmitted, 1U);
  expect_all_free();
}

TEST_F(Service, APreemptedClientThatLeavesGivesItsPlaceUp) {
  open({.lanes = 2, .kv_capacity = 30, .decode_headroom = 4});
  auto const grows = stream(10, {{"max_tokens", 10}});
  post(12, {{"max_tokens", 4}});
  make_tokens(0, 4);
  need_room(0);
  EXPECT_EQ(snapshot().waiting, 1U);
  leave(grows);
  EXPECT_EQ(snapshot().waiting, 0U);
  end(1);
  expect_all_free();
}

TEST_F(Service, AStreamThatCanNeverGoOnEndsWithAnError) {
  open({.lanes = 1, .kv_capacity = 16, .decode_headroom = 4});
  auto const c = stream(10, {{"max_tokens", 10}});
  make_tokens(0, 4);
  need_room(0);
  EXPECT_TRUE(c->stream_ended);
  auto const error = json::parse(c->events().back().substr(6))["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["message"], "the request needs 18 KV tokens; the cache holds 16");
  expect_all_free();
}

TEST_F(Service, APreemptedStreamIsToldWhenTheServerCloses) {
  open({.lanes = 2, .kv_capacity = 30, .decode_headroom = 4});
  auto const grows = stream(10, {{"max_tokens", 10}});
  post(12, {{"max_tokens", 4}});
  make_tokens(0, 4);
  need_room(0);
  service_->close();
  settle();
  EXPECT_TRUE(grows->stream_ended);
  EXPECT_EQ(json::parse(grows->events().back().substr(6))["error"]["code"], "service_unavailable");
  expect_all_free();
}

// -- pages

TEST_F(Service, TheQueuePageShowsWhoWaitsAndWhoRuns) {
  open({.lanes = 1, .kv_capacity = 100, .decode_headroom = 4});
  post(10, {{"max_tokens", 10}});
  make_tokens(0, 2);
  post(20, {{"max_tokens", 2}});
  post(30, {{"max_tokens", 2}, {"priority", 3}});
  auto const q = page("/debug/queue");
  EXPECT_EQ(q["lanes_busy"], 1);
  EXPECT_EQ(q["kv_tokens_used"], 14);
  EXPECT_EQ(q["waiting"], 2);
  ASSERT_THAT(q["running"], SizeIs(1));
  EXPECT_EQ(q["running"][0]["tag"], 1);
  EXPECT_EQ(q["running"][0]["reply_tokens"], 2);
  ASSERT_THAT(q["line"], SizeIs(2));
  EXPECT_EQ(q["line"][0]["tag"], 3);
  EXPECT_EQ(q["line"][0]["place"], 0);
  EXPECT_EQ(q["line"][0]["priority"], 3);
  EXPECT_EQ(q["line"][0]["demand_tokens"], 32);
  EXPECT_EQ(q["line"][0]["waits_for"], "lane");
  EXPECT_EQ(q["line"][1]["tag"], 2);
  EXPECT_TRUE(q["line"][1].contains("waited_ms"));
  EXPECT_EQ(q["line"][1]["overtaken"], 0);
  end(0);
  end(0);
  end(0);
  expect_all_free();
}

TEST_F(Service, ModelsAreListed) {
  open({.lanes = 1});
  EXPECT_EQ(page("/v1/models")["data"][0]["id"], "m");
}

TEST_F(Service, PrometheusSeesTheQueueAndWhatTheServerCounts) {
  open({.lanes = 1});
  post(10);
  engine_.tell(0, prefilled{.cached_tokens = 8});
  make_tokens(0, 3);
  end(0);
  post(2000);
  auto const c = std::make_shared<fake_exchange>();
  service_->handle({.method = "GET", .path = "/metrics", .body = {}, .authorization = {}, .client_timeout = {}}, c);
  auto const& text = c->whole.value().body;
  EXPECT_THAT(text, HasSubstr("\nkvlane_leases_released_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nkvlane_server_replies_total{status=\"200\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nkvlane_server_replies_total{status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nkvlane_server_prompt_tokens_total 10\n"));
  EXPECT_THAT(text, HasSubstr("\nkvlane_server_prompt_tokens_cached_total 8\n"));
  EXPECT_THAT(text, HasSubstr("\nkvlane_server_reply_tokens_total 3\n"));
}

TEST_F(Service, WhatIsNotThereIsNotFound) {
  open({.lanes = 1});
  EXPECT_THAT(page("/v2/models", 404)["error"]["message"], HasSubstr("there is no /v2/models"));
  EXPECT_THAT(page("/v1/completions", 405)["error"]["message"], HasSubstr("GET is not a method of /v1/completions"));
}

}  // namespace
