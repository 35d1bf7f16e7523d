#pragma once

#include <kvlane/ordering/candidates.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/waiter_base.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace kvlane::test {

/// A policy and the waiters in it, without a core around them. Keeps the turn and the last prompt as the design says, so
/// that the order of the policy can be held against `order_candidates`.
template <class Policy>
class policy_line {
 public:
  struct arrival {
    std::uint32_t priority = 0;
    std::uint64_t saved_cost = 0;
    std::uint64_t demand = 1;
    std::vector<token_id> prompt = {};
    std::vector<std::uint64_t> blocks = {};
    std::optional<std::uint64_t> enqueued_turn = {};  ///< the present one unless said otherwise
  };

  explicit policy_line(ordering_options const& options = {}) : policy_{options}, options_{options} {}

  [[nodiscard]] Policy& policy() noexcept { return policy_; }
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }

  /// Puts a waiter into line; returns its tag, counted from 1.
  std::uint64_t join(arrival const& a) {
    auto w = std::make_unique<waiter>();
    w->set({.arrival = ++arrivals_,
            .enqueued_turn = a.enqueued_turn.value_or(turn_),
            .demand = a.demand,
            .saved_cost = a.saved_cost,
            .tag = arrivals_,
            .priority = a.priority},
           {.tokens = a.prompt, .blocks = a.blocks});
    policy_.insert(*w);
    line_.push_back(std::move(w));
    return arrivals_;
  }

  /// The tag of whom the policy picks; 0 for nobody.
  [[nodiscard]] std::uint64_t pick(std::uint64_t free_tokens = ~std::uint64_t{0}, std::uint32_t min_priority = 0) {
    auto const* const w = policy_.pick({.free_tokens = free_tokens, .min_priority = min_priority});
    return w == nullptr ? 0 : w->tag();
  }

  /// Takes a waiter out of line, and destroys it.
  void leave(std::uint64_t tag, departure why) {
    auto const at = find(tag);
    policy_.erase(**at, why);
    if (why == departure::admitted) {
      ++turn_;
      auto const tokens = (*at)->prompt().tokens;
      last_.assign(tokens.begin(), tokens.end());
    }
    line_.erase(at);
  }

  /// Admits whom the policy picks; returns the tag, 0 for nobody.
  std::uint64_t admit(std::uint64_t free_tokens = ~std::uint64_t{0}, std::uint32_t min_priority = 0) {
    auto const tag = pick(free_tokens, min_priority);
    if (tag != 0) leave(tag, departure::admitted);
    return tag;
  }

  /// Admits until nobody is left; returns the tags.
  std::vector<std::uint64_t> admit_all() {
    std::vector<std::uint64_t> tags;
    while (auto const tag = admit()) tags.push_back(tag);
    return tags;
  }

  void rescore(std::uint64_t tag, std::uint64_t saved_cost) {
    auto& w = **find(tag);
    w.save(saved_cost);
    policy_.rescore(w);
  }

  /// Lets turns pass in which somebody without a prompt is admitted.
  void pass_turns(std::uint64_t turns) {
    for (std::uint64_t i = 0; i != turns; ++i) leave(join({}), departure::admitted);
  }

  [[nodiscard]] std::vector<std::uint64_t> order() {
    std::vector<std::uint64_t> tags;
    policy_.for_each_in_order([&](waiter_base const& w) {
      tags.push_back(w.tag());
      return true;
    });
    return tags;
  }

  /// What `order_candidates` makes of the waiters that need at most `tokens`. They must not have blocks.
  [[nodiscard]] std::vector<std::uint64_t> expected_order(std::uint64_t tokens = ~std::uint64_t{0}) const {
    std::vector<candidate> candidates;
    for (auto const& w : line_)
      if (w->demand() <= tokens)
        candidates.push_back({.index = w->tag(),
                              .priority = w->priority(),
                              .saved_cost = w->saved_cost(),
                              .prompt = w->prompt().tokens,
                              .enqueued_turn = w->enqueued_turn(),
                              .order = w->arrival()});
    auto const sorted = order_candidates(candidates, turn_, options_, last_);
    return {sorted.begin(), sorted.end()};
  }

  /// The first of `order` that needs at most `tokens` and is not below `min_priority`; 0 for nobody.
  [[nodiscard]] std::uint64_t first_fitting(std::vector<std::uint64_t> const& order, std::uint64_t tokens,
                                            std::uint32_t min_priority) const {
    auto const fits = [&](std::uint64_t tag) {
      auto const& w = **std::ranges::find(line_, tag, [](auto const& p) { return p->tag(); });
      return w.demand() <= tokens && w.priority() >= min_priority;
    };
    auto const best = std::ranges::find_if(order, fits);
    return best == order.end() ? 0 : *best;
  }

  /// The tag of one of those in line. Precondition: somebody is.
  [[nodiscard]] std::uint64_t anyone(std::mt19937& random) const { return line_[random() % line_.size()]->tag(); }

 private:
  class waiter final : public Policy::waiter {
   public:
    void set(waiter_facts const& facts, prompt_view prompt) {
      this->facts_ = facts;
      this->prompt_ = shared_prompt{prompt};
    }
    void save(std::uint64_t saved_cost) noexcept { this->facts_.saved_cost = saved_cost; }
  };

  auto find(std::uint64_t tag) {
    return std::ranges::find(line_, tag, [](auto const& w) { return w->tag(); });
  }

  Policy policy_;
  ordering_options options_;
  std::vector<std::unique_ptr<waiter>> line_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t turn_ = 0;
  std::vector<token_id> last_;
};

/// One random event in `line`: somebody joins (fresh, or as preempted work does), leaves, is admitted or rescored. Few
/// symbols, costs and demands, so that most things tie.
template <class Policy>
void random_event(policy_line<Policy>& line, std::mt19937& random) {
  auto const cost = [&] { return std::vector<std::uint64_t>{0, 0, 1, 4096, 9000}[random() % 5]; };
  auto const what = line.size() < 3 ? 0 : random() % 12;
  if (what < 5) {
    typename policy_line<Policy>::arrival a{.priority = static_cast<std::uint32_t>(random() % 8 == 0 ? 1 : 0),
                                            .saved_cost = cost(),
                                            .demand = random() % 20};
    for (auto length = random() % 6; length != 0; --length) a.prompt.push_back(static_cast<token_id>(random() % 3) - 1);
    if (random() % 5 == 0) a.enqueued_turn = random() % (line.turn() + 1);
    (void)line.join(a);
  } else if (what == 5) {
    line.leave(line.anyone(random), departure::cancelled);
  } else if (what == 6) {
    line.rescore(line.anyone(random), cost());
  } else if (what == 7) {
    line.leave(line.anyone(random), departure::admitted);  // the core chose another: due, or readmitted
  } else {
    (void)line.admit(random() % 25);
  }
}

}  // namespace kvlane::test
