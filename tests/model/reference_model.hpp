// Executable specification of the admission queue: every rule in its plainest form, nothing shared with the library.
// Figures are recomputed whenever they are needed, the whole line is sorted at every pick. Numbers such as 4.5 name
// the paragraph of the design that a rule comes from ("5" and "6" are its sections on order and prediction).
//
// Readings. Where the text leaves a choice, this model takes the following one.
//
//  Events
//  R1  (4.6) Each mutating call is one event: expiry, the call's own change, one dispatch; also where the change turns
//      out to be nothing (unknown lease, lost cancel, shrink to more, a refused readmit, a hold that is not the last).
//      enqueue and try_admit expire and dispatch before they look at the newcomer, even if it is invalid.
//  R2  (4.6) The clamp takes every `now` passed in, also where a shell would not have read its clock.
//  R3  (4.6) `never` is no deadline: nobody expires by it, not even at now == never.
//  R4  (1)   ended = expiries by (deadline, arrival), then no_longer_fits or shutting_down by arrival, then grants. The
//      caller's own outcome is in own/own_outcome only; own is `joined` for calls that have no result of their own.
//  R5  (4.17) hold() raises the hold before its dispatch, so what its expiries made room for waits for unhold().
//  R6  (4.10) Whoever is past the deadline when close comes gets timed_out; the others shutting_down. reopen after
//      close does nothing.
//
//  Demands and joining
//  R7  (4.1) kv_demand is rounded up to blocks as well. Rounding that overflows gives 2^64 - 1.
//  R8  (4.1) "No lease out" counts leases, also those without tokens.
//  R9  (4.1) try_grow_to looks at free tokens without growth_reserve. Totals are rounded with the block_tokens in force.
//  R10 (3, 4.2) limits::max_wait stands in only if the request has neither max_wait nor a deadline below `never`. A
//      max_wait of `forever` is named. The limit of a request is min(max_wait, deadline - now), saturating; a negative
//      max_wait of a request is would_wait, not invalid.
//  R11 (4.3) The exception for the empty line lifts max_waiting_tokens only; max_waiting 0 still lets nobody wait.
//  R12 (4.7, 6) Work is fixed with the demand at joining: decode work by the decode_headroom in force then. It is
//      counted from prompt_tokens and max_tokens even if kv_demand is given.
//  R13 (4.7) A wait is finite if max_wait or deadline is, limits::max_wait included.
//  R14 (4.9) "No longer can ever fit" is demand > kv_capacity: lanes 0 and growth_reserve do not refuse for good.
//  R15 (4.15) A rescored saved_cost above 2^48 - 1 counts as 2^48 - 1.
//
//  Counts, turns, order
//  R16 (4.4, 5) A newcomer admitted past waiters is an admission out of a non-empty line: turn + 1, its prompt becomes
//      the last prompt. A request without a prompt makes the last prompt empty.
//  R17 (4.4, 4.16) A readmitted request is in the line when it is granted, even alone and in its own event: a turn.
//  R18 (4.16) A request admitted at once has for later readmission the arrival of that moment and, as enqueued turn,
//      the turn before its own admission.
//  R19 (5) Two trees: all token prompts rank before all block prompts. An empty prompt is a token prompt that ends at
//      the root of the token tree: after the other token prompts, before block prompts.
//  R20 (5) Readmitted waiters stand in the tree and its weights like all others.
//  R21 (5) seed_order: the candidates of a pick are all waiters that fit by 4.1, whatever the due rule says of their
//      priority; the due rule is applied to the sorted result. spread_families is always on there.
//  R22 (5) Among candidates of equal `order` the position decides "earliest" too.
//  R23 (4.16) `waited` of a readmitted request starts at the readmit.
//  R24 (4.16, 4.6) A readmitted request whose own deadline has already come is never granted: own = timed_out (counted
//      by i), the lease is gone, then the dispatch.
//
//  Figures of refusals
//  R25 (4.13) Whoever expires in one event leaves together: waiting and predicted wait of each exclude all of them;
//      i grows in order of delivery. The same for waiting of no_longer_fits and shutting_down.
//  R26 (3, 4.13) blocked of a waiter that ends is taken while all who end with it still stand in line: for timed_out at
//      the start of the event, for cancelled, no_longer_fits and shutting_down after the event's expiries (and under
//      the new limits), in each case before the dispatch. A newcomer's is taken at its judgement, for would_wait,
//      queue_full and would_time_out; other refusals of newcomers report `nothing`. Short only because of
//      growth_reserve is `tokens`; `reservation` is the due rule.
//  R27 (4.13) predicted wait is reported with would_wait, queue_full, would_time_out and timed_out, where known.
//  R28 (4.13) would_time_out subtracts the limit of R10, not only a named max_wait.
//  R29 (4.13) D begins with the first gap as it is. Admissions of one event are 0 apart. The admission that empties
//      the line still ends a gap; one into an empty line neither begins nor ends one.
//  R30 (4.13) Waiting 0 with a known D gives 0 + i * D, hence at least 1 s, and not "absent".
//  R31 (4.15, 6) The two phases of a sample are judged separately: a bad or empty one is left out, the other counts.
//  R32 (6) EWMA begins with the first value as it is. Rates are larger of EWMA and p95, per phase.
//  R33 (4.16) readmit of a lease that is not out is invalid_request.
//  R34 (4.16) A refused readmit is judged after expiry and before the dispatch; its figures are those of that moment.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace kvlane::model {

using instant = std::int64_t;  // nanoseconds
inline constexpr instant never = std::numeric_limits<instant>::max();
inline constexpr std::uint64_t most_tokens = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t most_saved_cost = (std::uint64_t{1} << 48) - 1;

enum class code {
  admitted = 0,
  invalid_request = 1,
  never_fits,
  shutting_down,
  would_wait,
  queue_full,
  would_time_out,
  timed_out,
  cancelled,
  no_longer_fits,
  joined = 100
};

enum class blocked { nothing, hold, lane, tokens, reservation };

enum class policy { cache_aware, seed_order, fcfs };  // fcfs: priority, then arrival

struct limits {
  std::uint32_t lanes = 1;
  std::uint32_t engine_lanes = 0;
  std::uint64_t kv_capacity = 4096;
  std::uint32_t block_tokens = 1;
  std::uint32_t decode_headroom = 512;
  std::uint64_t growth_reserve = 0;
  std::optional<std::uint32_t> max_waiting = {};
  std::uint64_t max_waiting_tokens = most_tokens;
  std::uint32_t max_overtakes = 32;
  instant max_wait = never;
};

struct request {
  std::uint64_t id = 0;
  std::vector<std::int32_t> prompt = {};
  std::vector<std::uint64_t> prefix_blocks = {};
  std::uint64_t prompt_tokens = 0;
  std::uint32_t max_tokens = 0;
  std::optional<std::uint64_t> kv_demand = {};
  std::uint32_t priority = 0;
  std::uint64_t saved_cost = 0;
  std::optional<std::uint32_t> preferred_lane = {};
  std::optional<instant> max_wait = {};
  instant deadline = never;
};

struct ordering_options {
  std::uint64_t aging_cost_per_turn = 4096;
  std::uint32_t band_turns = 4;
  bool group_prefixes = true;
  bool spread_families = false;
};

struct sample {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t decode_tokens = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
};

struct outcome {
  std::uint64_t id = 0;
  code what = code::joined;
  std::uint32_t lane = 0;    // of an admission
  std::uint64_t tokens = 0;  // of an admission: what it holds; otherwise what it asked for
  instant waited = 0;
  std::uint32_t overtaken = 0;
  std::optional<std::int64_t> retry_after_s = {};
  std::optional<double> retry_after_exact_ms = {};  // before the ceiling and the bounds, to judge roundings by
  std::optional<double> predicted_wait_ms = {};
  blocked why = blocked::nothing;
  std::uint64_t waiting = 0;
  std::uint64_t free_tokens = 0;
  std::uint32_t free_lanes = 0;
  std::uint64_t kv_capacity = 0;
  std::uint32_t max_waiting = 0;
};

struct step {
  std::vector<outcome> ended = {};  // waiters that this event ended, in order of delivery
  code own = code::joined;
  outcome own_outcome = {};
  bool flag = false;  // cancel: it took the waiter out; grow, shrink: the lease holds what was asked
};

// ---------------------------------------------------------------------------------------------- arithmetic

inline std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a > most_tokens - b ? most_tokens : a + b; }

inline std::uint64_t less_or_zero(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

inline std::uint64_t round_up(std::uint64_t tokens, std::uint64_t block) {
  std::uint64_t const over = tokens % block;
  return over == 0 ? tokens : add(tokens, block - over);
}

inline instant later(instant now, instant wait) {
  if (wait == never || (wait > 0 && now > never - wait)) return never;
  constexpr instant first = std::numeric_limits<instant>::min();
  if (wait < 0 && now < first - wait) return first;
  return now + wait;
}

inline instant distance(instant from, instant to) {
  if (to == never || (from < 0 && to > never + from)) return never;
  constexpr instant first = std::numeric_limits<instant>::min();
  if (from > 0 && to < first + from) return first;
  return to - from;
}

inline double in_ms(instant d) { return static_cast<double>(d) / 1e6; }

// ---------------------------------------------------------------------------------------------- order (5)

// Token prompts and hashes of blocks in one shape; tokens are shifted so that unsigned comparison keeps their order.
struct prompt_key {
  bool of_blocks = false;
  std::vector<std::uint64_t> symbols = {};
  bool operator==(prompt_key const&) const = default;
};

inline prompt_key key_of(std::vector<std::int32_t> const& prompt, std::vector<std::uint64_t> const& blocks) {
  if (!blocks.empty()) return {true, blocks};
  prompt_key key;
  for (std::int32_t token : prompt) key.symbols.push_back(static_cast<std::uint32_t>(token) ^ 0x80000000u);
  return key;
}

struct candidate {
  std::uint32_t priority = 0;
  std::uint64_t saved_cost = 0;
  prompt_key prompt = {};
  std::uint64_t enqueued_turn = 0;
  std::uint64_t order = 0;  // arrival
  bool readmitted = false;  // 4.16: goes to the head of its class
};

// Rank of each candidate's prompt in the depth-first walk of 5, rule 3. Equal prompts get equal ranks.
class prefix_walk {
 public:
  prefix_walk(std::vector<candidate> const& all, prompt_key const& last, bool follow_last)
      : all_{all}, last_{last}, rank_(all.size(), 0) {
    for (bool of_blocks : {false, true}) {  // R19: two trees, tokens first
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].prompt.of_blocks == of_blocks) members.push_back(i);
      visit(members, 0, follow_last && last.of_blocks == of_blocks);
    }
  }

  std::size_t rank(std::size_t i) const { return rank_[i]; }

 private:
  struct child {
    std::uint64_t symbol;
    std::vector<std::size_t> members;
    bool continues_last;
  };

  std::vector<std::uint64_t> const& symbols(std::size_t i) const { return all_[i].prompt.symbols; }

  bool continues(std::uint64_t symbol, std::size_t depth, bool on_last) const {
    return on_last && depth < last_.symbols.size() && last_.symbols[depth] == symbol;
  }

  // All members agree in their first `depth` symbols; on_last: and the last prompt does so too.
  void visit(std::vector<std::size_t> const& members, std::size_t depth, bool on_last) {
    if (members.empty()) return;
    while (one_way_on(members, depth)) {  // no branch here, merely saves recursion
      on_last = continues(symbols(members.front())[depth], depth, on_last);
      ++depth;
    }
    for (child const& c : children(members, depth, on_last)) visit(c.members, depth + 1, c.continues_last);
    for (std::size_t i : members)
      if (symbols(i).size() == depth) rank_[i] = next_;
    ++next_;
  }

  bool one_way_on(std::vector<std::size_t> const& members, std::size_t depth) const {
    return std::all_of(members.begin(), members.end(), [&](std::size_t i) {
      return symbols(i).size() > depth && symbols(i)[depth] == symbols(members.front())[depth];
    });
  }

  std::vector<child> children(std::vector<std::size_t> const& members, std::size_t depth, bool on_last) const {
    std::map<std::uint64_t, std::vector<std::size_t>> by_symbol;
    for (std::size_t i : members)
      if (symbols(i).size() > depth) by_symbol[symbols(i)[depth]].push_back(i);
    std::vector<child> out;
    for (auto& [symbol, below] : by_symbol) out.push_back({symbol, below, continues(symbol, depth, on_last)});
    std::sort(out.begin(), out.end(), [&](child const& a, child const& b) { return goes_first(a, b); });
    return out;
  }

  bool goes_first(child const& a, child const& b) const {
    if (a.continues_last != b.continues_last) return a.continues_last;
    if (a.members.size() != b.members.size()) return a.members.size() > b.members.size();
    if (earliest(a) != earliest(b)) return earliest(a) < earliest(b);
    return a.symbol < b.symbol;
  }

  std::pair<std::uint64_t, std::size_t> earliest(child const& c) const {
    std::pair<std::uint64_t, std::size_t> first{most_tokens, all_.size()};
    for (std::size_t i : c.members) first = std::min(first, {all_[i].order, i});
    return first;
  }

  std::vector<candidate> const& all_;
  prompt_key const& last_;
  std::vector<std::size_t> rank_;
  std::size_t next_ = 0;
};

// Positions of the candidates, first to last. Rules 1 to 5 of section 5, with 4.16 between the first and the second.
inline std::vector<std::size_t> order_candidates(std::vector<candidate> const& all, std::uint64_t turn,
                                                 ordering_options const& options, prompt_key const& last) {
  prefix_walk const walk{all, last, !options.spread_families};
  std::uint64_t const aging = options.aging_cost_per_turn;
  std::uint64_t const band = options.band_turns;
  auto const age = [&](candidate const& c) { return less_or_zero(turn, c.enqueued_turn); };
  auto const grouping = [&](candidate const& c) {
    return c.saved_cost + (age(c) + band - 1) / band * band * std::max<std::uint64_t>(aging, 1);
  };
  auto const effective = [&](candidate const& c) { return c.saved_cost + age(c) * aging; };

  auto const before = [&](std::size_t i, std::size_t j) {
    candidate const& a = all[i];
    candidate const& b = all[j];
    std::pair const arrived_a{a.order, i};
    std::pair const arrived_b{b.order, j};
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.readmitted != b.readmitted) return a.readmitted;
    if (a.readmitted) return arrived_a < arrived_b;
    if (options.group_prefixes) {
      if (grouping(a) != grouping(b)) return grouping(a) > grouping(b);
      if (a.prompt != b.prompt) return walk.rank(i) < walk.rank(j);
    }
    if (effective(a) != effective(b)) return effective(a) > effective(b);
    return arrived_a < arrived_b;
  };
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), before);
  return order;
}

inline std::vector<std::size_t> order_by_arrival(std::vector<candidate> const& all) {
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    candidate const& a = all[i];
    candidate const& b = all[j];
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.readmitted != b.readmitted) return a.readmitted;  // 4.16 holds whatever the policy
    return std::pair{a.order, i} < std::pair{b.order, j};
  });
  return order;
}

// ---------------------------------------------------------------------------------------------- rates (6)

class phase_rate {
 public:
  void observe(std::uint64_t tokens, double ms) {
    if (tokens == 0 || !std::isfinite(ms) || ms <= 0) return;
    double const per_token = ms / static_cast<double>(tokens);
    ewma_ = ewma_ ? *ewma_ + 0.25 * (per_token - *ewma_) : per_token;
    recent_.push_back(per_token);
    if (recent_.size() > 64) recent_.pop_front();
  }

  std::optional<double> ms_per_token() const {
    if (!ewma_) return {};
    std::vector<double> sorted(recent_.begin(), recent_.end());
    std::sort(sorted.begin(), sorted.end());
    std::size_t const p95 = (95 * sorted.size() + 99) / 100 - 1;  // ceil(0.95 n) - 1, in whole numbers
    return std::max(*ewma_, sorted[p95]);
  }

 private:
  std::optional<double> ewma_;
  std::deque<double> recent_;
};

// ---------------------------------------------------------------------------------------------- the queue

class queue {
 public:
  struct waiter_view {
    std::uint64_t id;
    std::uint64_t demand;
    std::uint32_t priority;
    std::size_t place;
    std::uint32_t overtaken;
    kvlane::model::blocked blocked;
    std::uint64_t arrival;
    instant waited;
  };

  struct lease_view {
    std::uint64_t id;
    std::uint32_t lane;
    std::uint64_t tokens;
  };

  explicit queue(limits const& l, policy p = policy::cache_aware, ordering_options options = {})
      : limits_{l}, policy_{p}, options_{options} {
    if (p == policy::seed_order) options_.spread_families = true;
  }

  // ---- events

  step enqueue(request r, instant now) { return newcomer(std::move(r), now, false); }

  step try_admit(request r, instant now) { return newcomer(std::move(r), now, true); }

  step readmit(std::uint64_t lease, request r, instant now) {
    step s = begin(now);
    waiter w = prepare(std::move(r));
    auto const held = find_lease(lease);
    if (auto const refused = refused_readmission(w, held != leases_.end())) {
      own(s, refusal(*refused, w, blocked::nothing));
      dispatch(s);
      return s;
    }
    // 4.16: capacity returns and the request joins in one step.
    w.arrival = held->arrival;
    w.enqueued_turn = held->enqueued_turn;
    w.readmitted = true;
    w.limit = named_limit(w.ask);
    w.deadline = named_deadline(w.ask);
    w.overtaken = count_of_next_younger(w);
    leases_.erase(held);
    std::uint64_t const id = w.ask.id;
    if (has_expired(w)) {  // R24
      blocked const why = blocked_on(w);
      line_changed();
      own(s, refusal(code::timed_out, w, why));
      dispatch(s);
      return s;
    }
    own(s, joined(w));
    line_.push_back(std::move(w));
    dispatch(s);
    take_own_grant(s, id);
    return s;
  }

  step release(std::uint64_t lease, instant now) {
    step s = begin(now);
    give_back(lease);
    dispatch(s);
    return s;
  }

  step complete(std::uint64_t lease, sample const& done, instant now) {
    step s = begin(now);
    if (find_lease(lease) != leases_.end()) {  // 4.18: record, then release
      prefill_.observe(done.prompt_tokens, done.prefill_ms);
      decode_.observe(done.decode_tokens, done.decode_ms);
      give_back(lease);
    }
    dispatch(s);
    return s;
  }

  step shrink(std::uint64_t lease, std::uint64_t total, instant now) {
    step s = begin(now);
    if (auto const held = find_lease(lease); held != leases_.end()) {
      held->tokens = std::min(held->tokens, in_blocks(total));  // 4.1: to more does nothing
      s.flag = true;
    }
    dispatch(s);
    return s;
  }

  step grow(std::uint64_t lease, std::uint64_t total, instant now) {
    step s = begin(now);
    if (auto const held = find_lease(lease); held != leases_.end()) {
      // 4.1: ahead of every waiter, hence before the dispatch, and out of the growth reserve as well.
      std::uint64_t const more = less_or_zero(in_blocks(total), held->tokens);
      s.flag = more <= free_tokens();
      if (s.flag) held->tokens += more;
    }
    dispatch(s);
    return s;
  }

  step cancel(std::uint64_t id, instant now) {
    step s = begin(now);
    if (auto const place = find_waiter(id); place != line_.end()) {
      blocked const why = blocked_on(*place);
      waiter const w = take_out(place);
      own(s, refusal(code::cancelled, w, why));
      s.flag = true;
    }
    dispatch(s);
    return s;
  }

  step expire(instant now) {
    step s = begin(now);
    dispatch(s);
    return s;
  }

  step rescore(std::uint64_t id, std::uint64_t saved_cost, instant now) {
    step s = begin(now);
    if (auto const place = find_waiter(id); place != line_.end()) {
      place->ask.saved_cost = std::min(saved_cost, most_saved_cost);
      s.flag = true;
    }
    dispatch(s);
    return s;
  }

  step hold(instant now) {
    step s = begin(now);
    ++holds_;
    dispatch(s);
    return s;
  }

  step unhold(instant now) {
    step s = begin(now);
    if (holds_ > 0) --holds_;
    dispatch(s);
    return s;
  }

  step update(limits const& l, instant now) {
    step s = begin(now);
    limits_ = l;
    // 4.9: first those who can never be served any more, by arrival.
    end_all(s, code::no_longer_fits, by_arrival, [&](waiter const& w) { return w.demand > limits_.kv_capacity; });
    dispatch(s);
    return s;
  }

  step drain(instant now) {
    step s = begin(now);
    draining_ = true;
    dispatch(s);
    return s;
  }

  step reopen(instant now) {
    step s = begin(now);
    draining_ = false;  // closed_ stays: close is final (4.10)
    dispatch(s);
    return s;
  }

  step close(instant now) {
    step s = begin(now);
    closed_ = true;
    end_all(s, code::shutting_down, by_arrival, [](waiter const&) { return true; });
    dispatch(s);
    return s;
  }

  // ---- queries

  std::vector<waiter_view> waiters() const {
    std::vector<waiter_view> out;
    for (std::size_t i : order_of(line_)) {
      waiter const& w = line_[i];
      out.push_back(
          {w.ask.id, w.demand, w.ask.priority, out.size(), w.overtaken, blocked_on(w), w.arrival, now_ - w.joined_at});
    }
    return out;
  }

  std::vector<lease_view> leases() const {
    std::vector<lease_view> out;
    for (holding const& l : leases_) out.push_back({l.id, l.lane, l.tokens});
    return out;
  }

  std::uint64_t lanes_busy() const { return leases_.size(); }

  std::uint32_t lanes_free() const {
    return leases_.size() < limits_.lanes ? limits_.lanes - static_cast<std::uint32_t>(leases_.size()) : 0;
  }

  std::uint64_t tokens_used() const {
    std::uint64_t sum = 0;
    for (holding const& l : leases_) sum = add(sum, l.tokens);
    return sum;
  }

  std::uint64_t free_tokens() const { return less_or_zero(limits_.kv_capacity, tokens_used()); }

  std::uint64_t waiting() const { return line_.size(); }

  std::uint64_t waiting_tokens() const {
    std::uint64_t sum = 0;
    for (waiter const& w : line_) sum = add(sum, w.demand);
    return sum;
  }

  std::uint32_t max_waiting() const {
    if (limits_.max_waiting) return *limits_.max_waiting;
    std::uint64_t const wanted = 8 * std::uint64_t{limits_.lanes};
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 16, 256));
  }

  std::optional<instant> next_deadline() const {
    instant first = never;
    for (waiter const& w : line_) first = std::min(first, w.deadline);
    return first == never ? std::nullopt : std::optional{first};
  }

  std::optional<double> predicted_wait(std::uint32_t priority = 0) const {  // milliseconds
    auto const prefill = prefill_.ms_per_token();
    auto const decode = decode_.ms_per_token();
    if (!prefill && !decode) return {};
    work sum;
    for (holding const& l : leases_) sum.include(l.todo);  // 4.7: of every priority, whole until released
    for (waiter const& w : line_)
      if (w.ask.priority >= priority) sum.include(w.todo);
    double const ms = prefill.value_or(0) * static_cast<double>(sum.prompt_tokens) +
                      decode.value_or(0) * static_cast<double>(sum.decode_tokens);
    return ms / std::max<std::uint32_t>(1, limits_.lanes);
  }

  std::optional<double> mean_gap_ms() const { return mean_gap_ms_; }    // D of 4.13
  std::uint64_t refusals_since_admission() const { return refusals_; }  // i of 4.13
  std::uint64_t turn() const { return turn_; }
  std::uint32_t holds() const { return holds_; }
  limits const& current_limits() const { return limits_; }

  // Work conservation: whether the rules, holds aside, have somebody to admit. False after every event unless a
  // hold is on.
  bool anyone_parked_that_the_rules_would_admit() const { return next_to_admit().has_value(); }

 private:
  struct work {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t decode_tokens = 0;
    void include(work const& w) {
      prompt_tokens = add(prompt_tokens, w.prompt_tokens);
      decode_tokens = add(decode_tokens, w.decode_tokens);
    }
  };

  struct waiter {
    request ask;
    prompt_key prompt;
    std::uint64_t demand = 0;
    work todo;
    std::uint64_t arrival = 0;
    std::uint64_t enqueued_turn = 0;
    instant joined_at = 0;
    instant limit = never;     // how long it may wait
    instant deadline = never;  // until when, therefore
    std::uint32_t overtaken = 0;
    bool readmitted = false;
  };

  struct holding {
    std::uint64_t id;
    std::uint32_t lane;
    std::uint64_t tokens;
    work todo;
    std::uint64_t arrival;  // kept for a readmission (4.16)
    std::uint64_t enqueued_turn;
  };

  using line = std::vector<waiter>;

  // ---- the frame of an event

  step begin(instant now) {
    now_ = std::max(now_, now);
    step s;
    end_all(s, code::timed_out, by_deadline, [&](waiter const& w) { return has_expired(w); });
    return s;
  }

  bool has_expired(waiter const& w) const { return w.deadline != never && now_ >= w.deadline; }

  static bool by_deadline(waiter const& a, waiter const& b) {
    return std::tie(a.deadline, a.arrival) < std::tie(b.deadline, b.arrival);
  }

  static bool by_arrival(waiter const& a, waiter const& b) { return a.arrival < b.arrival; }

  // Ends all waiters that `leaves` names. They leave together; only then their figures are taken (R25), except for
  // what each was blocked on (R26).
  template <class Before, class Leaves>
  void end_all(step& s, code what, Before before, Leaves leaves) {
    std::vector<std::pair<waiter, blocked>> leaving;
    line staying;
    for (waiter const& w : line_) {
      if (leaves(w))
        leaving.emplace_back(w, blocked_on(w));
      else
        staying.push_back(w);
    }
    line_ = std::move(staying);
    line_changed();
    std::sort(leaving.begin(), leaving.end(), [&](auto const& a, auto const& b) { return before(a.first, b.first); });
    for (auto const& [w, why] : leaving) s.ended.push_back(refusal(what, w, why));
  }

  static void own(step& s, outcome const& o) {
    s.own = o.what;
    s.own_outcome = o;
  }

  static void take_own_grant(step& s, std::uint64_t id) {
    auto const mine = std::find_if(s.ended.begin(), s.ended.end(),
                                   [&](outcome const& o) { return o.id == id && o.what == code::admitted; });
    if (mine == s.ended.end()) return;
    own(s, *mine);
    s.ended.erase(mine);
  }

  // ---- newcomers (4.2)

  step newcomer(request r, instant now, bool only_at_once) {
    step s = begin(now);
    dispatch(s);  // whoever fits is served before the newcomer is looked at
    waiter w = prepare(std::move(r));
    w.arrival = arrivals_++;
    w.enqueued_turn = turn_;
    own(s, judge(std::move(w), only_at_once));
    return s;
  }

  outcome judge(waiter w, bool only_at_once) {
    if (is_invalid(w.ask)) return refusal(code::invalid_request, w, blocked::nothing);
    if (w.demand > limits_.kv_capacity) return refusal(code::never_fits, w, blocked::nothing);
    if (closed_ || draining_) return refusal(code::shutting_down, w, blocked::nothing);
    blocked const why = blocked_on(w);
    if (why == blocked::nothing) return admit(w);
    if (only_at_once) return refusal(code::would_wait, w, why, false);
    if (w.limit <= 0) return refusal(code::would_wait, w, why);
    if (!has_room_for(w)) return refusal(code::queue_full, w, why);
    if (would_outlast(w)) return refusal(code::would_time_out, w, why);
    outcome const o = joined(w);
    line_.push_back(std::move(w));
    return o;
  }

  static bool is_invalid(request const& r) {  // 4.15
    bool const has_prompt = !r.prompt.empty();
    bool const has_blocks = !r.prefix_blocks.empty();
    return r.priority > 15 || (has_prompt && has_blocks) || (has_blocks && r.prompt_tokens == 0) ||
           (r.prompt_tokens != 0 && r.prompt_tokens < r.prompt.size()) ||
           (!has_prompt && r.prompt_tokens == 0 && !r.kv_demand) || r.saved_cost > most_saved_cost;
  }

  bool has_room_for(waiter const& w) const {  // 4.3
    if (waiting() + 1 > max_waiting()) return false;
    return line_.empty() || add(waiting_tokens(), w.demand) <= limits_.max_waiting_tokens;
  }

  bool would_outlast(waiter const& w) const {  // 4.7
    if (w.limit == never) return false;
    auto const predicted = predicted_wait(w.ask.priority);
    return predicted && *predicted > in_ms(w.limit);
  }

  std::optional<code> refused_readmission(waiter const& w, bool lease_is_out) const {  // 4.16
    if (!lease_is_out || is_invalid(w.ask)) return code::invalid_request;
    if (w.demand > limits_.kv_capacity) return code::never_fits;
    if (closed_) return code::shutting_down;
    return {};
  }

  waiter prepare(request r) const {
    waiter w;
    std::uint64_t const prompt_tokens = r.prompt_tokens != 0 ? r.prompt_tokens : r.prompt.size();
    std::uint64_t const decode_tokens = std::min(r.max_tokens, limits_.decode_headroom);
    w.todo = {prompt_tokens, decode_tokens};
    w.demand = in_blocks(r.kv_demand ? *r.kv_demand : add(prompt_tokens, decode_tokens));
    w.prompt = key_of(r.prompt, r.prefix_blocks);
    w.joined_at = now_;
    bool const names_none = !r.max_wait && r.deadline == never;
    w.limit = names_none ? limits_.max_wait : named_limit(r);
    w.deadline = names_none ? later(now_, limits_.max_wait) : named_deadline(r);
    w.ask = std::move(r);
    return w;
  }

  instant named_limit(request const& r) const {
    return std::min(r.max_wait.value_or(never), distance(now_, r.deadline));
  }

  instant named_deadline(request const& r) const {
    return std::min(later(now_, r.max_wait.value_or(never)), r.deadline);
  }

  std::uint64_t in_blocks(std::uint64_t tokens) const { return round_up(tokens, limits_.block_tokens); }

  // ---- who may run (4.1, 4.5)

  std::uint64_t tokens_for_admission() const {
    return leases_.empty() ? free_tokens() : less_or_zero(free_tokens(), limits_.growth_reserve);
  }

  bool fits(waiter const& w) const { return lanes_free() > 0 && w.demand <= tokens_for_admission(); }

  waiter const* oldest_of(std::uint32_t priority) const {
    waiter const* oldest = nullptr;
    for (waiter const& w : line_)
      if (w.ask.priority == priority && (oldest == nullptr || w.arrival < oldest->arrival)) oldest = &w;
    return oldest;
  }

  // The due waiter of the highest priority that has one: P's of 4.5.
  waiter const* due_waiter() const {
    for (std::uint32_t priority = 16; priority-- > 0;) {
      waiter const* const oldest = oldest_of(priority);
      if (oldest != nullptr && oldest->overtaken >= limits_.max_overtakes) return oldest;
    }
    return nullptr;
  }

  // For somebody in the line and for a newcomer alike; arrivals tell whether the due waiter is the one asked about.
  bool held_back_by_due_rule(waiter const& w) const {
    waiter const* const due = due_waiter();
    return due != nullptr && w.ask.priority <= due->ask.priority && w.arrival != due->arrival;
  }

  blocked blocked_on(waiter const& w) const {
    if (holds_ > 0) return blocked::hold;
    if (lanes_free() == 0) return blocked::lane;
    if (w.demand > tokens_for_admission()) return blocked::tokens;
    if (held_back_by_due_rule(w)) return blocked::reservation;
    return blocked::nothing;
  }

  // ---- dispatch

  void dispatch(step& s) {
    if (holds_ > 0) return;
    while (auto const next = next_to_admit()) {
      auto const place = line_.begin() + static_cast<std::ptrdiff_t>(*next);
      waiter const w = *place;
      s.ended.push_back(admit(w));
    }
  }

  // The first in the order that fits and may be admitted. Whoever is above P comes before P's due waiter because the
  // order begins with the priority; nobody else of P or below passes the due rule.
  std::optional<std::size_t> next_to_admit() const {
    for (std::size_t i : order_for_pick())
      if (fits(line_[i]) && !held_back_by_due_rule(line_[i])) return i;
    return {};
  }

  std::vector<std::size_t> order_for_pick() const {
    std::vector<std::size_t> seen;  // which waiters the policy sorts
    line subset;
    for (std::size_t i = 0; i < line_.size(); ++i) {
      if (policy_ == policy::seed_order && !fits(line_[i])) continue;  // R21
      seen.push_back(i);
      subset.push_back(line_[i]);
    }
    std::vector<std::size_t> order;
    for (std::size_t i : order_of(subset)) order.push_back(seen[i]);
    return order;
  }

  std::vector<std::size_t> order_of(line const& some) const {
    std::vector<candidate> all;
    for (waiter const& w : some)
      all.push_back({w.ask.priority, w.ask.saved_cost, w.prompt, w.enqueued_turn, w.arrival, w.readmitted});
    return policy_ == policy::fcfs ? order_by_arrival(all) : order_candidates(all, turn_, options_, last_prompt_);
  }

  // Admits somebody out of the line or a newcomer; the latter is simply not found there.
  outcome admit(waiter const& w) {
    if (!line_.empty()) {  // 4.4: out of a non-empty line, or past it
      note_gap();
      count_overtakes_by(w);
      if (auto const place = find_waiter(w.ask.id); place != line_.end()) line_.erase(place);
      ++turn_;
      last_prompt_ = w.prompt;
    }
    line_changed();
    refusals_ = 0;
    std::uint32_t const lane = choose_lane(w.ask.preferred_lane);
    leases_.push_back({w.ask.id, lane, w.demand, w.todo, w.arrival, w.enqueued_turn});
    outcome o = figures(code::admitted, w);
    o.lane = lane;
    return o;
  }

  // 4.5: those older than x and of its priority or above see x admitted before them.
  void count_overtakes_by(waiter const& x) {
    for (waiter& w : line_)
      if (w.arrival < x.arrival && w.ask.priority >= x.ask.priority) ++w.overtaken;
  }

  std::uint32_t count_of_next_younger(waiter const& x) const {
    waiter const* next = nullptr;
    for (waiter const& w : line_) {
      if (w.ask.priority != x.ask.priority || w.arrival < x.arrival) continue;
      if (next == nullptr || w.arrival < next->arrival) next = &w;
    }
    return next == nullptr ? 0 : next->overtaken;
  }

  std::uint32_t choose_lane(std::optional<std::uint32_t> preferred) const {  // 4.9
    if (preferred && *preferred < limits_.lanes && !lane_is_taken(*preferred)) return *preferred;
    std::uint32_t lowest = 0;
    while (lane_is_taken(lowest)) ++lowest;
    return lowest;
  }

  bool lane_is_taken(std::uint32_t lane) const {
    return std::any_of(leases_.begin(), leases_.end(), [&](holding const& l) { return l.lane == lane; });
  }

  // ---- gaps and refusals (4.13)

  void note_gap() {
    if (last_admission_) {
      double const gap = in_ms(now_ - *last_admission_);
      mean_gap_ms_ = mean_gap_ms_ ? *mean_gap_ms_ + 0.25 * (gap - *mean_gap_ms_) : gap;
    }
    last_admission_ = now_;
  }

  // A gap lies within one period of a non-empty line, so an empty line forgets the admission it would begin with.
  void line_changed() {
    if (line_.empty()) last_admission_.reset();
  }

  static bool tells_to_retry(code what) {
    return what == code::would_wait || what == code::queue_full || what == code::would_time_out ||
           what == code::timed_out;
  }

  outcome figures(code what, waiter const& w) const {
    outcome o;
    o.id = w.ask.id;
    o.what = what;
    o.tokens = w.demand;
    o.waited = now_ - w.joined_at;
    o.overtaken = w.overtaken;
    o.waiting = waiting();
    o.free_tokens = free_tokens();
    o.free_lanes = lanes_free();
    o.kv_capacity = limits_.kv_capacity;
    o.max_waiting = max_waiting();
    return o;
  }

  outcome joined(waiter const& w) const { return figures(code::joined, w); }

  // w is not, or no longer, in the line.
  outcome refusal(code what, waiter const& w, blocked why, bool counted = true) {
    outcome o = figures(what, w);
    o.why = why;
    if (!tells_to_retry(what)) return o;
    if (counted) ++refusals_;
    o.predicted_wait_ms = predicted_wait(w.ask.priority);
    o.retry_after_exact_ms = retry_after_ms(what, w, o.predicted_wait_ms);
    if (o.retry_after_exact_ms) o.retry_after_s = whole_seconds(*o.retry_after_exact_ms);
    return o;
  }

  std::optional<double> retry_after_ms(code what, waiter const& w, std::optional<double> predicted) const {
    std::optional<double> ms;
    if (predicted)
      ms = what == code::would_time_out ? *predicted - in_ms(w.limit) : *predicted;
    else if (mean_gap_ms_)
      ms = static_cast<double>(waiting()) * *mean_gap_ms_;
    if (!ms) return {};
    return *ms + static_cast<double>(refusals_) * mean_gap_ms_.value_or(0);
  }

  static std::int64_t whole_seconds(double ms) {
    return static_cast<std::int64_t>(std::clamp(std::ceil(ms / 1000), 1.0, 60.0));
  }

  // ---- looking up

  line::iterator find_waiter(std::uint64_t id) {
    return std::find_if(line_.begin(), line_.end(), [&](waiter const& w) { return w.ask.id == id; });
  }

  std::vector<holding>::iterator find_lease(std::uint64_t id) {
    return std::find_if(leases_.begin(), leases_.end(), [&](holding const& l) { return l.id == id; });
  }

  waiter take_out(line::iterator place) {
    waiter w = *place;
    line_.erase(place);
    line_changed();
    return w;
  }

  void give_back(std::uint64_t id) {
    if (auto const held = find_lease(id); held != leases_.end()) leases_.erase(held);
  }

  limits limits_;
  policy policy_;
  ordering_options options_;

  line line_;
  std::vector<holding> leases_;
  phase_rate prefill_;
  phase_rate decode_;
  prompt_key last_prompt_;  // 5: kept when the line empties
  std::optional<double> mean_gap_ms_;
  std::optional<instant> last_admission_;  // within the present period of a non-empty line
  instant now_ = std::numeric_limits<instant>::min();
  std::uint64_t arrivals_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t refusals_ = 0;
  std::uint32_t holds_ = 0;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace kvlane::model
