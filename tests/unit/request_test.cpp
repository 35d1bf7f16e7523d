#include "support/extremes.hpp"

#include <kvlane/request.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using kvlane::demand_of;
using kvlane::errc;
using kvlane::expected_work;
using kvlane::find_fault;
using kvlane::highest_saved_cost;
using kvlane::invalid_field;
using kvlane::limits;
using kvlane::prompt_length;
using kvlane::request;
using kvlane::round_up_to_blocks;
using kvlane::token_id;
using kvlane::validate;
using kvlane::test::most;

constexpr std::array<token_id, 8> eight_tokens{1, 2, 3, 4, 5, 6, 7, 8};
constexpr std::array<std::uint64_t, 2> two_blocks{11, 22};

static_assert(std::is_trivially_copyable_v<request>);
static_assert(demand_of({.prompt_tokens = 400, .max_tokens = 128}, {}) == 528, "usable in constant expressions");

std::string fault_text(request const& r) {
  auto const fault = find_fault(r);
  if (!fault) return "no fault";
  EXPECT_EQ(fault->code(), errc::invalid_request);
  return fault->message();
}

std::string complaint(std::function<void(limits&)> const& change) {
  limits l;
  change(l);
  try {
    validate(l);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "no complaint";
}

limits with_lanes(std::uint32_t lanes) { return {.lanes = lanes}; }

TEST(Limits, DefaultToOneLaneAndTheFiguresOfTheContract) {
  limits const l;
  EXPECT_EQ(l.lanes, 1U);
  EXPECT_EQ(l.engine_lanes, 0U);
  EXPECT_EQ(l.kv_capacity, 4096U);
  EXPECT_EQ(l.block_tokens, 1U);
  EXPECT_EQ(l.decode_headroom, 512U);
  EXPECT_EQ(l.growth_reserve, 0U);
  EXPECT_EQ(l.max_waiting, std::nullopt);
  EXPECT_EQ(l.max_waiting_tokens, most);
  EXPECT_EQ(l.max_overtakes, 32U);
  EXPECT_EQ(l.max_wait, kvlane::forever);
  EXPECT_NO_THROW(validate(l));
}

TEST(Limits, TheLineHasEightPlacesForEachLaneWithinSixteenAndTwoHundredFiftySix) {
  EXPECT_EQ(with_lanes(0).places(), 16U);
  EXPECT_EQ(with_lanes(1).places(), 16U);
  EXPECT_EQ(with_lanes(2).places(), 16U);
  EXPECT_EQ(with_lanes(3).places(), 24U);
  EXPECT_EQ(with_lanes(4).places(), 32U);
  EXPECT_EQ(with_lanes(31).places(), 248U);
  EXPECT_EQ(with_lanes(32).places(), 256U);
  EXPECT_EQ(with_lanes(33).places(), 256U);
  EXPECT_EQ(with_lanes(std::uint32_t{1} << 29).places(), 256U) << "eight times that is beyond 32 bits";
  EXPECT_EQ(with_lanes(UINT32_MAX).places(), 256U);
}

TEST(Limits, ANamedNumberOfPlacesIsTakenAsItIs) {
  EXPECT_EQ((limits{.lanes = 4, .max_waiting = 0}).places(), 0U);
  EXPECT_EQ((limits{.lanes = 4, .max_waiting = 5}).places(), 5U);
  EXPECT_EQ((limits{.lanes = 4, .max_waiting = 100'000}).places(), 100'000U);
}

TEST(Limits, SensibleOnesAtTheEdgeAreTaken) {
  EXPECT_NO_THROW(validate({.lanes = 0}));
  EXPECT_NO_THROW(validate({.lanes = 8, .engine_lanes = 8}));
  EXPECT_NO_THROW(validate({.lanes = UINT32_MAX, .engine_lanes = 0}));
  EXPECT_NO_THROW(validate({.kv_capacity = 1}));
  EXPECT_NO_THROW(validate({.kv_capacity = 100, .growth_reserve = 99}));
  EXPECT_NO_THROW(validate({.max_waiting = 0, .max_waiting_tokens = 0, .max_overtakes = 0, .max_wait = 0s}));
  EXPECT_NO_THROW(validate({.decode_headroom = 0}));
}

TEST(Limits, NonsenseIsRefusedByNameAndValue) {
  EXPECT_EQ(complaint([](limits& l) { l.kv_capacity = 0; }),
            "kvlane::limits: kv_capacity is 0; nothing could ever be admitted");
  EXPECT_EQ(complaint([](limits& l) { l.block_tokens = 0; }),
            "kvlane::limits: block_tokens is 0; a block holds at least 1 token");
  EXPECT_EQ(complaint([](limits& l) { l.growth_reserve = 4096; }),
            "kvlane::limits: growth_reserve is 4096, which leaves nothing of kv_capacity 4096");
  EXPECT_EQ(complaint([](limits& l) { l.growth_reserve = most; }),
            "kvlane::limits: growth_reserve is 18446744073709551615, which leaves nothing of kv_capacity 4096");
  EXPECT_EQ(complaint([](limits& l) { l.max_wait = -250ms; }),
            "kvlane::limits: max_wait is -250 ms; a wait is not negative");
  EXPECT_EQ(complaint([](limits& l) {
              l.lanes = 9;
              l.engine_lanes = 8;
            }),
            "kvlane::limits: lanes is 9, but the engine has 8 lanes");
}

TEST(Limits, ANegativeWaitBelowAMillisecondIsNotCalledZero) {
  EXPECT_EQ(complaint([](limits& l) { l.max_wait = -1ns; }),
            "kvlane::limits: max_wait is -1 ms; a wait is not negative");
  EXPECT_EQ(complaint([](limits& l) { l.max_wait = kvlane::duration::min(); }),
            "kvlane::limits: max_wait is -9223372036855 ms; a wait is not negative");
}

TEST(RoundUpToBlocks, KeepsWholeBlocksAndFillsTheLastOne) {
  EXPECT_EQ(round_up_to_blocks(0, 16), 0U);
  EXPECT_EQ(round_up_to_blocks(1, 16), 16U);
  EXPECT_EQ(round_up_to_blocks(16, 16), 16U);
  EXPECT_EQ(round_up_to_blocks(17, 16), 32U);
  EXPECT_EQ(round_up_to_blocks(17, 1), 17U);
  EXPECT_EQ(round_up_to_blocks(10, 3), 12U);
}

TEST(RoundUpToBlocks, SaturatesAtTheHighestNumber) {
  EXPECT_EQ(round_up_to_blocks(most, 16), most);
  EXPECT_EQ(round_up_to_blocks(most - 15, 16), most - 15) << "a whole number of blocks";
  EXPECT_EQ(round_up_to_blocks(most - 14, 16), most);
  EXPECT_EQ(round_up_to_blocks(most - 20, 16), most - 15);
  EXPECT_EQ(round_up_to_blocks(most - 2, 2), most - 1);
  EXPECT_EQ(round_up_to_blocks(most - 1, UINT32_MAX), most);
}

TEST(Demand, IsThePromptAndTheReservedPartOfTheReply) {
  EXPECT_EQ(demand_of({.prompt_tokens = 400, .max_tokens = 128}, {}), 528U);
  EXPECT_EQ(demand_of({.prompt_tokens = 4506, .max_tokens = 4096}, {}), 5018U);
  EXPECT_EQ(demand_of({.prompt_tokens = 100, .max_tokens = 512}, {}), 612U);
  EXPECT_EQ(demand_of({.prompt_tokens = 100, .max_tokens = 513}, {}), 612U);
  EXPECT_EQ(demand_of({.prompt_tokens = 100, .max_tokens = 513}, {.decode_headroom = 1024}), 613U);
  EXPECT_EQ(demand_of({.prompt_tokens = 100, .max_tokens = 513}, {.decode_headroom = 0}), 100U);
}

TEST(Demand, CountsThePromptWhereNoLengthIsGiven) {
  EXPECT_EQ(demand_of({.prompt = eight_tokens, .max_tokens = 4}, {}), 12U);
  EXPECT_EQ(demand_of({.prompt = eight_tokens, .prompt_tokens = 20, .max_tokens = 4}, {}), 24U);
  EXPECT_EQ(demand_of({.prefix_blocks = two_blocks, .prompt_tokens = 40, .max_tokens = 4}, {}), 44U);
}

TEST(Demand, OfTheEngineReplacesOurs) {
  EXPECT_EQ(demand_of({.prompt_tokens = 400, .max_tokens = 128, .kv_demand = 77}, {}), 77U);
  EXPECT_EQ(demand_of({.prompt_tokens = 400, .max_tokens = 128, .kv_demand = 0}, {}), 0U) << "a lane only";
}

TEST(Demand, IsRoundedUpToWholeBlocks) {
  limits const l{.block_tokens = 16};
  EXPECT_EQ(demand_of({.prompt_tokens = 400, .max_tokens = 128}, l), 528U);
  EXPECT_EQ(demand_of({.prompt_tokens = 401, .max_tokens = 128}, l), 544U);
  EXPECT_EQ(demand_of({.kv_demand = 77}, l), 80U);
  EXPECT_EQ(demand_of({.kv_demand = 0}, l), 0U);
}

TEST(Demand, Saturates) {
  EXPECT_EQ(demand_of({.prompt_tokens = most, .max_tokens = 1}, {}), most);
  EXPECT_EQ(demand_of({.prompt_tokens = most - 1, .max_tokens = 1}, {}), most);
  EXPECT_EQ(demand_of({.prompt_tokens = most - 2, .max_tokens = 1}, {}), most - 1);
  EXPECT_EQ(demand_of({.kv_demand = most}, {.block_tokens = 16}), most);
}

TEST(ExpectedWork, IsWhatIsReservedWhateverTheEngineSaysOfItsCache) {
  auto const w = expected_work({.prompt_tokens = 300, .max_tokens = 4096, .kv_demand = 0}, {.decode_headroom = 64});
  EXPECT_EQ(w.prompt_tokens, 300U);
  EXPECT_EQ(w.decode_tokens, 64U);
  EXPECT_EQ(expected_work({.prompt = eight_tokens, .max_tokens = 5}, {}).decode_tokens, 5U);
}

TEST(PromptLength, IsTheGivenLengthOrElseThatOfThePrompt) {
  EXPECT_EQ(prompt_length({.prompt = eight_tokens}), 8U);
  EXPECT_EQ(prompt_length({.prompt = eight_tokens, .prompt_tokens = 9}), 9U);
  EXPECT_EQ(prompt_length({.prefix_blocks = two_blocks, .prompt_tokens = 9}), 9U);
  EXPECT_EQ(prompt_length({}), 0U);
}

TEST(FindFault, FindsNothingWrongWithSensibleRequests) {
  EXPECT_EQ(find_fault({.prompt = eight_tokens}).has_value(), false);
  EXPECT_EQ(find_fault({.prompt = eight_tokens, .prompt_tokens = 8}).has_value(), false);
  EXPECT_EQ(find_fault({.prompt = eight_tokens, .prompt_tokens = 1000}).has_value(), false) << "images add to it";
  EXPECT_EQ(find_fault({.prefix_blocks = two_blocks, .prompt_tokens = 32}).has_value(), false);
  EXPECT_EQ(find_fault({.prompt_tokens = 1}).has_value(), false);
  EXPECT_EQ(find_fault({.kv_demand = 0}).has_value(), false);
  EXPECT_EQ(find_fault({.prompt_tokens = 1, .priority = 15, .saved_cost = highest_saved_cost}).has_value(), false);
  EXPECT_EQ(find_fault({.prompt_tokens = 1, .preferred_lane = UINT32_MAX, .max_wait = -1s}).has_value(), false);
}

TEST(FindFault, NamesAPriorityThatIsTooHigh) {
  EXPECT_EQ(fault_text({.prompt_tokens = 1, .priority = 16}), "priority is 16; the highest is 15");
  EXPECT_EQ(fault_text({.prompt_tokens = 1, .priority = UINT32_MAX}), "priority is 4294967295; the highest is 15");
}

TEST(FindFault, NamesAPromptThatIsGivenTwice) {
  EXPECT_EQ(fault_text({.prompt = eight_tokens, .prefix_blocks = two_blocks, .prompt_tokens = 8}),
            "prompt has 8 tokens and prefix_blocks has 2 entries; give one of them");
}

TEST(FindFault, NamesBlocksWithoutALength) {
  EXPECT_EQ(fault_text({.prefix_blocks = two_blocks}),
            "prompt_tokens is 0, but prefix_blocks has 2 entries; say how long the prompt is");
  EXPECT_EQ(fault_text({.prefix_blocks = two_blocks, .kv_demand = 64}),
            "prompt_tokens is 0, but prefix_blocks has 2 entries; say how long the prompt is");
}

TEST(FindFault, NamesALengthBelowThePrompt) {
  EXPECT_EQ(fault_text({.prompt = eight_tokens, .prompt_tokens = 7}), "prompt_tokens is 7, but prompt has 8 tokens");
}

TEST(FindFault, NamesARequestThatAsksForNothing) {
  EXPECT_EQ(fault_text({}), "prompt_tokens is 0, and neither prompt nor kv_demand is given; give one of them");
  EXPECT_EQ(fault_text({.max_tokens = 100}),
            "prompt_tokens is 0, and neither prompt nor kv_demand is given; give one of them");
}

TEST(FindFault, NamesASavedCostThatIsTooHigh) {
  EXPECT_EQ(fault_text({.prompt_tokens = 1, .saved_cost = highest_saved_cost + 1}),
            "saved_cost is 281474976710656; the highest is 281474976710655");
}

TEST(FindFault, EchoesTheTagAndSaysWhichField) {
  auto const fault = find_fault({.prompt_tokens = 1, .priority = 99, .tag = 4711});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->tag(), 4711U);
  EXPECT_EQ(fault->facts().field, invalid_field::priority);
  EXPECT_EQ(fault->facts().field_value, 99U);
  EXPECT_EQ(fault->retry_after(), std::nullopt);
}

}  // namespace
