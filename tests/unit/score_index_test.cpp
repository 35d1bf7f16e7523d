#include "support/allocations.hpp"
#include "support/bare_waiter.hpp"

#include <kvlane/detail/scan_order.hpp>
#include <kvlane/detail/score_index.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using kvlane::departure;
using kvlane::ordering_options;
using kvlane::token_id;
using kvlane::detail::score_index;
using kvlane::test::allocations_of;
using kvlane::test::failing_allocation;

using tags = std::vector<std::uint64_t>;
using tokens = std::vector<token_id>;
using indexed_waiter = kvlane::test::bare_waiter<score_index::waiter>;

constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

struct newcomer {
  std::uint32_t priority = 0;
  std::uint64_t saved_cost = 0;
  std::uint64_t demand = 1;
  tokens prompt = {};
  std::vector<std::uint64_t> blocks = {};
  std::optional<std::uint64_t> enqueued_turn = {};  ///< the present one unless said otherwise
  std::optional<std::uint64_t> number = {};         ///< as tag and arrival; counted from 1 unless said otherwise
};

/// An index with its waiters, and what is to be known of them by the rules: turn, last prompt, and saved costs as they
/// would be if everyone were told of every change.
class indexed_line {
 public:
  explicit indexed_line(ordering_options const& options = {}) : options_{options}, index_{options} {}

  std::uint64_t join(newcomer const& a) {
    auto const tag = a.number.value_or(arrivals_ + 1);
    auto w = std::make_unique<indexed_waiter>(kvlane::waiter_facts{.arrival = tag,
                                                                   .enqueued_turn = a.enqueued_turn.value_or(turn_),
                                                                   .demand = a.demand,
                                                                   .saved_cost = a.saved_cost,
                                                                   .tag = tag,
                                                                   .priority = a.priority},
                                              kvlane::prompt_view{.tokens = a.prompt, .blocks = a.blocks});
    index_.insert(*w);
    arrivals_ = std::max(arrivals_, tag);
    line_.emplace(tag, standing{std::move(w), std::min(a.saved_cost, kvlane::highest_saved_cost)});
    return tag;
  }
  /// Joins although so many allocations succeed and then one fails; false when it could not, and then nobody has.
  bool join_while_memory_fails(std::uint64_t succeeding, newcomer const& a) {
    indexed_waiter w{
        {.arrival = arrivals_ + 1, .enqueued_turn = turn_, .saved_cost = a.saved_cost, .priority = a.priority},
        {.tokens = a.prompt}};
    try {
      failing_allocation const fails{succeeding};
      index_.insert(w);
    } catch (std::bad_alloc const&) {
      return false;
    }
    index_.erase(w, departure::cancelled);
    return true;
  }
  void leave(std::uint64_t tag, departure why = departure::cancelled) {
    auto const at = line_.find(tag);
    index_.erase(*at->second.who, why);
    if (why == departure::admitted) {
      ++turn_;
      last_ = at->second.who->shared();
    }
    line_.erase(at);
  }
  void admit(std::uint64_t tag) { leave(tag, departure::admitted); }
  tags admit_all() {
    tags all;
    while (auto const tag = pick()) {
      all.push_back(tag);
      admit(tag);
    }
    return all;
  }
  /// Lets turns pass in which somebody without a prompt is admitted.
  void pass_turns(std::uint64_t turns) {
    for (std::uint64_t i = 0; i != turns; ++i) admit(join({}));
  }
  void rescore(std::uint64_t tag, std::uint64_t saved_cost) {
    auto& s = line_.at(tag);
    s.saved = std::min(saved_cost, kvlane::highest_saved_cost);
    s.who->save(saved_cost);
    index_.rescore(*s.who);
  }
  void raise(kvlane::prompt_view prefix, std::int64_t by) {
    index_.raise(prefix, by);
    for (auto& [tag, s] : line_)
      if (s.who->prompt().begins_with(prefix))
        s.saved = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(s.saved) + by, 0, static_cast<std::int64_t>(kvlane::highest_saved_cost)));
  }
  void raise(tokens const& prefix, std::int64_t by) { raise(kvlane::prompt_view{.tokens = prefix}, by); }

  [[nodiscard]] std::uint64_t pick(std::uint64_t free_tokens = no_limit, std::uint32_t min_priority = 0) const {
    auto const* const w = index_.pick(free_tokens, min_priority);
    return w == nullptr ? 0 : w->tag();
  }
  [[nodiscard]] std::uint64_t saved(std::uint64_t tag) const { return index_.saved_cost(*line_.at(tag).who); }
  [[nodiscard]] tags order() {
    tags all;
    index_.for_each_in_order([&](score_index::waiter const& w) {
      all.push_back(w.tag());
      return true;
    });
    return all;
  }

  /// By sorting everybody.
  [[nodiscard]] tags expected_order() const {
    kvlane::detail::scan_order<std::uint64_t> scan;
    scan.reserve(line_.size());
    for (auto const& [tag, s] : line_)
      scan.add({.prompt = s.who->prompt(),
                .priority = s.who->priority(),
                .saved_cost = s.saved,
                .enqueued_turn = s.who->enqueued_turn(),
                .arrival = s.who->arrival(),
                .handle = tag});
    scan.compute(turn_, options_, last_.view());
    auto const sorted = scan.sorted();
    return {sorted.begin(), sorted.end()};
  }
  void expect_as_by_rule() {
    ASSERT_EQ(order(), expected_order());
    for (auto const& [tag, s] : line_) ASSERT_EQ(saved(tag), s.saved) << "tag " << tag;
  }
  /// The first of the order who fits; 0 for nobody.
  [[nodiscard]] std::uint64_t expected_pick(std::uint64_t free_tokens, std::uint32_t min_priority) const {
    for (auto const tag : expected_order())
      if (auto const& w = *line_.at(tag).who; w.demand() <= free_tokens && w.priority() >= min_priority) return tag;
    return 0;
  }

  [[nodiscard]] score_index& index() noexcept { return index_; }
  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  [[nodiscard]] indexed_waiter& at(std::uint64_t tag) { return *line_.at(tag).who; }
  [[nodiscard]] std::uint64_t anyone(std::mt19937_64& random) const {
    return std::next(line_.begin(), static_cast<std::ptrdiff_t>(random() % line_.size()))->first;
  }
  [[nodiscard]] std::uint64_t arrivals() const noexcept { return arrivals_; }

 private:
  struct standing {
    std::unique_ptr<indexed_waiter> who;
    std::uint64_t saved = 0;
  };

  ordering_options options_;
  score_index index_;
  std::map<std::uint64_t, standing> line_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t turn_ = 0;
  kvlane::shared_prompt last_;
};

// -- the clauses of the order, one by one

TEST(ScoreIndex, OfNobodyPicksNobody) {
  indexed_line l;
  EXPECT_EQ(l.pick(), 0U);
  EXPECT_EQ(l.order(), tags{});
  l.raise(tokens{}, 5);
  l.raise(tokens{1}, 5);
  EXPECT_EQ(l.pick(), 0U);
}

TEST(ScoreIndex, HigherPrioritiesGoFirstWhateverTheyScore) {
  indexed_line l;
  l.join({.priority = 1});
  l.join({.priority = 0, .saved_cost = 1'000'000});
  l.join({.priority = 15});
  EXPECT_EQ(l.order(), (tags{3, 1, 2}));
  EXPECT_EQ(l.pick(), 3U);
}

TEST(ScoreIndex, HigherGroupingScoresGoFirstThoughFamiliesPart) {
  indexed_line l;
  l.join({.saved_cost = 5, .prompt = {1, 1}});
  l.join({.saved_cost = 7, .prompt = {2, 2}});
  l.join({.saved_cost = 6, .prompt = {1, 2}});
  EXPECT_EQ(l.order(), (tags{2, 3, 1}));
}

TEST(ScoreIndex, AgesCountInWholeBandsRoundedUp) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4}};
  auto const old = l.join({});
  l.pass_turns(1);
  auto const cached = l.join({.saved_cost = 41});
  EXPECT_EQ(l.order(), (tags{cached, old})) << "one turn is worth a band of 40";
  l.rescore(cached, 39);
  EXPECT_EQ(l.order(), (tags{old, cached}));
  l.rescore(cached, 40);
  EXPECT_EQ(l.order(), (tags{cached, old})) << "of equal grouping scores the higher effective one: 40 against 10";
}

TEST(ScoreIndex, ATurnCountsAtLeastOneForGrouping) {
  indexed_line l{{.aging_cost_per_turn = 0, .band_turns = 4}};
  auto const old = l.join({});
  l.pass_turns(1);
  auto const cached = l.join({.saved_cost = 3});
  EXPECT_EQ(l.order(), (tags{old, cached})) << "a band of 4 turns of 1 each";
  l.rescore(cached, 5);
  EXPECT_EQ(l.order(), (tags{cached, old}));
}

TEST(ScoreIndex, OfEqualGroupingScoresTheHeavierFamilyGoesFirst) {
  indexed_line l;
  l.join({.prompt = {9, 9, 9}});
  l.join({.prompt = {1, 2, 3}});
  l.join({.prompt = {1, 2, 4}});
  EXPECT_EQ(l.order(), (tags{2, 3, 1}));
}

TEST(ScoreIndex, WeightsCountThoseOfOtherScoresToo) {
  indexed_line l;
  l.join({.saved_cost = 5, .prompt = {9, 1}});
  l.join({.saved_cost = 5, .prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.priority = 3, .prompt = {1, 3}});
  EXPECT_EQ(l.order(), (tags{4, 2, 1, 3})) << "1 has three waiters, though they are in three buckets";
  l.leave(4);
  l.leave(3);
  EXPECT_EQ(l.order(), (tags{1, 2})) << "now both weigh the same, and the earliest decides";
}

TEST(ScoreIndex, OfFamiliesOfOneWeightTheOneThatCameFirstGoesFirst) {
  indexed_line l;
  l.join({.prompt = {5, 1}});
  l.join({.prompt = {3, 1}});
  l.join({.prompt = {3, 2}});
  l.join({.prompt = {5, 2}});
  EXPECT_EQ(l.order(), (tags{1, 4, 2, 3}));
  l.leave(1);
  l.join({.prompt = {5, 3}});
  EXPECT_EQ(l.order(), (tags{2, 3, 4, 5}));
}

TEST(ScoreIndex, AnEarlyArrivalThatComesBackLiftsItsFamily) {
  indexed_line l;
  l.join({.prompt = {5, 1}, .number = 10});
  l.join({.prompt = {3, 1}, .number = 11});
  EXPECT_EQ(l.order(), (tags{10, 11}));
  l.join({.prompt = {3, 2}, .number = 2});
  l.join({.prompt = {5, 2}, .number = 12});
  EXPECT_EQ(l.order(), (tags{2, 11, 10, 12}));
  l.leave(2);
  l.leave(12);
  EXPECT_EQ(l.order(), (tags{10, 11}));
}

TEST(ScoreIndex, APromptThatEndsAtANodeComesAfterItsChildren) {
  indexed_line l;
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {1, 2, 3}});
  l.join({.prompt = {1, 2, 4, 5}});
  l.join({});
  EXPECT_EQ(l.order(), (tags{2, 3, 1, 4}));
}

TEST(ScoreIndex, GoesOnWithTheFamilyServedLastThoughAnotherIsHeavier) {
  indexed_line l;
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  l.join({.prompt = {2, 3}});
  l.admit(1);
  EXPECT_EQ(l.order(), (tags{2, 3, 4, 5}));
  EXPECT_EQ(l.pick(), 2U);
  l.leave(3);
  l.admit(5);
  EXPECT_EQ(l.order(), (tags{4, 2}));
}

TEST(ScoreIndex, TheLastPromptLeadsAsFarAsItGoes) {
  indexed_line l;
  l.join({.prompt = {1, 1, 1}});
  for (auto const last : {2, 2, 3}) l.join({.prompt = {1, 2, last}});
  l.join({.prompt = {1, 1, 2}});
  l.join({.prompt = {3}});
  l.join({.prompt = {1, 1}});
  l.admit(1);
  EXPECT_EQ(l.order(), (tags{5, 7, 2, 3, 4, 6}));
  EXPECT_EQ(l.order(), l.expected_order());
}

TEST(ScoreIndex, WithSpreadFamiliesDoesNotStay) {
  indexed_line l{{.spread_families = true}};
  for (auto const first : {1, 1, 2, 2}) l.join({.prompt = {first, static_cast<token_id>(l.size())}});
  EXPECT_EQ(l.admit_all(), (tags{1, 3, 2, 4}));
}

TEST(ScoreIndex, TokensComeBeforeBlocks) {
  indexed_line l;
  l.join({.blocks = {1, 2}});
  l.join({.blocks = {1, 3}});
  l.join({.prompt = {1, 2}});
  EXPECT_EQ(l.order(), (tags{3, 1, 2}));
  l.admit(1);
  EXPECT_EQ(l.order(), (tags{3, 2})) << "though blocks were served last";
}

TEST(ScoreIndex, EqualPromptsGoByEffectiveScoreAndThenByArrival) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4}};
  l.join({.prompt = {1}});
  l.join({.prompt = {1}});
  l.pass_turns(1);
  auto const cached = l.join({.saved_cost = 40, .prompt = {1}});
  EXPECT_EQ(l.order(), (tags{cached, 1, 2})) << "grouping scores are all 40; effective ones 40, 10, 10";
}

TEST(ScoreIndex, WithoutGroupingGoesByScoreAndArrival) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4, .group_prefixes = false}};
  l.join({.prompt = {9, 9, 9}});
  l.join({.prompt = {1, 2, 3}});
  l.join({.prompt = {1, 2, 4}});
  EXPECT_EQ(l.order(), (tags{1, 2, 3}));
  l.pass_turns(1);
  auto const cached = l.join({.saved_cost = 10});
  EXPECT_EQ(l.order(), (tags{1, 2, 3, cached})) << "a turn is worth 10 and no band";
  l.rescore(cached, 11);
  EXPECT_EQ(l.order(), (tags{cached, 1, 2, 3}));
  l.rescore(3, 2);
  EXPECT_EQ(l.order(), (tags{3, cached, 1, 2}));
}

TEST(ScoreIndex, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(score_index{{.band_turns = 0}}, std::invalid_argument);
  EXPECT_THROW((score_index{{.aging_cost_per_turn = kvlane::highest_aging_cost + 1}}), std::invalid_argument);
}

// -- who fits

TEST(ScoreIndex, PicksTheFirstWhoFits) {
  indexed_line l;
  l.join({.saved_cost = 9, .demand = 50});
  l.join({.saved_cost = 8, .demand = 20});
  l.join({.demand = 0});
  EXPECT_EQ(l.pick(50), 1U);
  EXPECT_EQ(l.pick(49), 2U);
  EXPECT_EQ(l.pick(19), 3U);
  l.leave(3);
  EXPECT_EQ(l.pick(19), 0U);
}

TEST(ScoreIndex, FitsWithinAFamilyAndAmongEqualPrompts) {
  indexed_line l;
  l.join({.demand = 9, .prompt = {1, 1}});
  l.join({.demand = 8, .prompt = {1, 2}});
  l.join({.demand = 3, .prompt = {1, 2}});
  l.join({.demand = 2, .prompt = {5}});
  EXPECT_EQ(l.order(), (tags{2, 3, 1, 4}));
  EXPECT_EQ(l.pick(9), 2U);
  EXPECT_EQ(l.pick(7), 3U);
  EXPECT_EQ(l.pick(2), 4U);
  EXPECT_EQ(l.pick(1), 0U);
}

TEST(ScoreIndex, AFamilyServedLastThatDoesNotFitIsPassedOver) {
  indexed_line l;
  l.join({.prompt = {1, 1}});
  l.join({.demand = 9, .prompt = {1, 2}});
  l.join({.demand = 5, .prompt = {2, 1}});
  l.admit(1);
  EXPECT_EQ(l.pick(9), 2U);
  EXPECT_EQ(l.pick(8), 3U);
}

TEST(ScoreIndex, PicksNobodyBelowTheFloor) {
  for (auto const grouped : {true, false}) {
    indexed_line l{{.group_prefixes = grouped}};
    l.join({.priority = 2, .demand = 50});
    l.join({.priority = 1, .demand = 5});
    EXPECT_EQ(l.pick(5, 1), 2U);
    EXPECT_EQ(l.pick(5, 2), 0U);
    EXPECT_EQ(l.pick(50, 2), 1U);
    EXPECT_EQ(l.pick(50, 3), 0U);
  }
}

// -- residue classes

TEST(ScoreIndex, TiesBetweenWaitersOfDifferentTurnsAreDecidedByTheWalk) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4}};
  l.join({.saved_cost = 40, .prompt = {1, 1}});
  l.pass_turns(1);
  l.join({.saved_cost = 80, .prompt = {2, 1}, .number = 100});
  l.join({.saved_cost = 80, .prompt = {2, 2}, .number = 101});
  EXPECT_EQ(l.order(), (tags{100, 101, 1})) << "all at 80, and family 2 is heavier";
  EXPECT_EQ(l.pick(), 100U);
  l.leave(101);
  EXPECT_EQ(l.order(), (tags{1, 100})) << "alike, and 1 came first";
  EXPECT_EQ(l.pick(), 1U);
}

TEST(ScoreIndex, TwoWaitersSwapAndSwapBackAsTheirClassesGain) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4}};
  l.join({.prompt = {1}});  // turn 0
  l.pass_turns(1);
  l.join({.prompt = {2}, .number = 100});                     // turn 1
  for (auto i = 0U; i != 3; ++i) l.join({.prompt = {2, 9}});  // which make it the heavier family
  for (int turn = 1; turn != 12; ++turn) {
    SCOPED_TRACE(turn);
    l.expect_as_by_rule();
    auto const one_is_ahead = turn % 4 == 1;  // only then has it a band more
    EXPECT_EQ(l.order().front() == 1U, one_is_ahead);
    l.pass_turns(1);
  }
}

TEST(ScoreIndex, ABandLargerThanAllTurnsGivesEveryAgeTheSameScore) {
  indexed_line l{
      {.aging_cost_per_turn = kvlane::highest_aging_cost, .band_turns = std::numeric_limits<std::uint32_t>::max()}};
  l.join({.prompt = {1}});
  l.pass_turns(3);
  l.join({.prompt = {2}});
  l.pass_turns(2);
  auto const fresh = l.join({.saved_cost = kvlane::highest_saved_cost});
  EXPECT_EQ(l.order().back(), fresh) << "a band of 2^32 - 1 turns of 2^20 each is worth more than any prefix";
  EXPECT_EQ(l.order().front(), 1U);
  l.expect_as_by_rule();
}

TEST(ScoreIndex, ReadmittedWorkAgesFromTheTurnInWhichItFirstCame) {
  indexed_line l{{.aging_cost_per_turn = 10, .band_turns = 4}};
  l.pass_turns(9);
  auto const fresh = l.join({.saved_cost = 119, .prompt = {1}});
  auto const back = l.join({.prompt = {2}, .enqueued_turn = 0});
  EXPECT_EQ(l.order(), (tags{back, fresh})) << "nine turns are three bands of 40";
  l.rescore(fresh, 121);
  EXPECT_EQ(l.order(), (tags{fresh, back}));
}

class ScoreIndexBands : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ScoreIndexBands, AgreeWithSortingAtEveryTurn) {
  constexpr auto first_seed = 300U;
  for (auto seed = first_seed; seed != first_seed + 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random{seed};
    indexed_line l{{.aging_cost_per_turn = std::vector<std::uint64_t>{0, 1, 10, kvlane::highest_aging_cost}[seed % 4],
                    .band_turns = GetParam()}};
    for (int step = 0; step != 250; ++step) {
      auto const unit = seed % 4 == 2 ? 10 * std::uint64_t{GetParam()} : 1;
      if (l.size() < 25) {
        newcomer a{.saved_cost = random() % 4 * unit, .demand = random() % 10};
        for (auto n = random() % 3; n != 0; --n) a.prompt.push_back(static_cast<token_id>(random() % 2));
        if (random() % 4 == 0) a.enqueued_turn = random() % (l.turn() + 1);
        l.join(a);
      }
      if (random() % 2 == 0) l.admit(l.anyone(random));
      l.expect_as_by_rule();
      auto const free = random() % 10;
      ASSERT_EQ(l.pick(free), l.expected_pick(free, 0)) << "step " << step;
      ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ScoreIndexBands,
                         testing::Values(1U, 3U, 4U, 7U, 1'000'000U, std::numeric_limits<std::uint32_t>::max()),
                         [](auto const& suite) { return std::to_string(suite.param) + "Turns"; });

// -- saved costs that change

TEST(ScoreIndex, FollowsARescoredWaiter) {
  indexed_line l;
  l.join({.prompt = {1}});
  l.join({.prompt = {2}});
  l.rescore(2, 1);
  EXPECT_EQ(l.order(), (tags{2, 1}));
  l.rescore(1, std::uint64_t{1} << 50);
  l.rescore(2, kvlane::highest_saved_cost);
  EXPECT_EQ(l.order(), (tags{1, 2})) << "2^50 counts as 2^48 - 1";
  EXPECT_EQ(l.saved(1), kvlane::highest_saved_cost);
  l.rescore(1, 0);
  EXPECT_EQ(l.order(), (tags{2, 1}));
}

TEST(ScoreIndex, EverybodyRisesWithACommonPrefix) {
  indexed_line l;
  l.join({.saved_cost = 3, .prompt = {1, 2}});
  l.join({.prompt = {1, 3}});
  l.raise({1}, 10);
  EXPECT_EQ(l.saved(1), 13U);
  EXPECT_EQ(l.saved(2), 10U);
  EXPECT_EQ(l.order(), (tags{1, 2}));
  l.join({.saved_cost = 11, .prompt = {1, 4}});
  EXPECT_EQ(l.saved(3), 11U) << "a newcomer is as it says, whatever has risen before";
  EXPECT_EQ(l.order(), (tags{1, 3, 2}));
  l.rescore(2, 12);
  EXPECT_EQ(l.order(), (tags{1, 2, 3}));
  l.raise(tokens{}, -5);
  EXPECT_EQ(l.saved(1), 8U);
  EXPECT_EQ(l.saved(2), 7U);
  EXPECT_EQ(l.saved(3), 6U);
}

TEST(ScoreIndex, MostRiseAndTheOthersStay) {
  indexed_line l;
  for (auto const last : {1, 2, 3}) l.join({.prompt = {1, last}});
  l.join({.saved_cost = 5, .prompt = {2}});
  l.raise({1}, 4);
  EXPECT_EQ(l.order(), (tags{4, 1, 2, 3}));
  l.raise({1}, 2);
  EXPECT_EQ(l.order(), (tags{1, 2, 3, 4}));
  for (auto const tag : {1U, 2U, 3U}) EXPECT_EQ(l.saved(tag), 6U);
  EXPECT_EQ(l.saved(4), 5U);
}

TEST(ScoreIndex, FewRiseAndTheOthersStay) {
  indexed_line l;
  for (auto const first : {1, 2, 3, 4}) l.join({.prompt = {first}});
  l.raise({3}, 4);
  EXPECT_EQ(l.order(), (tags{3, 1, 2, 4}));
  EXPECT_EQ(l.saved(3), 4U);
  EXPECT_EQ(l.saved(1), 0U);
  l.raise({3}, -4);
  EXPECT_EQ(l.order(), (tags{1, 2, 3, 4}));
}

TEST(ScoreIndex, NobodyRisesWithAPrefixThatNobodyHas) {
  indexed_line l;
  l.join({.prompt = {1, 2}});
  l.join({.blocks = {3}});
  for (auto const& prefix : {tokens{2}, tokens{1, 3}, tokens{1, 2, 3}, tokens{3}}) l.raise(prefix, 100);
  EXPECT_EQ(l.saved(1), 0U);
  EXPECT_EQ(l.saved(2), 0U);
}

TEST(ScoreIndex, APrefixThatEndsInTheMiddleOfAnEdgeRaisesThoseBelow) {
  indexed_line l;
  l.join({.prompt = {1, 2, 3, 4}});
  l.join({.prompt = {1, 2, 3, 5}});
  l.join({.prompt = {1, 2}});
  l.join({.prompt = {7}});
  l.join({.prompt = {7}});
  l.raise({1, 2, 3}, 9);
  EXPECT_EQ(l.saved(1), 9U);
  EXPECT_EQ(l.saved(2), 9U);
  EXPECT_EQ(l.saved(3), 0U);
  std::vector<std::uint64_t> const one{1};
  l.raise(kvlane::prompt_view{.blocks = one}, 9);
  EXPECT_EQ(l.saved(3), 0U) << "hashes are no tokens";
}

TEST(ScoreIndex, SavedCostsStayAbove0AndBelowTheHighest) {
  constexpr auto ceiling = static_cast<std::int64_t>(kvlane::highest_saved_cost);
  indexed_line l;
  l.join({.saved_cost = 5, .prompt = {1}});
  l.join({.saved_cost = 50, .prompt = {1}});
  l.raise(tokens{}, -10);
  EXPECT_EQ(l.saved(1), 0U);
  EXPECT_EQ(l.saved(2), 40U);
  l.raise(tokens{}, ceiling);
  EXPECT_EQ(l.saved(1), kvlane::highest_saved_cost);
  EXPECT_EQ(l.saved(2), kvlane::highest_saved_cost) << "40 of it are lost";
  l.raise({1}, -ceiling);
  EXPECT_EQ(l.saved(1), 0U);
  EXPECT_EQ(l.saved(2), 0U);
  EXPECT_EQ(l.order(), (tags{1, 2}));
  l.raise({1}, ceiling);
  l.raise({1}, 1);
  EXPECT_EQ(l.saved(1), kvlane::highest_saved_cost) << "exactly the highest is allowed, one more is not";
  l.expect_as_by_rule();
}

TEST(ScoreIndex, MostAreHeldAtABoundWhileOthersStay) {
  indexed_line l;
  l.join({.saved_cost = 1, .prompt = {1, 1}});
  l.join({.saved_cost = 9, .prompt = {1, 2}});
  l.join({.saved_cost = 9, .prompt = {1, 3}});
  l.join({.saved_cost = 4, .prompt = {2}});
  l.raise({1}, -5);
  EXPECT_EQ(l.saved(1), 0U);
  EXPECT_EQ(l.saved(2), 4U);
  EXPECT_EQ(l.saved(4), 4U);
  l.expect_as_by_rule();
}

TEST(ScoreIndex, ANewLineDoesNotRememberTheBoundsOfTheLast) {
  indexed_line l;
  l.join({.saved_cost = kvlane::highest_saved_cost, .prompt = {1}});
  l.leave(1);
  l.join({.saved_cost = 7, .prompt = {1}});
  l.join({.saved_cost = 3, .prompt = {1}});
  l.raise({1}, -3);
  l.raise({1}, 1000);
  EXPECT_EQ(l.saved(2), 1004U);
  EXPECT_EQ(l.saved(3), 1000U);
}

// -- at what cost: a waiter keeps its saved cost less what everybody's has risen by, so what it keeps tells who was moved

std::vector<std::int64_t> kept_by(indexed_line& l, tags const& of) {
  std::vector<std::int64_t> kept;
  for (auto const tag : of) kept.push_back(l.at(tag).saved);
  return kept;
}

TEST(ScoreIndex, MovesThoseWhoRiseOrThoseWhoDoNotWhoeverAreFewer) {
  using kept = std::vector<std::int64_t>;
  indexed_line l;
  for (auto const last : {1, 2, 3}) l.join({.prompt = {1, last}});
  l.join({.prompt = {2}});
  tags const all{1, 2, 3, 4};
  l.raise(tokens{}, 8);
  EXPECT_EQ(kept_by(l, all), (kept{0, 0, 0, 0})) << "nobody is moved when all rise";
  l.raise({1}, 8);
  EXPECT_EQ(kept_by(l, all), (kept{0, 0, 0, -8})) << "the one who does not rise";
  l.raise({2}, 10);
  EXPECT_EQ(kept_by(l, all), (kept{0, 0, 0, 2})) << "the one who does";
  l.raise({1}, -8);
  EXPECT_EQ(kept_by(l, all), (kept{0, 0, 0, 10}));
  l.expect_as_by_rule();
}

TEST(ScoreIndex, MovesNobodyWhileAllStayWithinTheBounds) {
  indexed_line l;
  l.join({.saved_cost = kvlane::highest_saved_cost - 5});
  l.join({.saved_cost = 3});
  auto const before = kept_by(l, {1, 2});
  l.raise(tokens{}, 5);
  EXPECT_EQ(l.saved(1), kvlane::highest_saved_cost);
  l.raise(tokens{}, -8);
  EXPECT_EQ(l.saved(2), 0U);
  EXPECT_EQ(kept_by(l, {1, 2}), before);
  l.expect_as_by_rule();
}

TEST(ScoreIndex, MovesNobodyOfANewLineForTheBoundsOfTheLast) {
  indexed_line l;
  l.join({.saved_cost = kvlane::highest_saved_cost});
  l.join({.saved_cost = 0});
  l.leave(1);
  l.leave(2);
  l.join({.saved_cost = 7});
  auto const before = kept_by(l, {3});
  l.raise(tokens{}, 1000);
  l.raise(tokens{}, -7);
  EXPECT_EQ(l.saved(3), 1000U);
  EXPECT_EQ(kept_by(l, {3}), before);
}

TEST(ScoreIndex, CountsNobodyWhoseInsertFoundNoMemory) {
  indexed_line l;
  tags all;
  for (int i = 0; i != 8; ++i) all.push_back(l.join({.prompt = {1}}));  // as many as there is room for
  for (int i = 0; i != 20; ++i) ASSERT_FALSE(l.join_while_memory_fails(0, {.prompt = {1}}));
  l.raise({1}, 5);
  EXPECT_EQ(kept_by(l, all), std::vector<std::int64_t>(8, 0)) << "those who rise are all there are";
  EXPECT_EQ(l.saved(1), 5U);
}

TEST(ScoreIndex, WithoutGroupingPrefixesRaiseJustTheSame) {
  indexed_line l{{.group_prefixes = false}};
  l.join({.prompt = {1, 1}});
  l.join({.prompt = {2, 1}});
  l.join({.prompt = {2, 2}});
  l.raise({2}, 5);
  EXPECT_EQ(l.order(), (tags{2, 3, 1}));
  l.raise({1}, 6);
  EXPECT_EQ(l.order(), (tags{1, 2, 3}));
  l.raise(tokens{}, 100);
  EXPECT_EQ(l.saved(1), 106U);
  l.expect_as_by_rule();
}

// -- showing, and memory

TEST(ScoreIndex, StopsShowingTheLineWhenTold) {
  for (auto const grouped : {true, false}) {
    indexed_line l{{.group_prefixes = grouped}};
    for (int i = 0; i != 5; ++i) l.join({});
    tags shown;
    l.index().for_each_in_order([&](score_index::waiter const& w) {
      shown.push_back(w.tag());
      return shown.size() != 3;
    });
    EXPECT_EQ(shown, (tags{1, 2, 3}));
    EXPECT_EQ(l.order().size(), 5U) << "and shows all of it the next time";
  }
}

/// Somebody of a few families, costs and turns.
newcomer random_arrival(indexed_line const& l, std::mt19937_64& random) {
  newcomer a{.priority = static_cast<std::uint32_t>(random() % 3),
             .saved_cost = random() % 5 == 0 ? random() % 50 : random() % 3 * 16,
             .demand = random() % 20};
  if (random() % 4 == 0) {
    a.blocks.resize(random() % 4);
    for (auto& b : a.blocks) b = random() % 3 == 0 ? no_limit - random() % 2 : random() % 2;
  } else {
    a.prompt.resize(random() % 6);
    for (auto& t : a.prompt) t = static_cast<token_id>(random() % 3) - 1;
  }
  if (random() % 6 == 0) a.enqueued_turn = random() % (l.turn() + 1);
  return a;
}

TEST(ScoreIndex, OnlyInsertAllocates) {
  constexpr auto seed = 808U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  EXPECT_GT(allocations_of([] { EXPECT_NE(std::make_unique<int>(), nullptr); }), 0U) << "somebody must count";
  for (auto const grouped : {true, false}) {
    std::mt19937_64 random{seed};
    indexed_line l{{.aging_cost_per_turn = 4, .group_prefixes = grouped}};
    for (int i = 0; i != 300; ++i) {
      l.join(random_arrival(l, random));
      if (i % 6 == 5) l.admit(l.pick());
    }
    std::vector<indexed_waiter*> all;
    for (auto const tag : l.order()) all.push_back(&l.at(tag));
    auto& index = l.index();
    tokens const few{0, 1};
    auto const use = [&] {
      for (auto* const w : all) {
        w->save(random() % 100);
        index.rescore(*w);
      }
      index.raise({}, 50);
      index.raise({}, -500);
      index.raise({.tokens = few}, 7);
      for (std::uint64_t free = 0; free != 20; ++free) EXPECT_NE(index.pick(free + 1, 0), nullptr);
      std::size_t shown = 0;
      index.for_each_in_order([&](score_index::waiter const&) { return ++shown != 0; });
      EXPECT_EQ(shown, all.size());
      for (auto* const w : all) index.erase(*w, random() % 2 == 0 ? departure::admitted : departure::expired);
    };
    EXPECT_EQ(allocations_of(use), 0U);
    EXPECT_EQ(index.pick(no_limit, 0), nullptr);
    for (auto* const w : all) index.insert(*w);  // for the harness to take them out again
  }
}

TEST(ScoreIndex, AnInsertThatFindsNoMemoryChangesNothing) {
  constexpr auto seed = 909U;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random{seed};
  indexed_line l{{.aging_cost_per_turn = 4}};
  std::uint64_t failed = 0;
  for (int joined = 0; joined != 70; ++joined) {
    auto const a = random_arrival(l, random);
    // What has been made room for stays, so letting one more succeed each time fails every allocation once.
    for (std::uint64_t succeeding = 0; !l.join_while_memory_fails(succeeding, a); succeeding = 1) {
      ++failed;
      l.expect_as_by_rule();
      ASSERT_FALSE(HasFatalFailure()) << joined << " have joined";
    }
    l.join(a);
    if (random() % 8 == 0) l.admit(l.pick());
  }
  EXPECT_GT(failed, 20U) << "room was made several times, in several pieces each";
}

class ScoreIndexOptions : public testing::TestWithParam<ordering_options> {};

TEST_P(ScoreIndexOptions, AgreeWithSortingWhateverHappens) {
  constexpr auto first_seed = 4000U;
  for (auto seed = first_seed; seed != first_seed + 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random{seed};
    auto const crowd = 2 + random() % 40;
    indexed_line l{GetParam()};
    for (int step = 0; step != 300; ++step) {
      auto const what = l.size() == 0 ? 0 : random() % 10;
      if (what < 4 && l.size() < crowd) {
        auto a = random_arrival(l, random);
        a.number = (random() % 8 == 0 ? 0 : 1'000'000) + static_cast<std::uint64_t>(step) + 1;
        l.join(a);
      } else if (what < 5) {
        l.leave(l.anyone(random), random() % 2 == 0 ? departure::expired : departure::refused);
      } else if (what < 6) {
        l.rescore(l.anyone(random), random() % 4 * 16);
      } else if (what < 8) {
        auto const of = l.at(l.anyone(random)).prompt();
        auto const length = random() % (kvlane::detail::length_of(of) + 1);
        auto const by = static_cast<std::int64_t>(random() % 9) * 16 - 64;
        l.raise(kvlane::detail::head_of(of, length), by);
      } else if (auto const tag = l.pick(random() % 20); tag != 0) {
        l.admit(tag);
      }
      l.expect_as_by_rule();
      auto const free = random() % 25;
      auto const floor = static_cast<std::uint32_t>(random() % 4);
      ASSERT_EQ(l.pick(free, floor), l.expected_pick(free, floor)) << "step " << step;
      ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(With, ScoreIndexOptions,
                         testing::Values(ordering_options{.aging_cost_per_turn = 4},
                                         ordering_options{.aging_cost_per_turn = 4, .spread_families = true},
                                         ordering_options{.aging_cost_per_turn = 4, .group_prefixes = false},
                                         ordering_options{.aging_cost_per_turn = 0, .band_turns = 3},
                                         ordering_options{.aging_cost_per_turn = 16, .band_turns = 1},
                                         ordering_options{.aging_cost_per_turn = 2, .band_turns = 8}),
                         [](auto const& suite) { return "Set" + std::to_string(suite.index); });

}  // namespace
