#pragma once

// The core and the reference model side by side: one script of bytes drives both, and after every step everything that
// can be seen is compared and the invariants of the design are checked against figures kept here.

#include "reference_model.hpp"

#include <kvlane/admission_core.hpp>
#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/seed_order.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvlane::lockstep {

/// Decisions of a script, from bytes: random ones, or those of a fuzzer. After the end every decision is 0.
class script {
 public:
  explicit script(std::span<std::uint8_t const> bytes) noexcept : bytes_{bytes} {}
  [[nodiscard]] bool done() const noexcept { return bytes_.empty(); }
  std::uint32_t below(std::uint32_t bound) noexcept {
    if (bytes_.empty()) return 0;
    auto const byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte % bound;
  }
  bool one_in(std::uint32_t n) noexcept { return below(n) == n - 1; }
  template <class T>
  T const& one_of(std::vector<T> const& choices) noexcept {
    return choices[below(static_cast<std::uint32_t>(choices.size()))];
  }

 private:
  std::span<std::uint8_t const> bytes_;
};

/// What a run came across: a comparison that saw nothing happen has compared nothing.
struct coverage {
  std::uint64_t steps = 0;
  std::uint64_t waiting = 0;  // summed over all steps
  std::uint64_t deepest = 0;
  std::uint64_t reserved = 0;             // steps in which a waiter was due and blocked others
  std::map<int, std::uint64_t> outcomes;  // by errc, 0 for admitted
  std::uint64_t most_overtaken = 0;
  std::uint64_t readmitted = 0;
};

/// A difference or a broken invariant. `what()` tells the step and both sides.
struct mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Policy>
constexpr model::policy model_policy() {
  if constexpr (std::is_same_v<Policy, cache_aware>) return model::policy::cache_aware;
  if constexpr (std::is_same_v<Policy, seed_order>) return model::policy::seed_order;
  return model::policy::fcfs;
}

template <class Policy>
class pair {
  using core_type = admission_core<Policy>;
  using waiter = typename core_type::waiter;
  using outcomes = typename core_type::outcomes;

 public:
  explicit pair(script s, coverage& seen_so_far)
      : script_{s},
        coverage_{seen_so_far},
        limits_{draw_limits()},
        options_{draw_options()},
        core_{core_limits(), make_policy()},
        model_{limits_, model_policy<Policy>(), options_} {}

  /// Runs at most `steps` operations, fewer when the script ends.
  void run(std::size_t steps) {
    for (std::size_t done = 0; done != steps && !script_.done(); ++done) step();
    finish();
  }

 private:
  // -- drawing

  model::limits draw_limits() {
    model::limits l;
    l.lanes = script_.one_of<std::uint32_t>({0, 1, 1, 2, 3, 4, 5, 6});
    l.kv_capacity = 20 + script_.below(180);
    l.block_tokens = script_.one_of<std::uint32_t>({1, 1, 1, 4, 16});
    l.decode_headroom = script_.below(24);
    l.growth_reserve = script_.one_in(3) ? script_.below(20) : 0;
    if (!script_.one_in(4)) l.max_waiting = script_.one_of<std::uint32_t>({0, 3, 16, 64, 64, 64, 64});
    if (script_.one_in(6)) l.max_waiting_tokens = 50 + script_.below(200) * 4;
    l.max_overtakes = script_.one_of<std::uint32_t>({0, 1, 2, 4, 32});
    if (l.growth_reserve >= l.kv_capacity) l.growth_reserve = 0;
    if (script_.one_in(6)) l.max_wait = std::max<model::instant>(draw_wait(), 0);
    return l;
  }
  model::ordering_options draw_options() {
    model::ordering_options o;
    o.aging_cost_per_turn = script_.one_of<std::uint64_t>({0, 1, 3, 4096});
    o.band_turns = script_.one_of<std::uint32_t>({1, 3, 4, 4});
    o.group_prefixes = !script_.one_in(4);
    o.spread_families = script_.one_in(4);
    return o;
  }
  model::instant draw_wait() { return model::instant{script_.below(100)} * 2'000'000 - 1'000'000; }
  model::request draw_request() {
    model::request r;
    r.id = ++last_id_;
    r.priority = script_.below(3);
    r.max_tokens = script_.below(40);
    switch (script_.below(4)) {
      case 0: r.prompt_tokens = 1 + script_.below(60); break;
      case 1:
        r.prefix_blocks.resize(script_.below(4));
        for (auto& block : r.prefix_blocks) block = script_.one_in(3) ? ~std::uint64_t{0} : script_.below(2);
        r.prompt_tokens = 1 + script_.below(60);
        break;
      default:
        r.prompt.resize(1 + script_.below(6));
        for (auto& token : r.prompt) token = static_cast<std::int32_t>(script_.below(3)) - 1;
        if (script_.one_in(2)) r.prompt_tokens = r.prompt.size() + script_.below(60);
    }
    if (script_.one_in(6)) r.kv_demand = script_.below(120);
    r.saved_cost = script_.one_of<std::uint64_t>({0, 0, 0, 1, 2, 8, 4096});
    if (script_.one_in(8)) r.preferred_lane = script_.below(8);
    if (script_.one_in(6)) r.max_wait = draw_wait();
    if (script_.one_in(10)) r.deadline = now_ + draw_wait();
    if (script_.one_in(40)) spoil(r);
    return r;
  }
  void spoil(model::request& r) {
    switch (script_.below(5)) {
      case 0: r.priority = 16; break;
      case 1: r.saved_cost = std::uint64_t{1} << 48; break;
      case 2: r.kv_demand = ~std::uint64_t{0}; break;
      case 3: r = {.id = r.id}; break;
      default:
        r.prompt_tokens = 1;
        r.prompt.resize(2);
        r.prefix_blocks.clear();
    }
  }
  Policy make_policy() const {
    if constexpr (std::is_same_v<Policy, fcfs>)
      return {};
    else
      return Policy{{.aging_cost_per_turn = options_.aging_cost_per_turn,
                     .band_turns = options_.band_turns,
                     .group_prefixes = options_.group_prefixes,
                     .spread_families = options_.spread_families}};
  }
  limits core_limits() const {
    return {.lanes = limits_.lanes,
            .kv_capacity = limits_.kv_capacity,
            .block_tokens = limits_.block_tokens,
            .decode_headroom = limits_.decode_headroom,
            .growth_reserve = limits_.growth_reserve,
            .max_waiting = limits_.max_waiting,
            .max_waiting_tokens = limits_.max_waiting_tokens,
            .max_overtakes = limits_.max_overtakes,
            .max_wait = wait_of(limits_.max_wait)};
  }
  static duration wait_of(model::instant t) { return t == model::never ? forever : duration{t}; }
  static time_point moment_of(model::instant t) {
    return t == model::never ? time_point::max() : time_point{duration{t}};
  }
  static request core_request(model::request const& r) {
    return {.prompt = r.prompt,
            .prefix_blocks = r.prefix_blocks,
            .prompt_tokens = r.prompt_tokens,
            .max_tokens = r.max_tokens,
            .kv_demand = r.kv_demand,
            .priority = r.priority,
            .saved_cost = r.saved_cost,
            .tag = r.id,
            .preferred_lane = r.preferred_lane,
            .max_wait = r.max_wait ? std::optional{wait_of(*r.max_wait)} : std::nullopt,
            .deadline = moment_of(r.deadline)};
  }

  // -- operations

  void step() {
    ++steps_;
    if (script_.one_in(3)) now_ += model::instant{script_.below(8)} * 1'000'000;
    if (draining_ && script_.one_in(8)) return turn_door();
    if (holds_ != 0 && script_.one_in(6)) return hold();
    auto const dice = script_.below(100);
    if (dice < 46) return newcomer(patience::waits);
    if (dice < 50) return newcomer(patience::leaves);
    if (dice < 66) return release();
    if (dice < 71) return resize_lease();
    if (dice < 77) return readmit();
    if (dice < 83) return cancel();
    if (dice < 88) return rescore();
    if (dice < 91) return expire();
    if (dice < 95) return hold();
    if (dice < 97) return script_.one_in(4) ? update() : release();
    if (dice < 98) return turn_door();
    return repeat_refusals();
  }

  void newcomer(patience how) {
    auto const r = draw_request();
    offer(r, how);
  }
  /// Returns the refusal, if it was one.
  std::optional<rejection> offer(model::request const& r, patience how) {
    say(how == patience::waits ? "enqueue " : "try_admit ", r.id);
    auto place = std::make_unique<waiter>();
    place->copy_prompt({r.prompt, r.prefix_blocks});
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    // Asked as a queue asks: first what needs no clock, then without a place, and with one only when that is needed.
    auto const at_once = core_.judge_at_once(core_request(r), how);
    if (!at_once) core_.dispatch(ended);
    auto v = at_once ? *at_once : core_.judge(core_request(r), how, nullptr);
    if (std::holds_alternative<needs_waiter>(v)) v = core_.judge(core_request(r), how, place.get());
    auto const expected = how == patience::waits ? model_.enqueue(r, now_) : model_.try_admit(r, now_);
    settle(ended, expected);
    std::optional<rejection> refused;
    if (auto const* g = std::get_if<grant>(&v)) {
      compare_grant(*g, expected.own_outcome);
      grant_seen(*g, r.priority);
    } else if (auto const* why = std::get_if<rejection>(&v)) {
      compare_refusal(*why, expected.own_outcome);
      refused = *why;
    } else {
      require(expected.own == model::code::joined, "the core let it join, the model said",
              static_cast<int>(expected.own));
      line_.emplace(place->arrival(), seen{r.id, r.priority, 0});
      waiters_.emplace(r.id, std::move(place));
    }
    check();
    return refused;
  }

  void repeat_refusals() {
    auto r = draw_request();
    std::optional<rejection> before;
    for (int i = 0; i != 3; ++i, r.id = ++last_id_) {
      auto const refused = offer(r, patience::waits);
      if (!refused) return;
      if (before && before->code() == refused->code() && before->facts().retry_after)
        require(refused->facts().retry_after && *refused->facts().retry_after >= *before->facts().retry_after,
                "Retry-After fell over successive refusals", 0);
      before = refused;
    }
  }

  void release() {
    if (leases_.empty()) return;
    auto const it = nth(leases_);
    say("release ", it->first);
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    model::step expected;
    if (script_.one_in(2)) {
      model::sample const s{script_.below(30), script_.below(30), script_.below(60) * 0.5, script_.below(60) * 0.25};
      core_.observe({s.prompt_tokens, s.decode_tokens, fractional_ms{s.prefill_ms}, fractional_ms{s.decode_ms}});
      expected = model_.complete(it->first, s, now_);
    } else {
      expected = model_.release(it->first, now_);
    }
    core_.release(it->second);
    leases_.erase(it);
    core_.dispatch(ended);
    settle(ended, expected);
    check();
  }

  void resize_lease() {
    if (leases_.empty()) return;
    auto const it = nth(leases_);
    auto const total = script_.below(100);
    auto const grows = script_.one_in(2);
    say(grows ? "grow " : "shrink ", it->first);
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    auto grew = true;
    if (grows)
      grew = core_.try_grow(it->second, total);
    else
      core_.shrink(it->second, total);
    core_.dispatch(ended);
    auto const expected = grows ? model_.grow(it->first, total, now_) : model_.shrink(it->first, total, now_);
    if (grows) require(grew == expected.flag, "the core grew a lease:", grew);
    settle(ended, expected);
    check();
  }

  void readmit() {
    if (leases_.empty()) return;
    auto const it = nth(leases_);
    auto const r = draw_request();
    say("readmit ", it->first);
    auto place = std::make_unique<waiter>();
    place->copy_prompt({r.prompt, r.prefix_blocks});
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    auto const v = core_.readmit(it->second, core_request(r), *place, ended);
    auto expected = model_.readmit(it->first, r, now_);
    if (auto const* why = std::get_if<rejection>(&v)) {
      core_.dispatch(ended);
      settle(ended, expected);
      compare_refusal(*why, expected.own_outcome);
      return check();
    }
    auto const arrival = it->second.arrival;
    leases_.erase(it);
    auto* const joined_as = place.get();
    waiters_.emplace(r.id, std::move(place));
    own_readmitted_ = r.id;
    ++coverage_.readmitted;
    line_.emplace(arrival, seen{r.id, r.priority, count_of_next_younger(arrival, r.priority)});
    core_.dispatch(ended);
    require(joined_as->in_line() == (expected.own == model::code::joined),
            "after readmit the core has it in line:", joined_as->in_line());
    settle(ended, expected);
    check();
  }

  void cancel() {
    if (waiters_.empty()) return;
    auto const it = nth(waiters_);
    auto const id = it->first;
    say("cancel ", id);
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    auto& w = *it->second;
    std::optional<rejection> why;
    if (w.in_line()) why = core_.cancel(w);
    auto const arrival = w.arrival();
    core_.dispatch(ended);
    auto const expected = model_.cancel(id, now_);
    require(why.has_value() == expected.flag, "the core cancelled:", why.has_value());
    if (why) {
      line_.erase(arrival);
      waiters_.erase(id);
      ++coverage_.outcomes[static_cast<int>(errc::cancelled)];
      require(fractional_ms{why->waited()}.count() == model::in_ms(expected.own_outcome.waited), "cancelled after ", 0);
      require(static_cast<int>(why->blocked()) == static_cast<int>(expected.own_outcome.why),
              "cancelled while blocked on ", static_cast<int>(why->blocked()));
    }
    settle(ended, expected);
    check();
  }

  void rescore() {
    if (waiters_.empty()) return;
    auto const it = nth(waiters_);
    say("rescore ", it->first);
    auto const cost = script_.one_of<std::uint64_t>({0, 1, 5, 100, 4096, std::uint64_t{1} << 50});
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    if (it->second->in_line()) core_.rescore(*it->second, cost);
    core_.dispatch(ended);
    settle(ended, model_.rescore(it->first, cost, now_));
    check();
  }

  void expire() {
    now_ += model::instant{script_.below(20)} * 1'000'000 - 3'000'000;  // also back: the core stands still then
    say("expire ", 0);
    event([](auto&, auto&) {}, model_.expire(now_));
  }

  void hold() {
    auto const begins = holds_ == 0 ? script_.one_in(2) : script_.one_in(6);
    if (!begins && holds_ == 0) return;
    say(begins ? "hold " : "unhold ", 0);
    begins ? ++holds_ : --holds_;
    event([=](auto& core, auto&) { begins ? core.begin_hold() : core.end_hold(); },
          begins ? model_.hold(now_) : model_.unhold(now_));
  }

  void update() {
    auto const before = limits_;
    limits_ = draw_limits();
    if (script_.one_in(2)) limits_.max_overtakes = before.max_overtakes;
    if (script_.one_in(2)) limits_.kv_capacity = std::max(limits_.kv_capacity, before.kv_capacity);
    say("update ", limits_.lanes);
    event([&](auto& core, auto& ended) { core.update(core_limits(), ended); }, model_.update(limits_, now_));
  }

  void turn_door() {
    // A closed queue has nothing more to show, so that comes at the end of nearly every run and in the middle of few.
    if (draining_ || !script_.one_in(16)) {
      draining_ = !draining_;
      say(draining_ ? "drain " : "reopen ", 0);
      auto const drains = draining_;
      return event([=](auto& core, auto&) { drains ? core.drain() : core.reopen(); },
                   drains ? model_.drain(now_) : model_.reopen(now_));
    }
    say("close ", 0);
    event([](auto& core, auto& ended) { core.close(ended); }, model_.close(now_));
  }

  template <class Change>
  void event(Change const& change, model::step const& expected) {
    outcomes ended;
    core_.advance(moment_of(now_), ended);
    change(core_, ended);
    core_.dispatch(ended);
    settle(ended, expected);
    check();
  }

  void finish() {
    say("finish ", 0);
    for (; holds_ != 0; --holds_) event([](auto& core, auto&) { core.end_hold(); }, model_.unhold(now_));
    event([](auto& core, auto& ended) { core.close(ended); }, model_.close(now_));
    while (!leases_.empty()) {
      auto const it = leases_.begin();
      core_.release(it->second);
      settle(outcomes{}, model_.release(it->first, now_));
      leases_.erase(it);
    }
    require(core_.idle() && waiters_.empty() && core_.snapshot().kv_tokens_used == 0, "something is left at the end",
            0);
  }

  // -- comparing

  void settle(outcomes&& ended, model::step const& expected) { settle(ended, expected); }
  void settle(outcomes& ended, model::step const& expected) {
    auto next = expected.ended.begin();
    while (auto* const w = ended.pop_front()) {
      auto const own = std::exchange(own_readmitted_, own_readmitted_ == w->tag() ? 0 : own_readmitted_) == w->tag();
      require(own || next != expected.ended.end(), "the core ended one more: ", w->tag());
      auto const& other = own ? expected.own_outcome : *next++;
      require(other.id == w->tag(), "the core ended another one: ", w->tag());
      line_.erase(w->arrival());
      if (auto const* g = w->granted()) {
        compare_grant(*g, other);
        grant_seen(*g, w->priority());
      } else {
        compare_refusal(std::get<rejection>(w->outcome()), other);
      }
      auto const tag = w->tag();  // *w goes with its entry
      require(waiters_.erase(tag) == 1, "a second outcome for ", tag);
    }
    own_readmitted_ = 0;
    require(next == expected.ended.end(), "the model ended one more: ", next == expected.ended.end() ? 0 : next->id);
  }

  void compare_grant(grant const& g, model::outcome const& other) {
    require(other.what == model::code::admitted, "the core admitted, the model said ", static_cast<int>(other.what));
    ++coverage_.outcomes[0];
    coverage_.most_overtaken = std::max<std::uint64_t>(coverage_.most_overtaken, g.overtaken);
    require(g.tag == other.id && g.lane == other.lane, "admitted to lane ", g.lane);
    require(g.tokens == other.tokens, "admitted with tokens ", g.tokens);
    require(g.waited.count() == other.waited, "admitted after ns ", static_cast<std::uint64_t>(g.waited.count()));
    require(g.overtaken == other.overtaken, "admitted and overtaken ", g.overtaken);
    require(leases_.emplace(g.tag, g).second, "a second outcome for ", g.tag);
  }

  void compare_refusal(rejection const& why, model::outcome const& other) {
    require(static_cast<int>(why.code()) == static_cast<int>(other.what), "the core refused with ",
            static_cast<int>(why.code()));
    require(why.tag() == other.id, "refused tag ", why.tag());
    auto const code = why.code();
    ++coverage_.outcomes[static_cast<int>(code)];
    if (code == errc::invalid_request) return;
    require(why.asked_tokens() == other.tokens, "refused, asked ", why.asked_tokens());
    require(why.waiting() == other.waiting, "refused, waiting ", why.waiting());
    require(why.free_tokens() == other.free_tokens, "refused, free tokens ", why.free_tokens());
    require(why.free_lanes() == other.free_lanes, "refused, free lanes ", why.free_lanes());
    require(why.kv_capacity() == other.kv_capacity, "refused, capacity ", why.kv_capacity());
    require(why.max_waiting() == other.max_waiting, "refused, places ", why.max_waiting());
    if (code == errc::never_fits || code == errc::shutting_down || code == errc::no_longer_fits) return;
    require(static_cast<int>(why.blocked()) == static_cast<int>(other.why), "refused, blocked on ",
            static_cast<int>(why.blocked()));
    same(why.predicted_wait() ? std::optional{why.predicted_wait()->count()} : std::nullopt, other.predicted_wait_ms,
         "refused, predicted ms");
    auto const& exact = why.facts().retry_after;
    same(exact ? std::optional{exact->count()} : std::nullopt, other.retry_after_exact_ms, "refused, retry ms");
    auto const seconds = why.retry_after();
    require(seconds.has_value() == other.retry_after_s.has_value(), "refused, advice given ", seconds.has_value());
    if (seconds && std::abs(std::remainder(exact->count(), 1000.0)) > 1e-6)
      require(seconds->count() == *other.retry_after_s, "refused, retry s ",
              static_cast<std::uint64_t>(seconds->count()));
    if (code == errc::timed_out) require(why.waited().count() == model::in_ms(other.waited), "timed out after ms ", 0);
  }

  void same(std::optional<double> a, std::optional<double> b, char const* what) {
    auto const close = a && b && std::abs(*a - *b) <= 1e-9 * std::max({1.0, std::abs(*a), std::abs(*b)});
    if (close || (!a && !b)) return;
    std::ostringstream text;
    text << what << ": core " << a.value_or(-1) << ", model " << b.value_or(-1);
    require(false, text.str().c_str(), 0);
  }

  // -- invariants, from figures of our own

  struct seen {
    std::uint64_t id;
    std::uint32_t priority;
    std::uint64_t overtaken;
  };

  std::uint64_t count_of_next_younger(std::uint64_t arrival, std::uint32_t priority) const {
    for (auto it = line_.upper_bound(arrival); it != line_.end(); ++it)
      if (it->second.priority == priority) return it->second.overtaken;
    return 0;
  }

  /// The theorem: whoever has been overtaken as often as the bound in force allows is not overtaken again.
  void grant_seen(grant const& g, std::uint32_t priority) {
    for (auto& [arrival, w] : line_) {
      if (arrival >= g.arrival || w.priority < priority) continue;
      require(w.overtaken < limits_.max_overtakes, "overtaken beyond the bound: ", w.id);
      ++w.overtaken;
    }
  }

  void check() {
    ++coverage_.steps;
    coverage_.waiting += waiters_.size();
    coverage_.deepest = std::max<std::uint64_t>(coverage_.deepest, waiters_.size());
    check_conservation();
    check_line();
    check_nobody_is_parked_in_vain();
  }

  void check_conservation() {
    std::uint64_t tokens = 0;
    std::set<lane_id> lanes;
    for (auto const& [id, g] : leases_) {
      tokens += g.tokens;
      lanes.insert(g.lane);
    }
    std::uint64_t demands = 0;
    for (auto const& [id, w] : waiters_) demands += w->demand();
    auto const s = core_.snapshot();
    require(lanes.size() == leases_.size(), "two leases share a lane, leases ", leases_.size());
    require(s.lanes_busy == leases_.size(), "lanes busy ", s.lanes_busy);
    require(s.kv_tokens_used == tokens, "tokens used ", s.kv_tokens_used);
    require(s.waiting == waiters_.size(), "waiting ", s.waiting);
    require(s.waiting_tokens == demands, "waiting tokens ", s.waiting_tokens);
    require(s.lanes_busy == model_.lanes_busy() && s.kv_tokens_used == model_.tokens_used() &&
                s.waiting == model_.waiting() && s.waiting_tokens == model_.waiting_tokens() && s.turn == model_.turn(),
            "the model's totals differ, turn ", s.turn);
    auto const deadline = core_.next_deadline();
    auto const expected = model_.next_deadline();
    require(deadline.has_value() == expected.has_value() && (!deadline || *deadline == moment_of(*expected)),
            "next deadline", 0);
    for (std::uint32_t p = 0; p != 4; ++p)
      same(core_.predicted_wait(p) ? std::optional{core_.predicted_wait(p)->count()} : std::nullopt,
           model_.predicted_wait(p), "predicted_wait");
  }

  void check_line() {
    infos_.clear();
    core_.for_each_in_order([&](waiter const& w) {
      infos_.emplace_back(&w, core_.info_at(w, infos_.size(), moment_of(now_)));
      return true;
    });
    auto const expected = model_.waiters();
    require(infos_.size() == expected.size(), "waiters in order ", infos_.size());
    for (std::size_t i = 0; i != infos_.size(); ++i) {
      auto const& [w, info] = infos_[i];
      require(info.tag == expected[i].id, "at another place: ", info.tag);
      require(info.overtaken == expected[i].overtaken, "overtaken as reported ", info.overtaken);
      require(info.overtaken == line_.at(w->arrival()).overtaken, "overtaken as counted here ",
              line_.at(w->arrival()).overtaken);
      require(static_cast<int>(info.blocked) == static_cast<int>(expected[i].blocked), "blocked on ",
              static_cast<int>(info.blocked));
    }
    if (infos_.empty()) return;
    auto const& [w, info] = infos_[steps_ % infos_.size()];
    require(core_.info(*w, moment_of(now_)).place == info.place, "info() and the order disagree on place ", info.place);
  }

  void check_nobody_is_parked_in_vain() {
    auto const s = core_.snapshot();
    if (s.held || s.lanes_busy >= s.lanes) return;
    auto const reserve = s.lanes_busy == 0 ? 0 : limits_.growth_reserve;
    auto const free = s.kv_capacity > s.kv_tokens_used ? s.kv_capacity - s.kv_tokens_used : 0;
    auto const usable = free > reserve ? free - reserve : 0;
    std::array<waiter const*, 3> oldest{};
    for (auto const& [w, info] : infos_)
      if (auto*& o = oldest[w->priority()]; o == nullptr || w->arrival() < o->arrival()) o = w;
    int due = -1;
    for (int p = 0; p != 3; ++p)
      if (auto* const o = oldest[static_cast<std::size_t>(p)]; o != nullptr && o->overtaken() >= limits_.max_overtakes)
        due = p;
    coverage_.reserved += due >= 0;
    for (auto const& [w, info] : infos_) {
      auto const may_run =
          static_cast<int>(w->priority()) > due || w == (due < 0 ? nullptr : oldest[static_cast<std::size_t>(due)]);
      require(!may_run || info.demand > usable, "parked although it may run: ", info.tag);
    }
    require(!model_.anyone_parked_that_the_rules_would_admit(), "the model has parked somebody", 0);
  }

  // -- telling

  void say(char const* what, std::uint64_t id) {
    auto& text = trail_[steps_ % trail_.size()];
    text = std::to_string(steps_) + ": " + what + std::to_string(id) + " at ns " + std::to_string(now_);
  }
  template <class N>
  void require(bool holds, char const* what, N figure) {
    if (holds) return;
    std::ostringstream text;
    text << what << ' ' << figure << "\nlast steps:\n";
    for (std::size_t i = 1; i <= trail_.size(); ++i) text << "  " << trail_[(steps_ + i) % trail_.size()] << '\n';
    throw mismatch{text.str()};
  }
  template <class Map>
  typename Map::iterator nth(Map& map) {
    return std::next(map.begin(), script_.below(static_cast<std::uint32_t>(std::min<std::size_t>(map.size(), 255))));
  }

  script script_;
  coverage& coverage_;
  model::limits limits_;
  model::ordering_options options_;
  core_type core_;
  model::queue model_;
  model::instant now_ = 1'000'000'000;
  std::uint64_t last_id_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t own_readmitted_ = 0;
  std::uint32_t holds_ = 0;
  bool draining_ = false;
  std::map<std::uint64_t, std::unique_ptr<waiter>> waiters_;  // by id
  std::map<std::uint64_t, grant> leases_;                     // by id
  std::map<std::uint64_t, seen> line_;                        // by arrival
  std::vector<std::pair<waiter const*, waiter_info>> infos_;
  std::array<std::string, 16> trail_;
};

}  // namespace kvlane::lockstep
