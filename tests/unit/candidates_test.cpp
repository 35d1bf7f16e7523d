#include "gtest/gtest.h"
#include "support/extremes.hpp"

#include <kvlane/ordering/candidates.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using kvlane::candidate;
using kvlane::order_candidates;
using kvlane::ordering_options;
using kvlane::select_candidate;
using kvlane::token_id;
using kvlane::detail::effective_score;
using kvlane::detail::grouping_score;
using kvlane::test::most;

using tokens = std::vector<token_id>;
using order = std::vector<std::size_t>;

constexpr auto highest_saved = (std::uint64_t{1} << 48) - 1;

/// A line of candidates that owns their prompts. Indices and arrivals are positions unless said otherwise.
class candidate_line {
 public:
  struct waiter {
    std::uint32_t priority = 0;
    std::uint64_t saved = 0;
    tokens prompt = {};
    std::uint64_t enqueued = 0;
    std::optional<std::uint64_t> arrival = {};
  };
  struct moment {
    std::uint64_t turn = 0;
    ordering_options options = {};
    tokens last = {};
  };

  candidate_line(std::vector<waiter> waiters) : waiters_{std::move(waiters)} {
    for (std::size_t i = 0; i != waiters_.size(); ++i) {
      auto const& w = waiters_[i];
      candidates_.push_back({.index = i,
                             .priority = w.priority,
                             .saved_cost = w.saved,
                             .prompt = w.prompt,
                             .enqueued_turn = w.enqueued,
                             .order = w.arrival.value_or(i)});
    }
  }

  [[nodiscard]] std::span<candidate const> candidates() const { return candidates_; }

  /// The whole order; checks on the way that the candidate selected is the first of it.
  [[nodiscard]] order at(moment const& m) const {
    auto const sorted = order_candidates(candidates_, m.turn, m.options, m.last);
    auto const selected = select_candidate(candidates_, m.turn, m.options, m.last);
    EXPECT_EQ(selected, sorted.empty() ? std::nullopt : std::optional{sorted.front()});
    return sorted;
  }

 private:
  std::vector<waiter> waiters_;
  std::vector<candidate> candidates_;
};

TEST(OrderCandidates, GivesNothingForNobody) {
  EXPECT_EQ(order_candidates({}, 0), order{});
  EXPECT_EQ(select_candidate({}, 0), std::nullopt);
}

TEST(OrderCandidates, ReturnsTheIndexOfTheCandidateAndNotItsPosition) {
  std::array<candidate, 2> const two{{{.index = 70, .order = 2}, {.index = 7, .order = 1}}};
  EXPECT_EQ(order_candidates(two, 0), (order{7, 70}));
  EXPECT_EQ(select_candidate(two, 0), 7U);
}

TEST(OrderCandidates, PutsMoreSavedCostFirst) {
  EXPECT_EQ(candidate_line({{.saved = 0}, {.saved = 100}}).at({}), (order{1, 0}));
}

TEST(OrderCandidates, LetsAgeOutweighSavedCost) {
  candidate_line const two{{{.saved = 100, .enqueued = 11}, {.saved = 0, .enqueued = 0}}};
  EXPECT_EQ(two.at({.turn = 11, .options = {.aging_cost_per_turn = 10}}), (order{1, 0}));
  EXPECT_EQ(two.at({.turn = 11, .options = {.aging_cost_per_turn = 10, .group_prefixes = false}}), (order{1, 0}));
}

TEST(OrderCandidates, PutsPriorityBeforeSavedCost) {
  EXPECT_EQ(candidate_line({{.priority = 0, .saved = 1000}, {.priority = 1}}).at({}), (order{1, 0}));
  EXPECT_EQ(
      candidate_line({{.priority = 0, .saved = 1000}, {.priority = 1}}).at({.options = {.group_prefixes = false}}),
      (order{1, 0}));
}

TEST(OrderCandidates, PutsPriorityBeforeAgeAndWeight) {
  candidate_line const three{{{.prompt = {1}}, {.prompt = {1}}, {.priority = 15, .prompt = {2}, .enqueued = 90}}};
  EXPECT_EQ(three.at({.turn = 90}), (order{2, 0, 1}));
}

TEST(OrderCandidates, PutsAFamilyThatWaitsTogetherBeforeALonelyPrompt) {
  EXPECT_EQ(candidate_line({{.prompt = {9, 9, 9}}, {.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}}).at({}),
            (order{1, 2, 0}));
}

TEST(OrderCandidates, KeepsFamiliesTogetherThatJoinedOneAfterTheOther) {
  candidate_line const three{{{.prompt = {9, 9, 9}, .enqueued = 0},
                              {.prompt = {1, 2, 3}, .enqueued = 1},
                              {.prompt = {1, 2, 4}, .enqueued = 2}}};
  EXPECT_EQ(three.at({.turn = 3, .options = {.aging_cost_per_turn = 4096}}), (order{1, 2, 0}));
}

TEST(OrderCandidates, ServesAnOldWaiterBeforeYoungerFamilies) {
  candidate_line const three{{{.prompt = {9, 9, 9}, .enqueued = 0},
                              {.prompt = {1, 2, 3}, .enqueued = 9},
                              {.prompt = {1, 2, 4}, .enqueued = 10}}};
  EXPECT_EQ(three.at({.turn = 10}), (order{0, 1, 2}));
}

TEST(OrderCandidates, GoesByArrivalWithoutGrouping) {
  candidate_line const three{{{.prompt = {9, 9, 9}}, {.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}}};
  EXPECT_EQ(three.at({.options = {.group_prefixes = false}}), (order{0, 1, 2}));
  EXPECT_EQ(three.at({.options = {.group_prefixes = false}, .last = {1, 2, 4}}), (order{0, 1, 2}));
}

TEST(OrderCandidates, PutsSavedCostBeforeAWaitingFamily) {
  candidate_line const three{{{.saved = 100, .prompt = {9, 9, 9}}, {.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}}};
  EXPECT_EQ(three.at({}), (order{0, 1, 2}));
}

TEST(OrderCandidates, TakesPromptsThatShareAHundredThousandTokens) {
  tokens a(100'000, 7);
  tokens b = a;
  a.push_back(2);
  b.push_back(1);
  EXPECT_EQ(candidate_line({{.prompt = {8}}, {.prompt = a}, {.prompt = b}}).at({}), (order{1, 2, 0}));
  EXPECT_EQ(candidate_line({{.prompt = {8}}, {.prompt = a}, {.prompt = b}}).at({.last = b}), (order{2, 1, 0}));
}

TEST(OrderCandidates, ContinuesTheLastPromptAdmitted) {
  candidate_line const three{{{.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}, {.prompt = {9, 9, 9}}}};
  EXPECT_EQ(three.at({}), (order{0, 1, 2}));
  EXPECT_EQ(three.at({.last = {9, 8}}), (order{2, 0, 1}));
  EXPECT_EQ(three.at({.last = {1, 2, 4, 5}}), (order{1, 0, 2}));
}

TEST(OrderCandidates, ContinuesTheLastPromptOnlyWhileAllTokensEqualIt) {
  candidate_line const three{{{.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}, {.prompt = {9, 9, 9}}}};
  EXPECT_EQ(three.at({.last = {1, 7, 4}}), (order{0, 1, 2}));
}

TEST(OrderCandidates, IgnoresTheLastPromptWhenFamiliesAreSpread) {
  candidate_line const three{{{.prompt = {1, 2, 3}}, {.prompt = {1, 2, 4}}, {.prompt = {9, 9, 9}}}};
  EXPECT_EQ(three.at({.options = {.spread_families = true}, .last = {9, 9, 9}}), (order{0, 1, 2}));
}

TEST(OrderCandidates, DoesNotLetTheLastPromptOutweighTheGroupingScore) {
  candidate_line const two{{{.prompt = {1}}, {.saved = 1, .prompt = {2}}}};
  EXPECT_EQ(two.at({.last = {1}}), (order{1, 0}));
}

TEST(OrderCandidates, PutsTheHeavierThenTheEarlierFamilyFirst) {
  EXPECT_EQ(candidate_line({{.prompt = {1}}, {.prompt = {2}}, {.prompt = {2}}}).at({}), (order{1, 2, 0}));
  EXPECT_EQ(candidate_line({{.prompt = {1}, .arrival = 5}, {.prompt = {2}, .arrival = 4}}).at({}), (order{1, 0}));
}

TEST(OrderCandidates, WeighsFamiliesByWaitersOfEveryPriority) {
  candidate_line const four{
      {{.prompt = {1, 1}}, {.prompt = {2, 1}}, {.priority = 3, .prompt = {2, 2}}, {.priority = 3, .prompt = {2, 3}}}};
  EXPECT_EQ(four.at({}), (order{2, 3, 1, 0}));
}

TEST(OrderCandidates, PutsTheSmallerTokenFirstWhenEverythingElseIsEqual) {
  EXPECT_EQ(candidate_line({{.prompt = {2}, .arrival = 0}, {.prompt = {-1}, .arrival = 0}}).at({}), (order{1, 0}));
}

TEST(OrderCandidates, PutsAPromptThatEndsBehindThoseThatGoOn) {
  EXPECT_EQ(candidate_line({{.prompt = {1}}, {.prompt = {1, 2}}, {.prompt = {}}}).at({}), (order{1, 0, 2}));
}

TEST(OrderCandidates, PutsTheHigherEffectiveScoreFirstAmongEqualPrompts) {
  // Ages 2 and 3 lie in one band, so that only the effective score tells them apart.
  candidate_line const two{{{.prompt = {1}, .enqueued = 1}, {.prompt = {1}, .enqueued = 0}}};
  EXPECT_EQ(two.at({.turn = 3}), (order{1, 0}));
}

TEST(OrderCandidates, PutsTheEarlierFirstAmongEqualPromptsWithEqualScores) {
  EXPECT_EQ(candidate_line({{.prompt = {1}, .arrival = 9}, {.prompt = {1}, .arrival = 8}}).at({}), (order{1, 0}));
}

TEST(OrderCandidates, PutsTheWalkBeforeTheEffectiveScore) {
  candidate_line const three{
      {{.prompt = {9}, .enqueued = 0}, {.prompt = {1, 1}, .enqueued = 3}, {.prompt = {1, 2}, .enqueued = 3}}};
  EXPECT_EQ(three.at({.turn = 4}), (order{1, 2, 0}));
}

TEST(OrderCandidates, BreaksTiesOfArrivalByPosition) {
  candidate_line const three{
      {{.prompt = {1}, .arrival = 4}, {.prompt = {1}, .arrival = 4}, {.prompt = {1}, .arrival = 4}}};
  EXPECT_EQ(three.at({}), (order{0, 1, 2}));
  EXPECT_EQ(three.at({.options = {.group_prefixes = false}}), (order{0, 1, 2}));

  std::vector<candidate> many;
  for (std::size_t i = 0; i != 200; ++i) many.push_back({.index = i, .order = 4});
  order ascending(many.size());
  std::iota(ascending.begin(), ascending.end(), std::size_t{0});
  EXPECT_EQ(order_candidates(many, 0), ascending);
  EXPECT_EQ(order_candidates(many, 0, {.group_prefixes = false}), ascending);
}

TEST(OrderCandidates, TakesAWaiterFromTheFutureForANewcomer) {
  candidate_line const three{
      {{.saved = 1, .enqueued = 5}, {.saved = 2, .enqueued = most}, {.saved = 3, .enqueued = 6}}};
  EXPECT_EQ(three.at({.turn = 5}), (order{2, 1, 0}));
  EXPECT_EQ(three.at({.turn = 0, .options = {.group_prefixes = false}}), (order{2, 1, 0}));
}

TEST(OrderCandidates, CountsAgesInWholeBands) {
  // Age 1 counts as much as age 4, so the family decides; age 5 belongs to the next band.
  candidate_line const family{
      {{.prompt = {9}, .enqueued = 6}, {.prompt = {1, 1}, .enqueued = 9}, {.prompt = {1, 2}, .enqueued = 9}}};
  EXPECT_EQ(family.at({.turn = 10}), (order{1, 2, 0}));
  EXPECT_EQ(family.at({.turn = 11}), (order{0, 1, 2}));
  EXPECT_EQ(family.at({.turn = 11, .options = {.band_turns = 5}}), (order{1, 2, 0}));
}

TEST(OrderCandidates, LetsAgeCountInBandsEvenIfAgingIsFree) {
  candidate_line const two{{{.prompt = {1}, .enqueued = 5}, {.prompt = {2}, .enqueued = 0}}};
  EXPECT_EQ(two.at({.turn = 5, .options = {.aging_cost_per_turn = 0}}), (order{1, 0}));
  EXPECT_EQ(two.at({.turn = 5, .options = {.aging_cost_per_turn = 0, .group_prefixes = false}}), (order{0, 1}));
}

TEST(OrderCandidates, ClampsSavedCosts) {
  candidate_line const two{{{.saved = highest_saved}, {.saved = most}, {.saved = highest_saved - 1}}};
  EXPECT_EQ(two.at({}), (order{0, 1, 2}));
  EXPECT_EQ(two.at({.options = {.group_prefixes = false}}), (order{0, 1, 2}));
}

TEST(OrderCandidates, SaturatesInsteadOfWrappingAround) {
  // At the highest turn both elders reach the ceiling; a product that wrapped would put the newcomer first.
  candidate_line const three{
      {{.saved = most, .enqueued = most}, {.saved = 5, .enqueued = 1}, {.saved = 9, .enqueued = 0}}};
  for (bool const grouping : {false, true})
    for (std::uint32_t const band : {1U, 4U, std::numeric_limits<std::uint32_t>::max()})
      EXPECT_EQ(three.at({.turn = most,
                          .options = {.aging_cost_per_turn = kvlane::highest_aging_cost,
                                      .band_turns = band,
                                      .group_prefixes = grouping}}),
                (order{1, 2, 0}));
}

TEST(OrderCandidates, ComputesScoresExactly) {
  constexpr ordering_options standard{};
  static_assert(effective_score(7, 3, standard) == 7 + 3 * 4096);
  static_assert(grouping_score(7, 0, standard) == 7);
  static_assert(grouping_score(7, 1, standard) == 7 + 4 * 4096);
  static_assert(grouping_score(7, 4, standard) == 7 + 4 * 4096);
  static_assert(grouping_score(7, 5, standard) == 7 + 8 * 4096);
  static_assert(grouping_score(7, 5, {.aging_cost_per_turn = 0, .band_turns = 3}) == 7 + 6);
  static_assert(effective_score(7, 5, {.aging_cost_per_turn = 0, .band_turns = 3}) == 7);
  static_assert(effective_score(most, 0, standard) == highest_saved);
  static_assert(grouping_score(most, 0, standard) == highest_saved);
  static_assert(effective_score(0, most, standard) == most);
  static_assert(grouping_score(0, most, standard) == most);
  static_assert(effective_score(0, most, {.aging_cost_per_turn = 1}) == most);
  static_assert(effective_score(1, most, {.aging_cost_per_turn = 1}) == most);
  static_assert(effective_score(1, most - 2, {.aging_cost_per_turn = 1}) == most - 1);
  static_assert(grouping_score(0, most - 1, {.aging_cost_per_turn = 1, .band_turns = 4}) == most);
  static_assert(grouping_score(0, most - 3, {.aging_cost_per_turn = 1, .band_turns = 4}) == most - 3);
  static_assert(grouping_score(2, most - 3, {.aging_cost_per_turn = 1, .band_turns = 4}) == most - 1);
  static_assert(grouping_score(4, most - 3, {.aging_cost_per_turn = 1, .band_turns = 4}) == most);
}

std::string complaint_about(ordering_options const& options) {
  try {
    (void)order_candidates({}, 0, options);
  } catch (std::invalid_argument const& error) {
    EXPECT_THROW((void)select_candidate({}, 0, options), std::invalid_argument);
    return error.what();
  }
  return "none";
}

TEST(OrderCandidates, RefusesABandWithoutTurns) {
  EXPECT_EQ(complaint_about({.band_turns = 0}),
            "kvlane::ordering_options: band_turns is 0; a band holds at least 1 turn");
  EXPECT_EQ(complaint_about({.band_turns = 0, .group_prefixes = false}),
            "kvlane::ordering_options: band_turns is 0; a band holds at least 1 turn");
  EXPECT_EQ(complaint_about({.band_turns = 1}), "none");
}

TEST(OrderCandidates, RefusesAnAgingCostThatCouldSaturate) {
  EXPECT_EQ(complaint_about({.aging_cost_per_turn = (1U << 20) + 1}),
            "kvlane::ordering_options: aging_cost_per_turn is 1048577, which is above 1048576");
  EXPECT_EQ(complaint_about({.aging_cost_per_turn = 1U << 20}), "none");
}

TEST(ScanOrder, TakesBlockPromptsBehindTokenPromptsAndFollowsTheLastOfThem) {
  std::array<std::uint64_t, 1> const low{1};
  std::array<std::uint64_t, 1> const high{~std::uint64_t{0}};
  std::array<token_id, 1> const token{5};
  kvlane::detail::scan_order<char> scan;
  scan.reserve(3);
  scan.add({.prompt = {.blocks = high}, .arrival = 0, .handle = 'h'});
  scan.add({.prompt = {.blocks = low}, .arrival = 0, .handle = 'l'});
  scan.add({.prompt = {.tokens = token}, .arrival = 1, .handle = 't'});

  auto const sorted = [&] {
    auto const s = scan.sorted();
    return std::string(s.begin(), s.end());
  };
  scan.compute(0, {});
  EXPECT_EQ(scan.best(), 't');
  EXPECT_EQ(sorted(), "tlh");
  EXPECT_EQ(scan.best(), 't');
  scan.compute(0, {}, {.blocks = high});
  EXPECT_EQ(sorted(), "thl");
}

TEST(ScanOrder, ForgetsItsWaitersButCanBeFilledAgain) {
  int first = 0;
  int second = 0;
  kvlane::detail::scan_order<int*> scan;
  EXPECT_EQ(scan.best(), std::nullopt);
  scan.reserve(2);
  scan.add({.handle = &first});
  scan.compute(0, {});
  EXPECT_EQ(scan.best(), &first);
  scan.add({.saved_cost = 1, .handle = &second});
  EXPECT_EQ(scan.best(), std::nullopt);  // the order computed before knows nothing of the second
  scan.clear();
  EXPECT_EQ(scan.best(), std::nullopt);
  EXPECT_TRUE(scan.sorted().empty());
  scan.add({.handle = &first});
  scan.add({.saved_cost = 1, .handle = &second});
  EXPECT_EQ(scan.size(), 2U);
  EXPECT_EQ(scan.best(), std::nullopt);
  scan.compute(0, {});
  EXPECT_EQ(scan.best(), &second);
}

// The rule of the walk on sets of positions: those that go on with the same token form a family.
class naive_order {
 public:
  naive_order(std::span<candidate const> line, candidate_line::moment const& now)
      : line_{line}, now_{now}, rank_(line.size()) {
    order everybody(line.size());
    std::iota(everybody.begin(), everybody.end(), std::size_t{0});
    walk(everybody, 0, !now.options.spread_families);
  }

  [[nodiscard]] order sorted() const {
    order positions(line_.size());
    std::iota(positions.begin(), positions.end(), std::size_t{0});
    std::sort(positions.begin(), positions.end(),
              [&](auto a, auto b) { return std::pair{key(a), a} < std::pair{key(b), b}; });
    order result;
    for (auto const p : positions) result.push_back(line_[p].index);
    return result;
  }

 private:
  using number = std::int64_t;

  void walk(order const& set, std::size_t depth, bool along) {
    std::map<token_id, order> families;
    order ending;
    for (auto const p : set) {
      if (line_[p].prompt.size() == depth)
        ending.push_back(p);
      else
        families[line_[p].prompt[depth]].push_back(p);
    }
    using family = std::tuple<bool, number, std::uint64_t, token_id>;
    std::vector<family> visits;
    for (auto const& [token, members] : families) {
      auto earliest = most;
      for (auto const p : members) earliest = std::min(earliest, line_[p].order);
      auto const continues = along && depth < now_.last.size() && now_.last[depth] == token;
      visits.emplace_back(!continues, -static_cast<number>(members.size()), earliest, token);
    }
    std::sort(visits.begin(), visits.end());
    for (auto const& [elsewhere, weight, earliest, token] : visits) walk(families[token], depth + 1, !elsewhere);
    for (auto const p : ending) rank_[p] = next_;
    if (!ending.empty()) ++next_;
  }

  [[nodiscard]] std::tuple<number, number, number, number, number> key(std::size_t p) const {
    auto const& c = line_[p];
    auto const& o = now_.options;
    auto const aging = static_cast<number>(o.aging_cost_per_turn);
    auto const age = std::max<number>(0, static_cast<number>(now_.turn) - static_cast<number>(c.enqueued_turn));
    auto rounded = age;
    while (rounded % o.band_turns != 0) ++rounded;
    auto const saved = static_cast<number>(c.saved_cost);
    auto const grouping = o.group_prefixes ? saved + rounded * std::max<number>(aging, 1) : 0;
    return {-static_cast<number>(c.priority), -grouping, o.group_prefixes ? rank_[p] : 0, -(saved + age * aging),
            static_cast<number>(c.order)};
  }

  std::span<candidate const> line_;
  candidate_line::moment const& now_;
  std::vector<number> rank_;
  number next_ = 0;
};

TEST(OrderCandidates, AgreesWithTheRuleWrittenDownPlainly) {
  constexpr std::uint32_t seed = 4'711;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random{seed};
  auto const upto = [&](std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>{0, n}(random); };
  auto const any_prompt = [&] {
    tokens prompt(upto(4));
    for (auto& token : prompt) token = static_cast<token_id>(upto(2)) - 1;
    return prompt;
  };
  for (int i = 0; i != 20'000; ++i) {
    std::vector<candidate_line::waiter> waiters(upto(10));
    for (auto& w : waiters)
      w = {.priority = upto(5) / 5,
           .saved = upto(9) / 9 * upto(20),
           .prompt = any_prompt(),
           .enqueued = upto(12),
           .arrival = upto(20)};
    candidate_line::moment const now{.turn = upto(14),
                                     .options = {.aging_cost_per_turn = upto(3) * upto(3),
                                                 .band_turns = 1 + upto(5),
                                                 .group_prefixes = upto(7) != 0,
                                                 .spread_families = upto(3) == 0},
                                     .last = any_prompt()};
    candidate_line const l{waiters};
    std::ostringstream text;
    for (auto const& c : l.candidates()) {
      text << '(' << c.priority << ' ' << c.saved_cost << " [";
      for (auto const token : c.prompt) text << token << ' ';
      text << "] " << c.enqueued_turn << ' ' << c.order << ") ";
    }
    ASSERT_EQ(l.at(now), naive_order(l.candidates(), now).sorted()) << "case " << i << ": " << text.str();
  }
}

}  // namespace
