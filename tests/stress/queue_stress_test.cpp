// Four threads do to one queue everything that can be done to it. Whatever happens, every request has one outcome and in the
// end everything is back. Bounded by the number of operations; meant for ThreadSanitizer.

#include "support/queue_fixture.hpp"
#include "support/recording_observer.hpp"
#include "support/stress_seed.hpp"

#include <kvlane/blocking.hpp>
#include <kvlane/inbox.hpp>
#include <kvlane/ordering/fcfs.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using kvlane::admission;
using kvlane::errc;
using kvlane::lease;
using kvlane::limits;
using kvlane::ticket;
using kvlane::token_id;
using namespace std::chrono_literals;

constexpr int threads = 4;
constexpr int operations = 4'000;  // of each thread

/// A cache whose answers change all the time.
class restless_cache {
 public:
  [[nodiscard]] std::uint64_t epoch() const noexcept { return state_->fetch_add(1, std::memory_order_relaxed) / 8; }
  [[nodiscard]] std::optional<std::uint64_t> saved_cost(std::span<token_id const> prompt) noexcept {
    auto const answer = (epoch() * 7 + static_cast<std::uint64_t>(prompt.front())) % 5;
    if (answer == 4) return std::nullopt;
    return answer * 10'000;
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> state_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// Leases that nobody in particular holds.
class lease_pool {
 public:
  void put(lease l) {
    std::lock_guard const lock{mutex_};
    leases_.push_back(std::move(l));
  }
  /// Any of them; an empty lease when there is none. Its release happens outside of the mutex, in the hands of the caller.
  [[nodiscard]] lease take(std::size_t index) {
    std::lock_guard const lock{mutex_};
    if (leases_.empty()) return {};
    std::swap(leases_[index % leases_.size()], leases_.back());
    auto taken = std::move(leases_.back());
    leases_.pop_back();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<lease> leases_;
};

/// One request that is answered by a callback.
struct job {
  ticket place;
  std::atomic<int> outcomes{0};
  bool cancelled = false;
};

template <class Queue>
class crowd {
 public:
  crowd(Queue& queue, unsigned seed) : queue_{queue}, seed_{seed} {}

  void run() {
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([this, t] { work(std::mt19937{seed_ + static_cast<unsigned>(t)}); });
    for (auto& w : workers) w.join();
    // What runs or lies in the inbox goes back, which may admit others, whose leases go back ...
    queue_.reopen();
    for (;;) {
      auto const from_pool = pool_.take(0);
      auto const from_box = take_inbox();
      if (!from_pool && from_box == 0 && queue_.snapshot().waiting == 0) break;
      queue_.update([](limits& l) {
        l.lanes = 4;
        l.kv_capacity = 100;
        l.growth_reserve = 0;
      });
      queue_.expire();
    }
    std::uint64_t cancelled = 0;
    for (auto& mine : jobs_)
      for (auto& j : mine) {
        cancelled += j->cancelled ? 1U : 0U;
        EXPECT_EQ(j->outcomes + (j->cancelled ? 1 : 0), 1) << "a request has exactly one outcome";
      }
    kvlane::test::expect_nothing_left(queue_);
    EXPECT_EQ(inbox_outcomes_ + inbox_cancelled_, inbox_requests_);
    auto const counters = queue_.snapshot().counters;
    EXPECT_EQ(counters.cancelled, cancelled + inbox_cancelled_ + blocking_cancelled_);
    EXPECT_EQ(requests_ + counters.readmitted,
              counters.admitted + counters.refused_in_all() + counters.cancelled - readmits_refused_);
  }

 private:
  using jobs = std::vector<std::unique_ptr<job>>;

  void work(std::mt19937 random) {
    jobs mine;
    std::vector<ticket> box_places;
    auto const below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int i = 0; i < operations; ++i) {
      switch (below(20)) {
        case 0:
        case 1:
        case 2: ask(mine, below); break;
        case 3:
        case 4:
        case 5:
        case 6: pool_.take(below(100)).release(); break;
        case 7: pool_.take(below(100)).complete({.prompt_tokens = 10, .prefill = 10us}); break;
        case 8: cancel(mine, below); break;
        case 9: queue_.expire(); break;
        case 10: ask_inbox(box_places, below); break;
        case 11: take_inbox(); break;
        case 12: block(below); break;
        case 13: resize(below); break;
        case 14: grow(below); break;
        case 15: readmit(mine, below); break;
        case 16: hold(mine, below); break;
        case 17: try_admit(below); break;
        case 18:
          if (below(8) != 0) break;
          queue_.drain();
          queue_.reopen();
          break;
        default: look(mine, below);
      }
    }
    for (auto& place : box_places)
      if (place.cancel()) ++inbox_cancelled_;
    for (auto& j : mine) j->cancelled = j->cancelled || j->place.cancel();
    std::lock_guard const lock{jobs_mutex_};
    jobs_.push_back(std::move(mine));
  }

  template <class Below>
  kvlane::request any_request(Below const& below, std::array<token_id, 4>& prompt) {
    for (auto& symbol : prompt) symbol = static_cast<token_id>(below(3));
    kvlane::request r{
        .prompt = prompt, .kv_demand = 1 + below(40), .priority = below(3), .saved_cost = below(3) * 5'000U};
    if (below(2) == 0) r.max_wait = std::chrono::microseconds{below(400)};
    return r;
  }
  auto completion_of(job& j) {
    return [this, &j](admission a) noexcept { settle(j, std::move(a)); };
  }
  void settle(job& j, admission a) {
    ++j.outcomes;
    if (a) pool_.put(std::move(*a));
  }

  template <class Below>
  void ask(jobs& mine, Below const& below) {
    std::array<token_id, 4> prompt;
    auto const r = any_request(below, prompt);
    auto& j = *mine.emplace_back(std::make_unique<job>());
    ++requests_;
    if (auto now = queue_.enqueue(r, j.place, completion_of(j))) settle(j, std::move(*now));
  }
  template <class Below>
  void cancel(jobs& mine, Below const& below) {
    if (mine.empty()) return;
    auto& j = *mine[mine.size() - 1 - below(8) % mine.size()];
    if (!j.cancelled) j.cancelled = j.place.cancel();
  }
  template <class Below>
  void readmit(jobs& mine, Below const& below) {
    auto held = pool_.take(below(100));
    if (!held) return;
    std::array<token_id, 4> prompt;
    auto const r = any_request(below, prompt);
    auto& j = *mine.emplace_back(std::make_unique<job>());
    auto now = queue_.readmit(std::move(held), r, j.place, completion_of(j));
    if (held) ++readmits_refused_;  // NOLINT(bugprone-use-after-move): a refusal takes nothing
    if (now) settle(j, std::move(*now));
  }
  template <class Below>
  void hold(jobs& mine, Below const& below) {
    auto const held = queue_.hold_dispatch();
    pool_.take(below(100)).release();
    readmit(mine, below);
    pool_.take(below(100)).release();
  }
  template <class Below>
  void try_admit(Below const& below) {
    std::array<token_id, 4> prompt;
    ++requests_;
    if (auto slot = queue_.try_admit(any_request(below, prompt))) pool_.put(std::move(*slot));
  }
  template <class Below>
  void ask_inbox(std::vector<ticket>& places, Below const& below) {
    std::array<token_id, 4> prompt;
    auto const r = any_request(below, prompt);
    ++requests_;
    ++inbox_requests_;
    auto& place = places.emplace_back();
    if (queue_.enqueue(r, place, box_.slot(1))) {
      ++inbox_outcomes_;
      places.pop_back();
    }
  }
  std::size_t take_inbox() {
    auto const arrived = box_.take();
    inbox_outcomes_ += arrived.size();
    return arrived.size();
  }
  template <class Below>
  void block(Below const& below) {
    std::array<token_id, 4> prompt;
    auto r = any_request(below, prompt);
    r.max_wait = std::chrono::microseconds{below(500)};
    ++requests_;
    std::optional<admission> outcome;
    switch (below(3)) {
      case 0: outcome = kvlane::admit(queue_, r); break;
      case 1: outcome = kvlane::admit(queue_, r, [&] { return below(2) == 0; }, 1ms); break;
      default: {
        kvlane::pending_admission pending{queue_, r};
        if (below(2) == 0) pending.cancel();
        outcome = pending.take();
      }
    }
    if (!*outcome && outcome->error().code() == errc::cancelled) ++blocking_cancelled_;
  }
  template <class Below>
  void resize(Below const& below) {
    queue_.update([&](limits& l) {
      l.lanes = below(5);
      l.kv_capacity = 50 + below(51);
      l.growth_reserve = below(10);
      l.max_overtakes = below(6);
    });
  }
  template <class Below>
  void grow(Below const& below) {
    auto held = pool_.take(below(100));
    if (!held) return;
    (void)held.try_grow_to(below(60));
    held.shrink_to(below(30));
    pool_.put(std::move(held));
  }
  template <class Below>
  void look(jobs& mine, Below const& below) {
    auto const s = queue_.snapshot();
    EXPECT_GE(s.counters.admitted, s.counters.released);
    (void)queue_.predicted_wait(below(16));
    (void)queue_.next_deadline();
    EXPECT_LE(queue_.waiters(5).size(), 5U);
    if (mine.empty()) return;
    auto& j = *mine.back();
    (void)j.place.info();
    (void)j.place.waiting();
    j.place.set_saved_cost(below(50'000));
  }

  Queue& queue_;
  unsigned seed_;
  lease_pool pool_;
  kvlane::inbox box_;
  std::mutex jobs_mutex_;
  std::vector<jobs> jobs_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> readmits_refused_{0};
  std::atomic<std::uint64_t> inbox_requests_{0};
  std::atomic<std::uint64_t> inbox_outcomes_{0};
  std::atomic<std::uint64_t> inbox_cancelled_{0};
  std::atomic<std::uint64_t> blocking_cancelled_{0};
};

template <class Queue>
void everything_at_once(Queue& queue) {
  auto const seed = kvlane::test::choose_seed();
  std::printf("KVLANE_STRESS_SEED=%u\n", seed);
  SCOPED_TRACE("KVLANE_STRESS_SEED=" + std::to_string(seed));
  crowd{queue, seed}.run();
}

constexpr limits small{.lanes = 3, .kv_capacity = 100, .max_waiting = 40, .max_overtakes = 4};

TEST(QueueStress, EveryRequestHasOneOutcomeAndEverythingComesBack) {
  kvlane::admission_queue queue{small};
  everything_at_once(queue);
}

TEST(QueueStress, EveryRequestHasOneOutcomeAlsoWhileACacheIsAskedAllTheTime) {
  kvlane::admission_queue queue{small};
  queue.attach(restless_cache{});
  everything_at_once(queue);
}

TEST(QueueStress, EventsOfManyThreadsAreNumberedWithoutAGap) {
  kvlane::test::recording_observer observer;
  {
    kvlane::basic_admission_queue<kvlane::fcfs, kvlane::test::recording_observer> queue{small, kvlane::fcfs{},
                                                                                        observer};
    queue.attach(restless_cache{});
    everything_at_once(queue);
  }
  std::vector<bool> seen(observer.events().size() + 1, false);
  for (auto const& e : observer.events()) {
    auto const number = kvlane::test::sequence_of(e);
    ASSERT_GT(number, 0U);
    ASSERT_LT(number, seen.size()) << "a number was left out";
    EXPECT_FALSE(seen[number]) << "a number was given twice";
    seen[number] = true;
  }
}

/// Two events race for one waiter, again and again. Exactly one of them wins, and the lane is never lost.
class TwoAtOnce : public testing::Test {
 protected:
  template <class A, class B>
  void race(A const& a, B const& b, std::optional<kvlane::duration> max_wait = {}) {
    for (int round = 0; round < 1'000; ++round) {
      auto running = std::move(*queue.try_admit({.kv_demand = 1}));
      std::atomic<int> outcomes{0};
      ticket place;
      if (queue.enqueue({.kv_demand = 1, .max_wait = max_wait}, place, [&](admission) { ++outcomes; })) ++outcomes;
      std::atomic<bool> go{false};
      std::atomic<bool> cancelled{false};
      std::thread other{[&] {
        while (!go) std::this_thread::yield();
        a(running, place, cancelled);
      }};
      go = true;
      b(running, place, cancelled);
      other.join();
      running.release();
      EXPECT_EQ(outcomes + (cancelled ? 1 : 0), 1);
      ASSERT_EQ(queue.snapshot().lanes_busy, 0U);
      ASSERT_EQ(queue.snapshot().waiting, 0U);
    }
  }
  static void release(lease& running, ticket&, std::atomic<bool>&) { running.release(); }
  static void cancel(lease&, ticket& place, std::atomic<bool>& cancelled) { cancelled = place.cancel(); }
  void expire() { queue.expire(); }

  kvlane::admission_queue queue{{.lanes = 1}};
};

TEST_F(TwoAtOnce, CancelAndGrant) { race(release, cancel); }

TEST_F(TwoAtOnce, ExpiryAndGrant) {
  race(
      release,
      [this](lease&, ticket& place, std::atomic<bool>&) {
        while (place.waiting()) queue.expire();
      },
      1us);
}

TEST_F(TwoAtOnce, ExpiryAndCancel) {
  race(
      cancel,
      [this](lease&, ticket& place, std::atomic<bool>&) {
        while (place.waiting()) queue.expire();
      },
      1us);
}

TEST_F(TwoAtOnce, GrantAndDestruction) {
  for (int round = 0; round < 1'000; ++round) {
    auto mine = std::make_unique<kvlane::admission_queue>(limits{.lanes = 1});
    auto running = std::move(*mine->try_admit({.kv_demand = 1}));
    std::atomic<int> outcomes{0};
    ticket place;
    ASSERT_FALSE(mine->enqueue({.kv_demand = 1}, place, [&](admission) { ++outcomes; }));
    std::thread other{[&] { running.release(); }};
    mine.reset();
    other.join();
    EXPECT_EQ(outcomes, 1);
  }
}

}  // namespace
