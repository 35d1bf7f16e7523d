// The model held against the text by hand-computed cases. Whoever changes a reading changes a number here.
#include "reference_model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace kvlane::model {
namespace {

constexpr instant ms = 1'000'000;

request asking(std::uint64_t id, std::uint64_t demand, std::uint32_t priority = 0) {
  request r;
  r.id = id;
  r.kv_demand = demand;
  r.priority = priority;
  return r;
}

request saying(std::uint64_t id, std::vector<std::int32_t> prompt, std::uint64_t saved_cost = 0) {
  request r;
  r.id = id;
  r.prompt = std::move(prompt);
  r.saved_cost = saved_cost;
  return r;
}

limits with(std::uint32_t lanes, std::uint64_t capacity) {
  limits l;
  l.lanes = lanes;
  l.kv_capacity = capacity;
  return l;
}

std::vector<std::uint64_t> ids(std::vector<outcome> const& outcomes) {
  std::vector<std::uint64_t> out;
  for (outcome const& o : outcomes) out.push_back(o.id);
  return out;
}

std::vector<std::uint64_t> in_line(queue const& q) {
  std::vector<std::uint64_t> out;
  for (auto const& w : q.waiters()) out.push_back(w.id);
  return out;
}

using list = std::vector<std::uint64_t>;

TEST(reference_model, demand_is_rounded_to_blocks_and_saturates) {
  limits l = with(1, most_tokens);
  l.block_tokens = 16;
  l.decode_headroom = 8;
  queue q{l};
  request r = saying(1, {1, 2, 3});
  r.max_tokens = 100;
  EXPECT_EQ(q.enqueue(r, 0).own_outcome.tokens, 16u);
  q.release(1, 0);
  EXPECT_EQ(q.enqueue(asking(2, most_tokens - 3), 0).own_outcome.tokens, most_tokens);
}

TEST(reference_model, fast_path_is_no_turn_and_a_grant_out_of_the_line_is_one) {
  queue q{with(1, 10)};
  EXPECT_EQ(q.enqueue(asking(1, 1), 0).own, code::admitted);
  EXPECT_EQ(q.turn(), 0u);
  EXPECT_EQ(q.enqueue(asking(2, 1), 0).own, code::joined);
  EXPECT_EQ(ids(q.release(1, 5).ended), list{2});
  EXPECT_EQ(q.turn(), 1u);
}

TEST(reference_model, cancelling_a_big_head_lets_its_followers_in) {
  limits l = with(4, 10);
  l.max_overtakes = 0;
  queue q{l};
  q.enqueue(asking(1, 5), 0);
  q.enqueue(asking(2, 6), 0);
  EXPECT_EQ(q.enqueue(asking(3, 5), 0).own, code::joined);
  EXPECT_EQ(q.waiters()[1].blocked, blocked::reservation);
  step const s = q.cancel(2, 0);
  EXPECT_TRUE(s.flag);
  EXPECT_EQ(ids(s.ended), list{3});
}

TEST(reference_model, a_due_waiter_holds_back_its_priority_and_those_below_only) {
  limits l = with(8, 10);
  l.max_overtakes = 1;
  queue q{l};
  q.enqueue(asking(1, 4), 0);
  q.enqueue(asking(2, 8, 1), 0);
  EXPECT_EQ(q.enqueue(asking(3, 1, 1), 0).own, code::admitted);  // overtakes 2, which is due from now on
  EXPECT_EQ(q.waiters()[0].overtaken, 1u);
  EXPECT_EQ(q.enqueue(asking(4, 1, 0), 0).own, code::joined);
  EXPECT_EQ(q.enqueue(asking(5, 1, 1), 0).own, code::joined);
  EXPECT_EQ(q.enqueue(asking(6, 1, 2), 0).own, code::admitted);
  EXPECT_EQ(q.waiters()[0].overtaken, 1u);  // a higher priority is no overtaking
}

TEST(reference_model, a_readmitted_waiter_leads_its_class_and_takes_its_neighbours_count) {
  limits l = with(8, 10);
  queue q{l};
  q.enqueue(asking(1, 6), 0);
  q.enqueue(asking(2, 8), 0);
  q.enqueue(asking(3, 1), 0);  // overtakes 2
  step const s = q.readmit(1, asking(4, 10), 0);
  EXPECT_EQ(s.own, code::joined);
  EXPECT_EQ(ids(s.ended), list{2});         // 10 does not fit beside 3, 8 does
  EXPECT_EQ(q.waiters()[0].overtaken, 2u);  // one taken over, one for the admission of 2
}

TEST(reference_model, walk_goes_to_the_continuation_then_to_the_larger_family) {
  queue q{with(1, 1000)};
  q.enqueue(asking(1, 1), 0);
  q.enqueue(saying(2, {7, 1}), 0);
  q.enqueue(saying(3, {8, 1}), 0);
  q.enqueue(saying(4, {8, 2}), 0);
  q.enqueue(saying(5, {7, 2}), 0);
  q.enqueue(saying(6, {8}), 0);
  q.enqueue(asking(7, 1), 0);
  EXPECT_EQ(in_line(q), (list{3, 4, 6, 2, 5, 7}));
  EXPECT_EQ(ids(q.release(1, 0).ended), list{3});
  EXPECT_EQ(in_line(q), (list{4, 6, 2, 5, 7}));
  EXPECT_EQ(ids(q.release(3, 0).ended), list{4});
  EXPECT_EQ(in_line(q), (list{6, 2, 5, 7}));  // one against two, but 8 goes on from the last prompt
}

TEST(reference_model, grouping_score_rises_in_bands) {
  ordering_options o;
  o.aging_cost_per_turn = 1;
  o.band_turns = 4;
  std::vector<candidate> const all{{0, 4, key_of({1}, {}), 5, 0}, {0, 0, key_of({2}, {}), 4, 1}};
  EXPECT_EQ(order_candidates(all, 5, o, {}), (std::vector<std::size_t>{0, 1}));  // 4 and 4: the walk decides
  EXPECT_EQ(order_candidates(all, 4, o, {}), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(order_candidates(all, 9, o, {}), (std::vector<std::size_t>{0, 1}));  // 8 and 8
  EXPECT_EQ(order_candidates({{0, 3, key_of({1}, {}), 5, 0}, all[1]}, 5, o, {}), (std::vector<std::size_t>{1, 0}));
}

TEST(reference_model, token_prompts_come_before_block_prompts) {
  std::vector<candidate> const all{{0, 0, key_of({}, {5}), 0, 0},
                                   {0, 0, key_of({}, {5, 6}), 0, 1},
                                   {0, 0, key_of({}, {}), 0, 2},
                                   {0, 0, key_of({-1}, {}), 0, 3}};
  EXPECT_EQ(order_candidates(all, 0, {}, {}), (std::vector<std::size_t>{3, 2, 1, 0}));
}

TEST(reference_model, growth_ignores_the_reserve_and_an_idle_machine_has_none) {
  limits l = with(4, 10);
  l.growth_reserve = 4;
  queue q{l};
  EXPECT_EQ(q.enqueue(asking(1, 9), 0).own, code::admitted);
  EXPECT_TRUE(q.shrink(1, 5, 0).flag);
  EXPECT_EQ(q.enqueue(asking(2, 2), 0).own, code::joined);
  EXPECT_EQ(q.waiters()[0].blocked, blocked::tokens);
  EXPECT_TRUE(q.grow(1, 10, 0).flag);
  EXPECT_FALSE(q.grow(1, 11, 0).flag);
  EXPECT_TRUE(q.grow(1, 2, 0).flag);
  EXPECT_EQ(q.tokens_used(), 10u);
}

TEST(reference_model, expiries_go_by_deadline_then_arrival_and_before_grants) {
  queue q{with(1, 10)};
  q.enqueue(asking(1, 1), 0);
  for (std::uint64_t id : {2u, 3u, 4u}) {
    request r = asking(id, 1);
    r.max_wait = id == 2 ? 9 * ms : 5 * ms;
    q.enqueue(r, 0);
  }
  q.enqueue(asking(5, 1), 0);
  EXPECT_EQ(q.next_deadline(), 5 * ms);
  EXPECT_EQ(ids(q.release(1, 9 * ms).ended), (list{3, 4, 2, 5}));
}

TEST(reference_model, a_wait_above_the_prediction_is_needed_strictly) {
  queue q{with(1, 1000)};
  q.enqueue(asking(1, 1), 0);
  q.complete(1, {10, 0, 20.0, 0.0}, 0);  // 2 ms a prompt token
  request r;
  r.id = 2;
  r.prompt_tokens = 10;
  q.enqueue(r, 0);
  EXPECT_EQ(q.predicted_wait(), 20.0);
  r.id = 3;
  r.kv_demand = 1000;
  r.max_wait = 20 * ms - 1;
  EXPECT_EQ(q.enqueue(r, 0).own, code::would_time_out);
  r.id = 4;
  r.max_wait = 20 * ms;
  EXPECT_EQ(q.enqueue(r, 0).own, code::joined);
}

TEST(reference_model, retry_after_spreads_refusals_by_the_mean_gap) {
  limits l = with(1, 10);
  l.max_waiting = 2;
  queue q{l};
  q.enqueue(asking(1, 1), 0);
  EXPECT_FALSE(q.try_admit(asking(2, 1), 0).own_outcome.retry_after_s);
  q.enqueue(asking(3, 1), 0);
  q.enqueue(asking(4, 1), 0);
  q.release(1, 1000 * ms);  // admits 3
  q.release(3, 3000 * ms);  // admits 4: a gap of 2 s, and the line is empty
  q.enqueue(asking(5, 1), 3000 * ms);
  q.enqueue(asking(6, 1), 3000 * ms);
  EXPECT_EQ(q.enqueue(asking(7, 1), 3000 * ms).own_outcome.retry_after_s, 6);  // 2 waiting, first refusal
  EXPECT_EQ(q.enqueue(asking(8, 1), 3000 * ms).own_outcome.retry_after_s, 8);
  EXPECT_EQ(q.try_admit(asking(9, 1), 3000 * ms).own_outcome.retry_after_s, 8);  // takes i as it stands
}

TEST(reference_model, a_hold_ends_in_one_decision) {
  queue q{with(2, 10)};
  q.enqueue(asking(1, 10), 0);
  q.hold(0);
  EXPECT_EQ(q.readmit(1, asking(2, 9), 0).own, code::joined);
  EXPECT_EQ(q.try_admit(asking(3, 1), 0).own_outcome.why, blocked::hold);
  q.enqueue(asking(4, 5, 1), 0);
  EXPECT_TRUE(q.anyone_parked_that_the_rules_would_admit());
  EXPECT_EQ(ids(q.unhold(0).ended), list{4});
}

TEST(reference_model, lowering_limits_revokes_nothing_and_refuses_what_can_never_fit) {
  queue q{with(2, 10)};
  q.enqueue(asking(1, 4), 0);
  q.enqueue(asking(2, 4), 0);
  q.enqueue(asking(3, 8), 0);
  q.enqueue(asking(4, 1), 0);
  step const s = q.update(with(1, 6), 0);
  ASSERT_EQ(ids(s.ended), list{3});
  EXPECT_EQ(s.ended[0].what, code::no_longer_fits);
  EXPECT_EQ(q.free_tokens(), 0u);
  EXPECT_TRUE(q.release(1, 0).ended.empty());
  step const last = q.release(2, 0);
  ASSERT_EQ(ids(last.ended), list{4});
  EXPECT_EQ(last.ended[0].lane, 0u);
}

TEST(reference_model, close_answers_by_arrival_and_is_final) {
  queue q{with(1, 10)};
  q.enqueue(asking(1, 1), 0);
  q.enqueue(asking(2, 1), 0);
  q.enqueue(asking(3, 1, 9), 0);
  EXPECT_EQ(ids(q.close(0).ended), (list{2, 3}));
  q.reopen(0);
  EXPECT_EQ(q.enqueue(asking(4, 11), 0).own, code::never_fits);
  EXPECT_EQ(q.enqueue(asking(5, 1), 0).own, code::shutting_down);
  EXPECT_EQ(q.readmit(1, asking(6, 1), 0).own, code::shutting_down);
  EXPECT_EQ(q.lanes_busy(), 1u);
}

}  // namespace
}  // namespace kvlane::model
