// Predictions that live on the progress of those who run.

#include "support/queue_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace {

using kvlane::errc;
using kvlane::predictor;
using namespace std::chrono_literals;

class QueueProgress : public kvlane::test::queue_fixture<> {
 protected:
  /// Someone who runs and makes a token each 10 ms, for two seconds.
  auto& running() {
    auto& c = send({.prompt_tokens = 1, .max_tokens = 500});
    for (std::uint64_t made = 1; made <= 200; ++made) {
      advance(10ms);
      c.lease().progress(made);
    }
    return c;
  }
  [[nodiscard]] std::optional<double> predicted_seconds() {
    auto const wait = queue().predicted_wait();
    return wait ? std::optional{std::chrono::duration<double>{*wait}.count()} : std::nullopt;
  }
};

TEST_F(QueueProgress, APredictionNeedsNobodyToHaveEnded) {
  open({.lanes = 1});
  running();
  send({.prompt_tokens = 1, .max_tokens = 100});
  EXPECT_NEAR(predicted_seconds().value(), (300 + 100) / 100.0, 0.1);
}

TEST_F(QueueProgress, WhoeverWouldComeTooLateIsRefusedEarly) {
  open({.lanes = 1});
  running();
  EXPECT_EQ(send({.prompt_tokens = 1, .max_tokens = 100, .max_wait = 2s}).refused(), errc::would_time_out);
  EXPECT_TRUE(send({.prompt_tokens = 1, .max_tokens = 100, .max_wait = 5s}).waits());
}

TEST_F(QueueProgress, WithoutProgressTheRatesOfCompletedRequestsCount) {
  open({.lanes = 1});
  warm_up();
  send({.prompt_tokens = 100, .max_tokens = 100});
  EXPECT_NEAR(predicted_seconds().value(), 0.2, 1e-9);
}

TEST_F(QueueProgress, TheRatesCanBeAskedForByName) {
  open({.lanes = 1, .predict_by = predictor::ewma_p95});
  running();
  EXPECT_EQ(predicted_seconds(), std::nullopt);
  queue().update([](auto& l) { l.predict_by = predictor::work_left; });
  EXPECT_NE(predicted_seconds(), std::nullopt);
}

TEST_F(QueueProgress, CompletedRepliesTeachHowLongRepliesBecome) {
  open({.lanes = 2, .kv_capacity = 100'000});
  auto& stays = running();
  EXPECT_NEAR(predicted_seconds().value(), 3, 0.1);
  for (int i = 0; i != 100; ++i) {
    auto& c = send({.prompt_tokens = 1, .max_tokens = 500});
    c.lease().complete({.prompt_tokens = 1, .decode_tokens = 250, .prefill = 1ms, .decode = 2'500ms});
  }
  EXPECT_NEAR(predicted_seconds().value(), 0.5, 0.2);
  stays.finish();
}

TEST_F(QueueProgress, OneThatIsPreemptedStartsAgainAtNothing) {
  open({.lanes = 1});
  auto& c = running();
  auto& again = readmit(c, {.prompt_tokens = 201, .max_tokens = 300});
  EXPECT_TRUE(again.runs());
  EXPECT_NEAR(predicted_seconds().value(), 3, 0.1);
}

TEST_F(QueueProgress, MoreLanesHaveRoomForTheirProgress) {
  open({.lanes = 1});
  queue().update([](auto& l) { l.lanes = 3; });
  for (int i = 0; i != 3; ++i) running();
  EXPECT_GT(predicted_seconds().value(), 0);
}

}  // namespace
