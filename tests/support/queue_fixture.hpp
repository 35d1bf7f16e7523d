#pragma once

#include <kvlane/admission_queue.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kvlane::test {

using namespace std::chrono_literals;

/// Nobody has anything: no lane is busy, no token is used, nobody waits.
template <class Queue>
void expect_nothing_left(Queue const& queue) {
  auto const s = queue.snapshot();
  EXPECT_EQ(s.lanes_busy, 0U) << "a lane was not given back";
  EXPECT_EQ(s.kv_tokens_used, 0U) << "KV tokens were not given back";
  EXPECT_EQ(s.waiting, 0U) << "somebody still waits";
  EXPECT_EQ(s.waiting_tokens, 0U);
  EXPECT_EQ(s.counters.admitted, s.counters.released) << "as many leases as were handed out have come back";
}

/// Why it was refused; nothing if it was admitted.
inline std::optional<errc> refused(admission const& a) { return a ? std::nullopt : std::optional{a.error().code()}; }

/// One request as its owner sees it: its place, and its outcome once there is one.
struct client {
  std::uint64_t tag = 0;
  ticket place;
  std::optional<admission> outcome;
  bool at_once = false;        ///< the outcome was returned, and not delivered later
  std::uint32_t outcomes = 0;  ///< how many it got: never more than one

  [[nodiscard]] bool waits() const { return !outcome && place.waiting(); }
  /// Whether it holds a lease.
  [[nodiscard]] bool runs() const { return outcome && *outcome && **outcome; }
  /// Why it was refused; nothing while it waits or once it was admitted.
  [[nodiscard]] std::optional<errc> refused() const { return outcome ? test::refused(*outcome) : std::nullopt; }
  [[nodiscard]] kvlane::lease& lease() { return **outcome; }
  [[nodiscard]] rejection const& why() const { return outcome->error(); }
  /// Gives its lease back.
  void finish() { lease().release(); }
};

/// A queue with a manual clock, and clients who ask it for a lease through callbacks. At the end of every test everybody
/// leaves, and then nothing may be missing.
template <class Policy = cache_aware, class Observer = null_observer, class Clock = manual_clock>
class queue_fixture : public testing::Test {
 public:
  using queue_type = basic_admission_queue<Policy, Observer, std::mutex, Clock>;

 protected:
  // May be called again; a policy that was moved from is of no use then, so a new one takes its place.
  void open(limits const& l = {}) {
    if (std::exchange(opened_, true)) policy = Policy{};
    queue_ = std::make_unique<queue_type>(l, std::move(policy), observer, clock);
  }
  void destroy_queue() { queue_.reset(); }
  [[nodiscard]] queue_type& queue() { return *queue_; }

  /// A client that will put its outcome where the fixture sees it. Tags are 1, 2, 3 ... unless the request has one.
  client& newcomer(request& r) {
    auto& c = clients_.emplace_back();
    c.tag = r.tag != 0 ? r.tag : clients_.size();
    r.tag = c.tag;
    return c;
  }
  [[nodiscard]] auto completion_of(client& c) {
    return [this, &c](admission a) noexcept {
      told.push_back(c.tag);
      settle(c, std::move(a));
    };
  }
  /// Sends a request through `enqueue`.
  client& send(request r) {
    auto& c = newcomer(r);
    settle_at_once(c, queue().enqueue(r, c.place, completion_of(c)));
    return c;
  }
  /// Sends a request through `try_admit`.
  client& try_send(request r) {
    auto& c = newcomer(r);
    settle_at_once(c, queue().try_admit(r));
    return c;
  }
  /// Preempts `of`, whose work goes on as the request `r`.
  client& readmit(client& of, request r) {
    auto& c = newcomer(r);
    settle_at_once(c, queue().readmit(std::move(of.lease()), r, c.place, completion_of(c)));
    return c;
  }

  /// Gives back the lease of the client with this tag.
  void finish(std::uint64_t tag) {
    for (auto& c : clients_)
      if (c.tag == tag) c.finish();
  }

  void advance(duration by) { clock.advance(by); }
  [[nodiscard]] std::uint64_t depth() { return queue().snapshot().waiting; }
  [[nodiscard]] std::uint32_t lanes_busy() { return queue().snapshot().lanes_busy; }
  [[nodiscard]] std::uint64_t tokens_used() { return queue().snapshot().kv_tokens_used; }
  /// Teaches the queue that both phases take 1 ms for each token.
  void warm_up() {
    auto& c = send({.prompt_tokens = 1, .max_tokens = 1, .tag = 1'000'000});
    c.lease().complete({.prompt_tokens = 10, .decode_tokens = 10, .prefill = 10ms, .decode = 10ms});
    clients_.pop_back();
    admitted.clear();
  }

  void TearDown() override {
    if (!queue_) return;
    for (auto& c : clients_) {
      if (c.outcome && *c.outcome) continue;
      c.place = {};
    }
    // Each lease that comes back may go to somebody who waits, if the test has left a hold or a drain behind.
    for (auto& c : clients_) {
      EXPECT_LE(c.outcomes, 1U) << "request " << c.tag;
      c.place = {};
      c.outcome.reset();
    }
    expect_nothing_left(queue());
  }

  Clock clock{};
  Policy policy{};
  Observer observer{};
  std::vector<std::uint64_t> admitted;  ///< tags in the order of admission
  std::vector<std::uint64_t> told;      ///< tags in the order in which completions ran

 private:
  void settle(client& c, admission a) {
    ++c.outcomes;
    if (a) admitted.push_back(c.tag);
    c.outcome = std::move(a);
  }
  void settle_at_once(client& c, std::optional<admission> a) {
    if (!a) return;
    c.at_once = true;
    settle(c, std::move(*a));
  }

  std::unique_ptr<queue_type> queue_;
  bool opened_ = false;
  std::deque<client> clients_;  // leases and tickets may outlive the queue, so they may go after it or before
};

using tags = std::vector<std::uint64_t>;

}  // namespace kvlane::test
