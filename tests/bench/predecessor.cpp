#include "catalog.hpp"
#include "herd_queue.hpp"
#include "standing_line.hpp"
#include "table.hpp"

#include <memory>
#include <string>

namespace kvlane::bench {

namespace {

side kvlane_admissions(std::size_t waiting) {
  auto const line = std::make_shared<standing_line<>>(crowd{.waiting = waiting});
  return {.measure = [line](std::size_t rounds) { return line->time_admissions(rounds); }};
}

/// The same burst before the model; a new one when a quarter is gone.
class herd {
 public:
  explicit herd(std::size_t waiting) : waiting_{waiting} {}

  [[nodiscard]] nanoseconds time_admissions(std::size_t rounds) {
    stopwatch watch;
    while (rounds != 0) {
      if (!queue_ || queue_->waiting() <= waiting_ - waiting_ / 4) rebuild();
      auto const now = std::min(rounds, queue_->waiting() - (waiting_ - waiting_ / 4));
      watch.start();
      queue_->admit(now);
      watch.stop(now);
      rounds -= now;
    }
    return watch.total();
  }

 private:
  void rebuild() {
    queue_ = std::make_unique<herd_queue>(320);
    prompt_source prompts{{}};
    for (std::size_t i = 0; i != waiting_; ++i) {
      auto const prompt = prompts.next();
      queue_->enqueue({prompt.begin(), prompt.end()}, 64);
    }
  }

  std::size_t waiting_;
  std::unique_ptr<herd_queue> queue_;
};

side herd_admissions(std::size_t waiting) {
  auto const crowd = std::make_shared<herd>(waiting);
  return {.measure = [crowd](std::size_t rounds) { return crowd->time_admissions(rounds); },
          .slice = std::chrono::milliseconds{10}};
}

row drain_row(std::size_t waiting) {
  return {"admission, equal scores, " + text_of(waiting) + " waiting", "model of the queue before", stated(),
          [waiting] { return contest{kvlane_admissions(waiting), herd_admissions(waiting)}; }};
}

}  // namespace

topic predecessor() {
  return {
      "Beside the queue that kvlane succeeds",
      "A model in C++ of how it works: all are woken at every event, and each looks whether it has been elected; the "
      "first to "
      "find that nobody is sorts everyone. One thread, and none of its runtime's own cost: the original took 5.8, 23 "
      "and "
      "445 us at 16, 256 and 4,096 waiting on such a machine. After a burst its first 32 admissions sort everyone, the "
      "later ones take the oldest.",
      {drain_row(16), drain_row(256), drain_row(4096)}};
}

}  // namespace kvlane::bench
