// The modelled engine, driven by an io_context and so fast that its steps take no time.

#include "chat_template.hpp"
#include "model_engine.hpp"

#include <asio/io_context.hpp>
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace {

using kvlane::lane_id;
using server::ended;
using server::engine_event;
using server::finish_reason;
using server::generation;
using server::model_engine;
using server::prefilled;
using server::room_needed;
using server::token_ids;
using server::token_made;

class ModelEngine : public testing::Test {
 protected:
  /// What has been told about a lane.
  struct heard {
    std::vector<std::size_t> kinds;  // indices of engine_event
    std::string text;
    token_ids tokens;
    std::uint64_t cached = 0;
    std::optional<ended> end;
    std::uint32_t rooms_needed = 0;
  };

  static generation a_generation(lane_id lane, token_ids prompt, std::uint32_t max_tokens) {
    generation g;
    g.lane = lane;
    g.prompt = std::move(prompt);
    g.max_tokens = max_tokens;
    g.room = 100'000;
    g.ends_at_max_tokens = true;
    return g;
  }

  heard& start(generation g) {
    auto& h = heard_[++runs_];
    engine_.start(std::move(g), [&h](engine_event e) {
      h.kinds.push_back(e.index());
      if (auto const* const p = std::get_if<prefilled>(&e)) h.cached = p->cached_tokens;
      if (auto const* const t = std::get_if<token_made>(&e)) {
        h.text += t->text;
        h.tokens.push_back(t->id);
      }
      if (std::holds_alternative<room_needed>(e)) ++h.rooms_needed;
      if (auto const* const end = std::get_if<ended>(&e)) h.end = *end;
    });
    return h;
  }

  /// Runs until nothing runs any more.
  void run() {
    context_.restart();
    context_.run();
  }
  void run_until(auto const& done) {
    context_.restart();
    for (auto turns = 0; !done(); ++turns) {
      ASSERT_LT(turns, 10'000);
      ASSERT_NE(context_.run_one(), 0U) << "the engine rests";
    }
  }

  static token_ids prompt_of_length(std::size_t n, kvlane::token_id first = 100) {
    token_ids ids(n);
    for (auto& id : ids) id = first++;
    return ids;
  }

  asio::io_context context_;
  model_engine engine_{context_.get_executor(), {.lanes = 4, .cache_tokens = 1024, .speed = 1e12}};
  int runs_ = 0;
  std::map<int, heard> heard_;
};

TEST_F(ModelEngine, TellsOfThePrefillThenOfEachTokenThenOfTheEnd) {
  auto const& h = start(a_generation(0, prompt_of_length(40), 3));
  run();
  EXPECT_THAT(h.kinds, testing::ElementsAre(0, 1, 1, 1, 3));
  ASSERT_TRUE(h.end);
  EXPECT_EQ(h.end->why, finish_reason::length);
}

TEST_F(ModelEngine, SaysNothingInsideStart) {
  auto const& h = start(a_generation(0, prompt_of_length(4), 3));
  EXPECT_TRUE(h.kinds.empty());
}

TEST_F(ModelEngine, RestsWhenNothingRuns) {
  start(a_generation(0, prompt_of_length(4), 3));
  run();
  EXPECT_EQ(context_.poll(), 0U) << "run() came back, so no timer was left";
}

TEST_F(ModelEngine, EqualPromptsHaveEqualReplies) {
  auto const& a = start(a_generation(0, prompt_of_length(20), 30));
  auto const& b = start(a_generation(1, prompt_of_length(20), 30));
  auto const& c = start(a_generation(2, prompt_of_length(20, 101), 30));
  run();
  EXPECT_EQ(a.text, b.text);
  EXPECT_NE(a.text, c.text);
}

TEST_F(ModelEngine, ARepliesTextIsMadeOfItsTokens) {
  std::vector<server::chat_message> const talk{{server::role::user, "Hi"}};
  auto const& h = start(a_generation(0, server::prompt_of(talk), 100));
  run();
  EXPECT_EQ(server::tokenize(h.text), h.tokens);
}

TEST_F(ModelEngine, EndsByItselfUnlessToldNotTo) {
  auto g = a_generation(0, prompt_of_length(20), 10'000);
  g.ends_at_max_tokens = false;
  auto const& h = start(std::move(g));
  run();
  ASSERT_TRUE(h.end);
  EXPECT_EQ(h.end->why, finish_reason::stop);
  EXPECT_LT(h.tokens.size(), 200U);
}

TEST_F(ModelEngine, AllLanesShareItsSteps) {
  auto const& a = start(a_generation(0, prompt_of_length(20), 50));
  auto const& b = start(a_generation(3, prompt_of_length(30), 50));
  run_until([&] { return a.tokens.size() == 10; });
  EXPECT_EQ(b.tokens.size(), 10U);
}

TEST_F(ModelEngine, ALateOneJoinsAtTheNextStep) {
  auto const& a = start(a_generation(0, prompt_of_length(20), 50));
  run_until([&] { return a.tokens.size() == 10; });
  auto const& b = start(a_generation(1, prompt_of_length(30), 50));
  run_until([&] { return b.tokens.size() == 10; });
  EXPECT_EQ(a.tokens.size(), 21U) << "the step that went on, and ten together";
}

TEST_F(ModelEngine, StandsStillAtTheEndOfItsRoomAndGoesOnWithMore) {
  auto g = a_generation(0, prompt_of_length(20), 30);
  g.room = 25;
  auto const& h = start(std::move(g));
  run();
  EXPECT_EQ(h.tokens.size(), 5U);
  EXPECT_EQ(h.rooms_needed, 1U);
  EXPECT_FALSE(h.end);
  engine_.extend(0, 27);
  run();
  EXPECT_EQ(h.tokens.size(), 7U);
  EXPECT_EQ(h.rooms_needed, 2U);
  engine_.extend(0, 50);
  run();
  EXPECT_EQ(h.tokens.size(), 30U);
  EXPECT_TRUE(h.end);
}

TEST_F(ModelEngine, OneThatStandsStillDoesNotHoldUpTheOthers) {
  auto g = a_generation(0, prompt_of_length(20), 30);
  g.room = 21;
  auto const& still = start(std::move(g));
  auto const& other = start(a_generation(1, prompt_of_length(20), 30));
  run();
  EXPECT_EQ(still.tokens.size(), 1U);
  EXPECT_TRUE(other.end);
}

TEST_F(ModelEngine, AnAbortedOneIsHeardOfNoMoreAndItsLaneCanBeUsedAtOnce) {
  auto const& a = start(a_generation(0, prompt_of_length(20), 50));
  run_until([&] { return a.tokens.size() == 10; });
  engine_.abort(0);
  auto const& b = start(a_generation(0, prompt_of_length(30), 5));
  run();
  EXPECT_EQ(a.tokens.size(), 10U);
  EXPECT_FALSE(a.end);
  EXPECT_TRUE(b.end);
  engine_.abort(0);
}

TEST_F(ModelEngine, AReplyGoesOnAfterPreemptionAsIfNothingHadBeen) {
  auto const& whole = start(a_generation(0, prompt_of_length(20), 30));
  auto const& first = start(a_generation(1, prompt_of_length(20), 30));
  run_until([&] { return first.tokens.size() == 12; });
  engine_.abort(1);
  auto prompt = prompt_of_length(20);
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  auto rest = a_generation(2, prompt, 18);
  rest.reply_so_far = 12;
  auto const& second = start(std::move(rest));
  run();
  EXPECT_EQ(first.text + second.text, whole.text);
}

TEST_F(ModelEngine, AReplyOfNoTokensEndsAfterThePrefill) {
  auto const& h = start(a_generation(0, prompt_of_length(20), 0));
  run();
  EXPECT_THAT(h.kinds, testing::ElementsAre(0, 3));
}

// -- the prefix cache

TEST_F(ModelEngine, CachesTheWholeBlocksOfWhatItHasComputed) {
  auto const prompt = prompt_of_length(40);
  EXPECT_EQ(engine_.cached_tokens(prompt), 0U);
  start(a_generation(0, prompt, 1));
  run();
  EXPECT_EQ(engine_.cached_tokens(prompt), 32U) << "two blocks of 16";
  auto other = prompt;
  other[20] = 7;
  EXPECT_EQ(engine_.cached_tokens(other), 16U);
}

TEST_F(ModelEngine, TellsHowMuchOfAPromptItFoundThere) {
  start(a_generation(0, prompt_of_length(40), 1));
  run();
  auto const& again = start(a_generation(0, prompt_of_length(50), 1));
  auto const& same = start(a_generation(1, prompt_of_length(32), 1));
  run();
  EXPECT_EQ(again.cached, 32U);
  EXPECT_EQ(again.end->sample.prompt_tokens, 18U) << "those it computed";
  EXPECT_EQ(same.cached, 31U) << "one token of a prompt is always computed";
}

TEST_F(ModelEngine, CachesRepliesSoThatTheNextTurnFindsThem) {
  auto const& h = start(a_generation(0, prompt_of_length(20), 28));
  run();
  auto next_turn = prompt_of_length(20);
  next_turn.insert(next_turn.end(), h.tokens.begin(), h.tokens.end());
  EXPECT_EQ(engine_.cached_tokens(next_turn), 48U);
}

TEST_F(ModelEngine, ItsEpochMovesWhenTheCacheChangesAndOnlyThen) {
  auto const before = engine_.cache_epoch();
  start(a_generation(0, prompt_of_length(40), 1));
  run();
  auto const after = engine_.cache_epoch();
  EXPECT_NE(after, before);
  start(a_generation(0, prompt_of_length(40), 1));
  run();
  EXPECT_EQ(engine_.cache_epoch(), after);
}

TEST_F(ModelEngine, DropsWhatWasUsedLeastRecently) {
  start(a_generation(0, prompt_of_length(512, 1000), 1));
  run();
  start(a_generation(0, prompt_of_length(512, 3000), 1));
  run();
  start(a_generation(0, prompt_of_length(512, 5000), 1));
  run();
  EXPECT_EQ(engine_.cached_tokens(prompt_of_length(512, 1000)), 0U);
  EXPECT_EQ(engine_.cached_tokens(prompt_of_length(512, 3000)), 512U);
  EXPECT_EQ(engine_.cached_tokens(prompt_of_length(512, 5000)), 512U);
}

// -- what it measures

TEST_F(ModelEngine, ASampleCountsWhatWasComputedInEachPhase) {
  auto const& h = start(a_generation(0, prompt_of_length(40), 8));
  run();
  ASSERT_TRUE(h.end);
  EXPECT_EQ(h.end->sample.prompt_tokens, 40U);
  EXPECT_EQ(h.end->sample.decode_tokens, 7U) << "the first token comes with the prefill";
  EXPECT_GT(h.end->sample.prefill.count(), 0.0);
  EXPECT_GT(h.end->sample.decode.count(), 0.0);
}

}  // namespace
