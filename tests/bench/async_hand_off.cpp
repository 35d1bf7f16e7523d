#include "catalog.hpp"
#include "stopwatch.hpp"

#include <kvlane/asio.hpp>
#include <kvlane/kvlane.hpp>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvlane::bench {

namespace {

/// As many as a busy server may have in line; few enough for all of this to stay in the processor's caches.
constexpr std::size_t crowd = 64;

enum class timers { none, armed };

/// A context that one thread runs. With an armed timer it looks at the clock and at the system's events in each round.
class workshop {
 public:
  explicit workshop(timers t) {
    if (t == timers::none) return;  // not even an idle one: it would bring the reactor into the context
    timer_.emplace(context, std::chrono::hours{1}).async_wait([](auto const& /*error*/) {});
  }

  /// Runs until `stop` is called.
  void run() {
    context.restart();
    context.run();
  }

  asio::io_context context;

 private:
  std::optional<asio::steady_timer> timer_;
};

/// A handler that posts itself until it has run often enough.
struct bare_chain {
  workshop* shop;
  std::size_t left;
  void operator()() {
    if (--left == 0)
      shop->context.stop();
    else
      asio::post(shop->context, bare_chain{*this});
  }
};

side bare_posts(timers t) {
  return {.measure = [shop = std::make_shared<workshop>(t)](std::size_t rounds) {
    stopwatch watch;
    for (std::size_t done = 0; done < rounds; done += crowd) {
      watch.start();
      asio::post(shop->context, bare_chain{shop.get(), crowd});
      shop->run();
      watch.stop(crowd);
    }
    return watch.total();
  }};
}

/// `lines` queues with so many in line that there are 64 in all. Each handler gives a lease back, which hands it to the next
/// in line, or to the first in that of the next queue.
class hand_over_chain {
 public:
  hand_over_chain(timers t, std::size_t lines, duration max_wait) : shop_{t}, lines_(lines), max_wait_{max_wait} {
    for (auto& line : lines_) line = std::make_unique<admission_queue>(limits{.lanes = 1, .max_waiting = crowd});
  }

  nanoseconds time(std::size_t rounds) {
    stopwatch watch;
    for (std::size_t done = 0; done < rounds; done += crowd) {
      for (std::size_t i = 0; i != lines_.size(); ++i) {
        running_.push_back(std::move(*lines_[i]->try_admit({.kv_demand = 1})));
        for (std::size_t waiting = 0; waiting != crowd / lines_.size(); ++waiting)
          async_admit(shop_.context, *lines_[i], {.kv_demand = 1, .max_wait = max_wait_},
                      [this](admission slot) { go_on(std::move(*slot)); });
      }
      watch.start();
      running_[0].release();
      shop_.run();
      watch.stop(crowd);
      running_.clear();
      served_ = 0;
    }
    return watch.total();
  }

 private:
  void go_on(lease held) {
    auto const per_line = crowd / lines_.size();
    if (++served_ == crowd) return shop_.context.stop();
    if (served_ % per_line == 0) running_[served_ / per_line].release();
    held.release();
  }

  workshop shop_;
  std::vector<std::unique_ptr<admission_queue>> lines_;
  duration max_wait_;
  std::vector<lease> running_;
  std::size_t served_ = 0;
};

side hand_overs(timers t, std::size_t lines, duration max_wait) {
  return {.measure = [chain = std::make_shared<hand_over_chain>(t, lines, max_wait)](std::size_t rounds) {
    return chain->time(rounds);
  }};
}

/// From asking with a free lane to the handler.
side immediate(timers t) {
  struct scene {
    workshop shop;
    admission_queue queue;
    std::size_t served = 0;
    explicit scene(timers with) : shop{with} {}
    void ask() {
      async_admit(shop.context, queue, {.kv_demand = 1}, [this](admission slot) {
        slot->release();
        if (++served == crowd)
          shop.context.stop();
        else
          ask();
      });
    }
  };
  return {.measure = [s = std::make_shared<scene>(t)](std::size_t rounds) {
    stopwatch watch;
    for (std::size_t done = 0; done < rounds; done += crowd) {
      s->served = 0;
      watch.start();
      s->ask();
      s->shop.run();
      watch.stop(crowd);
    }
    return watch.total();
  }};
}

row hand_over_row(std::string name, timers t, std::size_t lines, duration max_wait, goal wanted) {
  return {std::move(name), "a bare post there", wanted,
          [=] { return contest{hand_overs(t, lines, max_wait), bare_posts(t)}; }};
}

}  // namespace

topic async_hand_off() {
  using std::chrono::hours;
  constexpr auto one_each = crowd;
  return {
      "Hand-off in an Asio context",
      "One thread runs a context. Measured: a lease ends, the handler of the next in line is posted, and runs. What it "
      "took to join the line is not counted. With one in line, 64 queues take turns, so that their memory is not the "
      "processor's newest. An armed timer makes the context ask the system for events in each round, which then is "
      "most "
      "of a bare post.",
      {hand_over_row("async hand-off, no timer", timers::none, one_each, forever, at_most_times(5)),
       hand_over_row("async hand-off, a timer is armed", timers::armed, one_each, forever, at_most_times(1.5)),
       hand_over_row("async hand-off, finite wait", timers::none, one_each, hours{1}, stated()),
       hand_over_row("async hand-off, no timer, 64 in line", timers::none, 1, forever, stated()),
       hand_over_row("async hand-off, a timer is armed, 64 in line", timers::armed, 1, forever, stated()),
       hand_over_row("async hand-off, finite waits, 64 in line", timers::none, 1, hours{1}, stated()),
       {"async_admit with a free lane, handler, release", "a bare post there", stated(),
        [] { return contest{immediate(timers::none), bare_posts(timers::none)}; }}}};
}

}  // namespace kvlane::bench
