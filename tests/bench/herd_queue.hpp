#pragma once

#include <kvlane/ordering/candidates.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kvlane::bench {

/// The work that the queue before kvlane does, on one thread and without its runtime: every event wakes all waiters;
/// each looks whether it has been elected; the first to look when nobody is elects, by copying the list of all waiters,
/// dropping those that do not fit, asking the cache about the rest and sorting them. Who came 32 turns ago goes first.
/// An admitted request gives back at once. Waking a task here is a push into a deque, which flatters the original.
class herd_queue {
 public:
  explicit herd_queue(std::uint64_t capacity) : free_tokens_{capacity} {}

  void enqueue(std::vector<token_id> prompt, std::uint64_t demand) {
    std::lock_guard const lock{state_};
    waiters_.emplace(next_id_, waiter{std::make_shared<std::vector<token_id> const>(std::move(prompt)), nothing_cached_,
                                      demand, turn_, next_id_});
    elected_.reset();
    parked_.push_back(next_id_++);
    wake_all();
  }

  /// Lets tasks run until so many more have been admitted. Precondition: so many wait, and all fit.
  void admit(std::size_t count) {
    for (auto const goal = turn_ + count; turn_ != goal;) {
      if (ready_.empty()) wake_all();
      auto const id = ready_.front();
      ready_.pop_front();
      poll(id);
    }
  }

  [[nodiscard]] std::size_t waiting() const noexcept { return waiters_.size(); }

 private:
  struct waiter {
    std::shared_ptr<std::vector<token_id> const> prompt;
    std::shared_ptr<std::function<std::uint64_t()> const> saved_cost;
    std::uint64_t demand;
    std::uint64_t enqueued_turn;
    std::uint64_t order;
  };

  void wake_all() {
    ready_.insert(ready_.end(), parked_.begin(), parked_.end());
    parked_.clear();
  }

  void poll(std::uint64_t id) {
    if (elect() != id || !fits(waiters_.at(id).demand)) {
      parked_.push_back(id);
      return;
    }
    std::lock_guard const lock{state_};
    waiters_.erase(id);
    ++turn_;
    elected_.reset();
    wake_all();
  }

  [[nodiscard]] bool fits(std::uint64_t demand) {
    std::lock_guard const lock{budget_};
    return demand <= free_tokens_;
  }

  std::optional<std::uint64_t> elect() {
    std::lock_guard const one_at_a_time{election_};
    std::vector<std::pair<std::uint64_t, waiter>> all;
    {
      std::lock_guard const lock{state_};
      if (elected_) return elected_;
      all.assign(waiters_.begin(), waiters_.end());
    }
    auto const& [oldest, senior] = all.front();
    if (turn_ - senior.enqueued_turn >= 32) {
      if (fits(senior.demand)) elected_ = oldest;
      return elected_;
    }
    std::erase_if(all, [this](auto const& entry) { return !fits(entry.second.demand); });
    std::vector<candidate> candidates;
    candidates.reserve(all.size());
    for (auto const& [number, w] : all)
      candidates.push_back({.index = number,
                            .saved_cost = (*w.saved_cost)(),
                            .prompt = *w.prompt,
                            .enqueued_turn = w.enqueued_turn,
                            .order = w.order});
    auto const order = order_candidates(candidates, turn_, {.spread_families = true});
    if (!order.empty()) elected_ = order.front();
    return elected_;
  }

  std::mutex state_;
  std::mutex election_;
  std::mutex budget_;
  std::shared_ptr<std::function<std::uint64_t()> const> nothing_cached_ =
      std::make_shared<std::function<std::uint64_t()> const>([] { return std::uint64_t{0}; });
  std::map<std::uint64_t, waiter> waiters_;
  std::deque<std::uint64_t> parked_;
  std::deque<std::uint64_t> ready_;
  std::optional<std::uint64_t> elected_;
  std::uint64_t free_tokens_;
  std::uint64_t turn_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace kvlane::bench
