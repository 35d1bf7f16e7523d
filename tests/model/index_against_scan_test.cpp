// The index of cache_aware held against sorting everybody: by itself, inside a core with a long line, and told of the cache
// prefix by prefix where the other is told waiter by waiter.

#include "support/bare_waiter.hpp"

#include <kvlane/admission_core.hpp>
#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/ordering/cache_aware_scan.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace kvlane {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t effort = 2;
#elif defined(NDEBUG)
constexpr std::size_t effort = 10;
#else
constexpr std::size_t effort = 3;
#endif

using generator = std::mt19937_64;
using tags = std::vector<std::uint64_t>;

/// A prompt that owns its symbols.
struct symbols {
  std::vector<token_id> tokens;
  std::vector<std::uint64_t> blocks;

  [[nodiscard]] prompt_view view() const { return {.tokens = tokens, .blocks = blocks}; }
};

ordering_options random_options(generator& random) {
  constexpr std::array<std::uint64_t, 5> agings{0, 1, 3, 16, 4096};
  constexpr std::array<std::uint32_t, 7> bands{1, 2, 3, 4, 4, 7, 1'000'000};
  return {.aging_cost_per_turn = agings[random() % agings.size()],
          .band_turns = bands[random() % bands.size()],
          .group_prefixes = random() % 5 != 0,
          .spread_families = random() % 4 == 0};
}

template <class Policy>
tags order_of(Policy& p) {
  tags all;
  p.for_each_in_order([&](waiter_base const& w) {
    all.push_back(w.tag());
    return true;
  });
  return all;
}

// -- the policies by themselves

/// One line in an index and in a scan: every waiter stands in both.
class two_lines {
 public:
  explicit two_lines(ordering_options const& options) : index_{options}, scan_{options} {}

  void join(waiter_facts const& facts, prompt_view prompt) {
    auto& p = line_[facts.tag] = std::make_unique<places>(facts, prompt);
    index_.insert(p->in_index);
    scan_.insert(p->in_scan);
  }
  void leave(std::uint64_t tag, departure why) {
    auto const p = line_.extract(tag);
    index_.erase(p.mapped()->in_index, why);
    scan_.erase(p.mapped()->in_scan, why);
    if (why == departure::admitted) ++turn_;
  }
  void rescore(std::uint64_t tag, std::uint64_t saved_cost) {
    auto& p = *line_.at(tag);
    p.in_index.save(saved_cost);
    p.in_scan.save(saved_cost);
    index_.rescore(p.in_index);
    scan_.rescore(p.in_scan);
  }
  /// Whom both pick; 0 for nobody.
  std::uint64_t pick(pick_query const& q) {
    auto const* const by_index = index_.pick(q);
    auto const* const by_scan = scan_.pick(q);
    EXPECT_EQ(by_index == nullptr, by_scan == nullptr);
    if (by_index == nullptr || by_scan == nullptr) return 0;
    EXPECT_EQ(by_index->tag(), by_scan->tag());
    return by_index->tag();
  }
  void expect_one_order() { ASSERT_EQ(order_of(index_), order_of(scan_)); }

  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  [[nodiscard]] std::uint64_t anyone(generator& random) const {
    return std::next(line_.begin(), static_cast<std::ptrdiff_t>(random() % line_.size()))->first;
  }

 private:
  struct places {
    places(waiter_facts const& facts, prompt_view prompt) : in_index{facts, prompt}, in_scan{facts, prompt} {}
    test::bare_waiter<cache_aware::waiter> in_index;
    test::bare_waiter<cache_aware_scan::waiter> in_scan;
  };

  cache_aware index_;
  cache_aware_scan scan_;
  std::map<std::uint64_t, std::unique_ptr<places>> line_;
  std::uint64_t turn_ = 0;
};

/// A small world with rules of its own: few symbols make families, few costs make ties.
class world {
 public:
  explicit world(std::uint64_t seed) : random_{seed}, lines_{random_options(random_)} {}

  void run(int steps) {
    for (int step = 0; step != steps; ++step) {
      event();
      lines_.expect_one_order();
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
    }
    while (lines_.size() != 0) lines_.leave(lines_.anyone(random_), departure::cancelled);
  }

  [[nodiscard]] std::uint64_t admitted() const noexcept { return admitted_; }

 private:
  void event() {
    auto const what = lines_.size() == 0 ? 0 : random_() % 12;
    if (what < 5 && lines_.size() < crowd_) return join();
    if (what == 5) return lines_.leave(lines_.anyone(random_), any_departure());
    if (what < 8) return lines_.rescore(lines_.anyone(random_), cost());
    pick_query const q{.free_tokens = random_() % 3 == 0 ? random_() % 8 : random_() % 60,
                       .min_priority = random_() % 4 == 0 ? static_cast<std::uint32_t>(random_() % 4) : 0};
    auto const picked = lines_.pick(q);
    if (picked == 0 || random_() % 4 == 0) return;
    ++admitted_;
    lines_.leave(picked, departure::admitted);
  }

  void join() {
    symbols s;
    auto const length = random_() % longest_;
    if (random_() % 4 == 0) {
      s.blocks.resize(length);
      for (auto& b : s.blocks) b = random_() % 3 == 0 ? ~(random_() % 2) : random_() % alphabet_;
    } else {
      s.tokens.resize(length);
      for (auto& t : s.tokens) t = static_cast<token_id>(random_() % alphabet_) - 1;
    }
    ++joined_;
    auto const readmitted = random_() % 10 == 0;
    lines_.join({.arrival = readmitted ? joined_ : 1'000'000 + joined_,
                 .enqueued_turn = readmitted ? random_() % (lines_.turn() + 1) : lines_.turn(),
                 .demand = random_() % 40,
                 .saved_cost = cost(),
                 .tag = joined_,
                 .priority = static_cast<std::uint32_t>(random_() % priorities_)},
                s.view());
  }
  std::uint64_t cost() {
    if (random_() % 16 == 0) return std::uint64_t{1} << 50;
    return spread_costs_ ? random_() % 100 : random_() % 3 * 16;
  }
  departure any_departure() {
    constexpr std::array all{departure::admitted, departure::cancelled, departure::expired, departure::refused};
    return all[random_() % all.size()];
  }

  generator random_;
  two_lines lines_;
  std::size_t crowd_ = 2 + random_() % 60;
  std::uint64_t longest_ = 1 + random_() % 12;
  std::uint64_t alphabet_ = 1 + random_() % 4;
  std::uint64_t priorities_ = 1 + random_() % 3;
  bool spread_costs_ = random_() % 2 == 0;
  std::uint64_t joined_ = 0;
  std::uint64_t admitted_ = 0;
};

TEST(IndexAndScan, AreOneOrderInRandomWorlds) {
  constexpr std::uint64_t first_seed = 61'000;
  auto const worlds = 150 * effort;
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + worlds - 1));
  std::uint64_t admitted = 0;
  for (auto seed = first_seed; seed != first_seed + worlds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    world w{seed};
    w.run(400);
    admitted += w.admitted();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(admitted, worlds * 30);
}

// -- two cores

/// A core and all who wait in it or hold something of it, by tag.
template <class Policy>
class seat {
 public:
  using core_type = admission_core<Policy>;
  using waiter = typename core_type::waiter;

  seat(limits const& l, Policy policy) : core{l, std::move(policy)} {}

  core_type core;
  typename core_type::outcomes ended;
  std::map<std::uint64_t, std::unique_ptr<waiter>> places;
  std::map<std::uint64_t, grant> held;

  /// What has happened since the last call: of each outcome its tag, and its lane or why not, in order.
  tags settle() {
    tags told;
    while (auto* const w = ended.pop_front()) {
      auto const tag = w->tag();
      told.push_back(tag);
      if (auto const* const g = w->granted()) {
        told.push_back(g->lane);
        told.push_back(g->overtaken);
        held.emplace(tag, *g);
      } else {
        auto const& no = std::get<rejection>(w->outcome());
        told.push_back(1'000'000 + static_cast<std::uint64_t>(no.code()));
        told.push_back(static_cast<std::uint64_t>(no.blocked()));
      }
      places.erase(tag);
    }
    return told;
  }

  /// Says as one number what became of a newcomer.
  std::uint64_t judge(request const& r) {
    auto place = std::make_unique<waiter>();
    place->copy_prompt({.tokens = r.prompt, .blocks = r.prefix_blocks});
    auto const v = core.judge(r, patience::waits, place.get());
    if (auto const* const g = std::get_if<grant>(&v)) {
      held.emplace(r.tag, *g);
      return g->lane;
    }
    if (auto const* const no = std::get_if<rejection>(&v)) return 1'000'000 + static_cast<std::uint64_t>(no->code());
    places.emplace(r.tag, std::move(place));
    return 2'000'000;
  }
  /// Preempts the work `of`; it goes on as `r`.
  bool readmit(std::uint64_t of, request const& r) {
    auto place = std::make_unique<waiter>();
    place->copy_prompt({.tokens = r.prompt, .blocks = r.prefix_blocks});
    auto const v = core.readmit(held.at(of), r, *place, ended);
    if (std::holds_alternative<rejection>(v)) return false;
    held.erase(of);
    places.emplace(r.tag, std::move(place));
    return true;
  }
  tags order() { return order_of(core); }
};

/// Two cores that are asked the same, with two policies that shall be one order.
template <class A, class B>
class two_cores {
 public:
  two_cores(limits const& l, A a, B b) : a_{l, std::move(a)}, b_{l, std::move(b)} {}

  /// Runs one event in both; `change(seat)` returns what it wants to be compared.
  template <class F>
  void event(time_point now, F const& change) {
    auto const in = [&](auto& s) {
      s.core.advance(now, s.ended);
      auto said = change(s);
      s.core.dispatch(s.ended);
      auto const told = s.settle();
      said.insert(said.end(), told.begin(), told.end());
      outcomes_ = told.size() / 3;
      return said;
    };
    ASSERT_EQ(in(a_), in(b_));
    all_outcomes_ += outcomes_;
    ASSERT_EQ(a_.core.waiting(), b_.core.waiting());
    ASSERT_EQ(a_.held.size(), b_.held.size());
  }
  void join(time_point now, request const& r) {
    event(now, [&](auto& s) {
      s.core.dispatch(s.ended);
      return tags{s.judge(r)};
    });
  }
  void expect_one_order() { ASSERT_EQ(a_.order(), b_.order()); }

  [[nodiscard]] std::uint64_t outcomes() const noexcept { return all_outcomes_; }
  [[nodiscard]] seat<A>& first() noexcept { return a_; }
  [[nodiscard]] seat<B>& second() noexcept { return b_; }
  [[nodiscard]] std::uint64_t anyone_waiting(generator& random) const { return any_of(a_.places, random); }
  [[nodiscard]] std::uint64_t anyone_running(generator& random) const { return any_of(a_.held, random); }
  [[nodiscard]] bool anyone_waits() const noexcept { return !a_.places.empty(); }
  [[nodiscard]] bool anyone_runs() const noexcept { return !a_.held.empty(); }

 private:
  static std::uint64_t any_of(auto const& all, generator& random) {
    // The next after a random tag: as good as any, and no walk along a long line.
    auto const at = all.lower_bound(random() % (all.rbegin()->first + 1));
    return at->first;
  }

  seat<A> a_;
  seat<B> b_;
  std::size_t outcomes_ = 0;
  std::uint64_t all_outcomes_ = 0;
};

/// Requests of families that share system prompts and go on as chats do.
class chats {
 public:
  explicit chats(std::uint64_t families) : families_{families} {}

  /// The prompt lives until the next call.
  request next(generator& random) {
    prompt_.assign(1, random() % families_);
    for (auto turns = random() % 5; turns != 0; --turns) prompt_.push_back(random() % 3);
    request r{.prefix_blocks = prompt_,
              .prompt_tokens = 1 + random() % 60,
              .max_tokens = static_cast<std::uint32_t>(random() % 30),
              .priority = random() % 20 == 0 ? 1U : 0U,
              .saved_cost = random() % 4 * 4096,
              .tag = ++tags_};
    return r;
  }
  [[nodiscard]] std::uint64_t families() const noexcept { return families_; }

 private:
  std::uint64_t families_;
  std::vector<std::uint64_t> prompt_;
  std::uint64_t tags_ = 0;
};

TEST(IndexAndScan, AgreeOnEveryOutcomeOfACoreWithTenThousandWaiting) {
  using namespace std::chrono_literals;
  constexpr std::uint64_t seed = 10'000;
  constexpr std::uint64_t crowd = 10'000;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  generator random{seed};
  limits const l{.lanes = 4, .kv_capacity = 400, .max_waiting = 100'000, .max_overtakes = 3000};
  two_cores<cache_aware, cache_aware_scan> both{l, cache_aware{}, cache_aware_scan{}};
  chats source{300};
  time_point now{};
  auto const request_now = [&] {
    auto r = source.next(random);
    if (random() % 20 == 0) r.deadline = now + std::chrono::milliseconds{random() % 8000};
    return r;
  };

  both.event(now, [](auto& s) {
    s.core.begin_hold();
    return tags{};
  });
  for (std::uint64_t i = 0; i != crowd; ++i) both.join(now, request_now());
  ASSERT_EQ(both.first().core.waiting(), crowd);
  both.expect_one_order();
  both.event(now, [](auto& s) {
    s.core.end_hold();
    return tags{};
  });

  // Every admission sorts ten thousand in the other core, so time goes by on the way to it.
  auto const events = std::size_t{600} * effort;
  std::uint64_t readmitted = 0;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i != events; ++i) {
    if (random() % 4 == 0) now += 5ms;
    auto const dice = random() % 20;
    if (dice < 7 || !both.anyone_waits()) {
      both.join(now, request_now());
    } else if (dice < 9) {
      auto const tag = both.anyone_waiting(random);
      both.event(now, [&](auto& s) {
        auto const why = s.core.cancel(*s.places.at(tag));
        s.places.erase(tag);
        return tags{static_cast<std::uint64_t>(why.blocked())};
      });
    } else if (dice < 12) {
      auto const tag = both.anyone_waiting(random);
      auto const cost = random() % 6 * 4096;
      both.event(now, [&](auto& s) {
        s.core.rescore(*s.places.at(tag), cost);
        return tags{};
      });
    } else if (dice < 14) {
      std::vector<std::uint64_t> const prefix{random() % source.families()};
      prefix_change const change{.prefix = {.blocks = prefix}, .tokens = 512, .cost_per_token = 8};
      auto const cached = random() % 2 == 0;
      both.event(now, [&](auto& s) {
        cached ? s.core.prefix_cached(change) : s.core.prefix_evicted(change);
        return tags{};
      });
    } else if (dice == 14) {
      ++held;
      both.event(now, [&](auto& s) {
        if (held % 2 == 1)
          s.core.begin_hold();
        else
          s.core.end_hold();
        return tags{};
      });
    } else if (dice < 17 && both.anyone_runs()) {
      auto const tag = both.anyone_running(random);
      auto const r = request_now();
      ++readmitted;
      both.event(now, [&](auto& s) { return tags{s.readmit(tag, r) ? 1U : 0U}; });
    } else if (both.anyone_runs()) {
      auto const tag = both.anyone_running(random);
      both.event(now, [&](auto& s) {
        s.core.release(s.held.at(tag));
        s.held.erase(tag);
        return tags{};
      });
    }
    if (i % 200 == 0) both.expect_one_order();
    ASSERT_FALSE(HasFailure()) << "event " << i;
  }
  both.expect_one_order();
  auto const counters = both.first().core.snapshot().counters;
  std::printf("%llu admitted out of the line, %llu expired, %llu readmitted, %llu wait\n",
              static_cast<unsigned long long>(counters.admitted_from_line),
              static_cast<unsigned long long>(counters.refused[static_cast<std::size_t>(errc::timed_out)]),
              static_cast<unsigned long long>(readmitted),
              static_cast<unsigned long long>(both.first().core.waiting()));
  EXPECT_GT(counters.admitted_from_line, events / 12);
  EXPECT_GT(counters.refused[static_cast<std::size_t>(errc::timed_out)], events / 50);
  EXPECT_GT(readmitted, events / 20);
  EXPECT_GT(both.first().core.waiting(), crowd * 9 / 10);
}

// -- told of the cache

/// A prefix cache of blocks of one token each that grows and shrinks leaf by leaf.
class toy_cache {
 public:
  using prefix = std::vector<std::uint64_t>;
  static constexpr std::uint64_t cost_per_block = 16;

  /// The next block of `prompt` that is not cached, with all before it; empty when all are.
  [[nodiscard]] prefix next_leaf(prefix const& prompt) const {
    auto const cached = depth_of(prompt);
    return cached == prompt.size() ? prefix{}
                                   : prefix{prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(cached) + 1};
  }
  void insert(prefix const& leaf) { cached_.insert(leaf); }

  /// A cached prefix that no cached prefix goes on from. Precondition: something is cached.
  [[nodiscard]] prefix any_leaf(generator& random) const {
    auto at = std::next(cached_.begin(), static_cast<std::ptrdiff_t>(random() % cached_.size()));
    // In lexicographic order what goes on from a prefix comes right after it.
    for (auto next = std::next(at); next != cached_.end() && begins_with(*next, *at); ++next) at = next;
    return *at;
  }
  void erase(prefix const& leaf) { cached_.erase(leaf); }

  /// What it saves for a prompt: asked anew, by looking at the whole prompt.
  [[nodiscard]] std::uint64_t probe(prefix const& prompt) const { return depth_of(prompt) * cost_per_block; }
  [[nodiscard]] bool empty() const noexcept { return cached_.empty(); }

 private:
  static bool begins_with(prefix const& longer, prefix const& shorter) {
    return longer.size() >= shorter.size() && std::equal(shorter.begin(), shorter.end(), longer.begin());
  }
  [[nodiscard]] std::size_t depth_of(prefix const& prompt) const {
    std::size_t depth = 0;
    for (prefix p; depth != prompt.size(); ++depth) {
      p.push_back(prompt[depth]);
      if (!cached_.contains(p)) break;
    }
    return depth;
  }

  std::set<prefix> cached_;
};

/// One core is told of each change of the cache, the other has every waiter probed and rescored after it.
template <class Told, class Probed>
class told_and_probed {
 public:
  told_and_probed(std::uint64_t seed, Told told, Probed probed)
      : random_{seed}, both_{draw_limits(random_), std::move(told), std::move(probed)} {}

  void run(int events) {
    for (int i = 0; i != events; ++i) {
      event();
      both_.expect_one_order();
      expect_scores_as_told();
      ASSERT_FALSE(testing::Test::HasFailure()) << "event " << i;
    }
  }
  [[nodiscard]] std::uint64_t outcomes() const noexcept { return both_.outcomes(); }
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

 private:
  static limits draw_limits(generator& random) {
    return {.lanes = static_cast<std::uint32_t>(1 + random() % 3),
            .kv_capacity = 100,
            .max_waiting = 1000,
            .max_overtakes = random() % 2 == 0 ? 5U : 1000U};
  }
  toy_cache::prefix draw_prompt() {
    toy_cache::prefix p(random_() % 6);
    for (auto& block : p) block = random_() % 3;
    return p;
  }
  request request_for(toy_cache::prefix const& prompt) {
    return {.prefix_blocks = prompt,
            .prompt_tokens = prompt.size() + 1,
            .kv_demand = random_() % 60,
            .priority = random_() % 12 == 0 ? 1U : 0U,
            .saved_cost = cache_.probe(prompt),
            .tag = ++tags_};
  }

  void event() {
    auto const dice = random_() % 16;
    auto const now = time_point{std::chrono::milliseconds{++moment_}};
    if (dice < 6 && prompts_.size() < 80) {
      auto const p = draw_prompt();
      auto const r = request_for(p);
      prompts_[r.tag] = p;
      return both_.join(now, r);
    }
    if (dice < 10) return grow(now);
    if (dice < 12) return shrink(now);
    if (dice == 12 && both_.anyone_runs()) return readmit(now);
    if (dice == 13 && both_.anyone_waits()) {
      auto const tag = both_.anyone_waiting(random_);
      return both_.event(now, [&](auto& s) {
        (void)s.core.cancel(*s.places.at(tag));
        s.places.erase(tag);
        prompts_.erase(tag);
        return tags{};
      });
    }
    if (!both_.anyone_runs()) return;
    auto const tag = both_.anyone_running(random_);
    both_.event(now, [&](auto& s) {
      s.core.release(s.held.at(tag));
      s.held.erase(tag);
      return tags{};
    });
    prompts_.erase(tag);
  }

  void grow(time_point now) {
    auto const leaf = cache_.next_leaf(prompts_.empty() ? draw_prompt() : any_prompt());
    if (leaf.empty()) return;
    cache_.insert(leaf);
    tell(now, leaf, [](auto& core, prefix_change const& c) { core.prefix_cached(c); });
  }
  void shrink(time_point now) {
    if (cache_.empty()) return;
    auto const leaf = cache_.any_leaf(random_);
    cache_.erase(leaf);
    tell(now, leaf, [](auto& core, prefix_change const& c) { core.prefix_evicted(c); });
  }
  template <class F>
  void tell(time_point now, toy_cache::prefix const& leaf, F const& push) {
    ++changes_;
    prefix_change const change{
        .prefix = {.blocks = leaf}, .tokens = 4, .cost_per_token = toy_cache::cost_per_block / 4};
    both_.event(now, [&](auto& s) {
      if (static_cast<void*>(&s) == static_cast<void*>(&both_.first()))
        push(s.core, change);
      else
        for (auto const& [tag, place] : s.places) s.core.rescore(*place, cache_.probe(prompts_.at(tag)));
      return tags{};
    });
  }

  void readmit(time_point now) {
    auto const old = both_.anyone_running(random_);
    auto p = prompts_.at(old);
    if (random_() % 2 == 0) p.push_back(random_() % 3);
    auto const r = request_for(p);
    prompts_[r.tag] = p;
    both_.event(now, [&](auto& s) { return tags{s.readmit(old, r) ? 1U : 0U}; });
    prompts_.erase(old);
  }

  [[nodiscard]] toy_cache::prefix any_prompt() {
    return std::next(prompts_.begin(), static_cast<std::ptrdiff_t>(random_() % prompts_.size()))->second;
  }

  /// Where a policy leaves it to the core to raise the scores, they show in the waiters.
  void expect_scores_as_told() {
    for (auto const& [tag, place] : both_.second().places)
      ASSERT_EQ(place->saved_cost(), cache_.probe(prompts_.at(tag))) << "the probed one, tag " << tag;
    if constexpr (!requires(Told t, prefix_change const& c) { t.on_cached(c); }) {
      for (auto const& [tag, place] : both_.first().places)
        ASSERT_EQ(place->saved_cost(), cache_.probe(prompts_.at(tag))) << "tag " << tag;
    }
  }

  generator random_;
  two_cores<Told, Probed> both_;
  toy_cache cache_;
  std::map<std::uint64_t, toy_cache::prefix> prompts_;
  std::uint64_t tags_ = 0;
  std::int64_t moment_ = 0;
  std::uint64_t changes_ = 0;
};

template <class Told, class Probed, class Options>
void agree_when_told(std::uint64_t first_seed, Options const& make) {
  auto const worlds = 12 * effort;
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + worlds - 1));
  std::uint64_t outcomes = 0;
  std::uint64_t changes = 0;
  for (auto seed = first_seed; seed != first_seed + worlds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    generator random{seed};
    auto const options = random_options(random);
    told_and_probed<Told, Probed> both{seed, make(Told{}, options), make(Probed{}, options)};
    both.run(400);
    outcomes += both.outcomes();
    changes += both.changes();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(outcomes, worlds * 20);
  EXPECT_GT(changes, worlds * 50);
}

constexpr auto with_options = []<class P>(P, ordering_options const& o) { return P{o}; };

TEST(PushedCacheEvents, ComeToTheSameAsProbingEveryWaiterWithTheIndex) {
  agree_when_told<cache_aware, cache_aware>(81'000, with_options);
}
TEST(PushedCacheEvents, ComeToTheSameAsProbingEveryWaiterWithAnIndexThatIsToldAndAScanThatProbes) {
  agree_when_told<cache_aware, cache_aware_scan>(82'000, with_options);
}
TEST(PushedCacheEvents, ComeToTheSameAsProbingEveryWaiterWithAPolicyThatLeavesItToTheCore) {
  agree_when_told<cache_aware_scan, cache_aware_scan>(83'000, with_options);
}
TEST(PushedCacheEvents, ComeToTheSameAsProbingEveryWaiterWithFirstComeFirstServed) {
  agree_when_told<fcfs, fcfs>(84'000, [](fcfs, ordering_options const&) { return fcfs{}; });
}

}  // namespace
}  // namespace kvlane
