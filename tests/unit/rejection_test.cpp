#include <kvlane/rejection.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using kvlane::blocked_on;
using kvlane::errc;
using kvlane::fractional_ms;
using kvlane::invalid_field;
using kvlane::refusal_cause;
using kvlane::refusal_facts;
using kvlane::rejection;
using std::chrono::seconds;

static_assert(std::is_trivially_copyable_v<rejection>, "it is copied into events and completions without allocating");
static_assert(rejection{refusal_facts{.tag = 7}}.tag() == 7, "usable in constant expressions");

std::string text(refusal_facts const& facts) { return rejection{facts}.message(); }

std::optional<seconds> retry_after(std::optional<fractional_ms> exact) {
  return rejection{refusal_facts{.code = errc::queue_full, .retry_after = exact}}.retry_after();
}

/// A line of 16 places that is full, with one lane busy and 24 of 1024 tokens free.
refusal_facts full_line(errc code, blocked_on blocked) {
  return {.code = code,
          .blocked = blocked,
          .free_lanes = 0,
          .asked_tokens = 528,
          .free_tokens = 24,
          .kv_capacity = 1024,
          .waiting = 16,
          .max_waiting = 16};
}

TEST(Rejection, WithoutARequestIsAnInvalidOne) {
  rejection const why;
  EXPECT_EQ(why.code(), errc::invalid_request);
  EXPECT_EQ(why.error_code(), errc::invalid_request);
  EXPECT_EQ(why.message(), "no request was made");
  EXPECT_EQ(why.retry_after(), std::nullopt);
  EXPECT_EQ(why.predicted_wait(), std::nullopt);
  EXPECT_EQ(why.blocked(), blocked_on::nothing);
}

TEST(Rejection, HandsOutTheNumbersItWasMadeOf) {
  rejection const why{{.code = errc::would_wait,
                       .blocked = blocked_on::tokens,
                       .free_lanes = 3,
                       .asked_tokens = 528,
                       .free_tokens = 24,
                       .kv_capacity = 1024,
                       .waiting = 2,
                       .max_waiting = 16,
                       .predicted_wait = 1234.5ms,
                       .waited = 1500us,
                       .tag = 99}};
  EXPECT_EQ(why.code(), errc::would_wait);
  EXPECT_EQ(why.error_code(), errc::would_wait);
  EXPECT_EQ(why.blocked(), blocked_on::tokens);
  EXPECT_EQ(why.free_lanes(), 3U);
  EXPECT_EQ(why.asked_tokens(), 528U);
  EXPECT_EQ(why.free_tokens(), 24U);
  EXPECT_EQ(why.kv_capacity(), 1024U);
  EXPECT_EQ(why.waiting(), 2U);
  EXPECT_EQ(why.max_waiting(), 16U);
  EXPECT_EQ(why.predicted_wait(), fractional_ms{1234.5});
  EXPECT_EQ(why.waited(), fractional_ms{1.5});
  EXPECT_EQ(why.tag(), 99U);
  EXPECT_EQ(why.facts().asked_tokens, 528U);
}

TEST(Rejection, EveryCodeIsItsOwnErrorCode) {
  for (auto const code :
       {errc::invalid_request, errc::never_fits, errc::shutting_down, errc::would_wait, errc::queue_full,
        errc::would_time_out, errc::timed_out, errc::cancelled, errc::no_longer_fits}) {
    rejection const why{{.code = code}};
    EXPECT_EQ(why.code(), code);
    EXPECT_EQ(why.error_code(), kvlane::make_error_code(code));
  }
}

TEST(Rejection, AnInvalidRequestNamesTheFieldAndItsValue) {
  auto const invalid = [](invalid_field field, std::uint64_t value, std::uint64_t bound) {
    return text({.code = errc::invalid_request, .field = field, .field_value = value, .field_bound = bound});
  };
  EXPECT_EQ(invalid(invalid_field::priority, 16, 15), "priority is 16; the highest is 15");
  EXPECT_EQ(invalid(invalid_field::prompt_and_prefix_blocks, 12, 3),
            "prompt has 12 tokens and prefix_blocks has 3 entries; give one of them");
  EXPECT_EQ(invalid(invalid_field::prefix_blocks_without_length, 0, 3),
            "prompt_tokens is 0, but prefix_blocks has 3 entries; say how long the prompt is");
  EXPECT_EQ(invalid(invalid_field::prompt_tokens_below_prompt, 7, 8), "prompt_tokens is 7, but prompt has 8 tokens");
  EXPECT_EQ(invalid(invalid_field::nothing_to_run, 0, 0),
            "prompt_tokens is 0, and neither prompt nor kv_demand is given; give one of them");
  EXPECT_EQ(invalid(invalid_field::saved_cost, std::uint64_t{1} << 48, (std::uint64_t{1} << 48) - 1),
            "saved_cost is 281474976710656; the highest is 281474976710655");
  EXPECT_EQ(invalid(invalid_field::lease, 0, 0), "the lease is empty or belongs to another queue");
  EXPECT_EQ(invalid(invalid_field::none, 0, 0), "no request was made");
}

TEST(Rejection, NeverFitsNamesDemandAndCapacity) {
  EXPECT_EQ(text({.code = errc::never_fits, .asked_tokens = 129, .kv_capacity = 128}),
            "the request needs 129 KV tokens; the cache holds 128");
}

TEST(Rejection, NeverFitsTheContextNamesPromptAndContext) {
  EXPECT_EQ(text({.code = errc::never_fits, .cause = refusal_cause::context, .asked_tokens = 9, .kv_capacity = 8}),
            "the prompt has 9 tokens; the context holds 8");
}

TEST(Rejection, WouldWaitNamesTheLineAndTheResourceThatIsShort) {
  auto facts = full_line(errc::would_wait, blocked_on::tokens);
  facts.waiting = 3;
  EXPECT_EQ(text(facts),
            "the request would have to wait: 3 of 16 requests wait; KV tokens are short: asked 528, free 24");
  facts.blocked = blocked_on::lane;
  EXPECT_EQ(text(facts), "the request would have to wait: 3 of 16 requests wait; lanes are short: asked 1, free 0");
}

TEST(Rejection, QueueFullNamesTheLineAndTheResourceThatIsShort) {
  EXPECT_EQ(text(full_line(errc::queue_full, blocked_on::lane)),
            "the line is full: 16 of 16 requests wait; lanes are short: asked 1, free 0");
  EXPECT_EQ(text(full_line(errc::queue_full, blocked_on::tokens)),
            "the line is full: 16 of 16 requests wait; KV tokens are short: asked 528, free 24");
  EXPECT_EQ(text(full_line(errc::queue_full, blocked_on::hold)),
            "the line is full: 16 of 16 requests wait; admissions are on hold, KV tokens: asked 528, free 24");
  EXPECT_EQ(text(full_line(errc::queue_full, blocked_on::reservation)),
            "the line is full: 16 of 16 requests wait; capacity is reserved for an overtaken request, KV tokens: "
            "asked 528, free 24");
  EXPECT_EQ(text(full_line(errc::queue_full, blocked_on::nothing)),
            "the line is full: 16 of 16 requests wait; nothing is short");
}

TEST(Rejection, ALimitOnWaitingTokensIsNamedWhereThereIsOne) {
  auto facts = full_line(errc::queue_full, blocked_on::lane);
  facts.waiting = 5;
  facts.waiting_tokens = 2000;
  facts.max_waiting_tokens = 2048;
  EXPECT_EQ(text(facts),
            "the line is full: 5 of 16 requests wait with 2000 of 2048 tokens; lanes are short: asked 1, free 0");
}

TEST(Rejection, WouldTimeOutNamesPredictionAndLimitToTheMillisecond) {
  EXPECT_EQ(text({.code = errc::would_time_out, .predicted_wait = 200ms, .limit = 199ms}),
            "the predicted wait of 200 ms is above the limit of 199 ms");
  EXPECT_EQ(text({.code = errc::would_time_out, .predicted_wait = 82'400ms, .limit = 60s}),
            "the predicted wait of 82400 ms is above the limit of 60000 ms");
}

TEST(Rejection, HalfASecondIsFiveHundredMilliseconds) {
  EXPECT_EQ(text({.code = errc::would_time_out, .predicted_wait = 900ms, .limit = 500ms}),
            "the predicted wait of 900 ms is above the limit of 500 ms");
  EXPECT_EQ(text({.code = errc::timed_out, .waited = 500ms, .limit = 500ms}),
            "timed out after 500 ms in line (limit 500 ms), waiting for its turn");
  EXPECT_EQ(text({.code = errc::cancelled, .waited = 500ms}), "cancelled after 500 ms in line");
}

TEST(Rejection, NeverSaysThatAWaitIsAboveItself) {
  EXPECT_EQ(text({.code = errc::would_time_out, .predicted_wait = 199.25ms, .limit = 199ms}),
            "the predicted wait of 200 ms is above the limit of 199 ms");
  EXPECT_EQ(text({.code = errc::would_time_out, .predicted_wait = 199.75ms, .limit = 199'500us}),
            "the predicted wait of 200 ms is above the limit of 199 ms");
}

TEST(Rejection, APredictionBeyondAllMeasureIsStillANumber) {
  EXPECT_EQ(text({.code = errc::would_time_out,
                  .predicted_wait = fractional_ms{std::numeric_limits<double>::infinity()},
                  .limit = 1s}),
            "the predicted wait of 9000000000000000 ms is above the limit of 1000 ms");
}

TEST(Rejection, TimedOutNamesTimeLimitAndWhatItWaitedFor) {
  auto const timed_out = [](blocked_on blocked) {
    return text({.code = errc::timed_out, .blocked = blocked, .waited = 1'234'999us, .limit = 1200ms});
  };
  EXPECT_EQ(timed_out(blocked_on::lane), "timed out after 1234 ms in line (limit 1200 ms), waiting for a lane");
  EXPECT_EQ(timed_out(blocked_on::tokens), "timed out after 1234 ms in line (limit 1200 ms), waiting for KV tokens");
  EXPECT_EQ(timed_out(blocked_on::reservation),
            "timed out after 1234 ms in line (limit 1200 ms), waiting for a request that was overtaken before");
  EXPECT_EQ(timed_out(blocked_on::hold),
            "timed out after 1234 ms in line (limit 1200 ms), waiting for the end of a hold");
  EXPECT_EQ(timed_out(blocked_on::nothing), "timed out after 1234 ms in line (limit 1200 ms), waiting for its turn");
}

TEST(Rejection, CancelledNamesTheTimeWaited) {
  EXPECT_EQ(text({.code = errc::cancelled, .waited = 2'500'999us}), "cancelled after 2500 ms in line");
  EXPECT_EQ(text({.code = errc::cancelled}), "cancelled after 0 ms in line");
}

TEST(Rejection, ShuttingDownSaysWhetherTheServerMayComeBack) {
  EXPECT_EQ(text({.code = errc::shutting_down, .cause = refusal_cause::draining}),
            "the server is draining and takes no new requests");
  EXPECT_EQ(text({.code = errc::shutting_down, .cause = refusal_cause::closed}), "the server has closed its queue");
}

TEST(Rejection, NoLongerFitsNamesTheNewCapacityAndTheDemand) {
  EXPECT_EQ(
      text(
          {.code = errc::no_longer_fits, .cause = refusal_cause::kv_capacity, .asked_tokens = 528, .kv_capacity = 512}),
      "the KV cache was lowered to 512 tokens; the request needs 528");
}

TEST(Rejection, RetryAfterIsRoundedUpToWholeSeconds) {
  EXPECT_EQ(retry_after(1000ms), 1s);
  EXPECT_EQ(retry_after(1000.25ms), 2s);
  EXPECT_EQ(retry_after(1001ms), 2s);
  EXPECT_EQ(retry_after(22'400ms), 23s);
  EXPECT_EQ(retry_after(59'001ms), 60s);
}

TEST(Rejection, RetryAfterIsNeverBelowASecond) {
  EXPECT_EQ(retry_after(0ms), 1s);
  EXPECT_EQ(retry_after(0.001ms), 1s);
  EXPECT_EQ(retry_after(-5000ms), 1s);
}

TEST(Rejection, RetryAfterIsNeverAboveAMinute) {
  EXPECT_EQ(retry_after(60'000ms), 60s);
  EXPECT_EQ(retry_after(60'001ms), 60s);
  EXPECT_EQ(retry_after(fractional_ms{1e300}), 60s);
  EXPECT_EQ(retry_after(fractional_ms{std::numeric_limits<double>::infinity()}), 60s);
}

TEST(Rejection, RetryAfterIsAbsentWhereNothingIsKnown) { EXPECT_EQ(retry_after(std::nullopt), std::nullopt); }

}  // namespace
