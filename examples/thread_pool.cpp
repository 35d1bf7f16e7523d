// Threads that block: each worker takes a job and waits in admit() until the job may run. Meanwhile admit() polls the
// client. One that hangs up leaves the line at once, and its worker is free for the next job.

#include <kvlane/kvlane.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <future>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace std::chrono_literals;

/// Tells when somebody has joined the line; for this program, which wants to know when to look.
struct line_watch {
  void operator()(kvlane::event const& e) noexcept {
    if (std::holds_alternative<kvlane::events::queued>(e)) joined->release();
  }
  std::counting_semaphore<>* joined;
};
using queue_type = kvlane::basic_admission_queue<kvlane::cache_aware, line_watch>;

struct client {
  std::uint64_t prompt_tokens = 0;
  std::atomic<bool> hung_up = false;  // a server would look at the socket
};

std::string serve(queue_type& queue, client const& c, std::stop_token const& stop) {
  auto const gone = [&] { return c.hung_up || stop.stop_requested(); };
  auto const slot = kvlane::admit(queue, {.prompt_tokens = c.prompt_tokens, .max_wait = 5min}, gone, 5ms);
  if (!slot) return slot.error().error_code().message();
  return "ran on lane " + std::to_string(slot->lane());
}  // lane and tokens go back here

int main() {
  std::counting_semaphore<> joined{0};
  queue_type queue{{.lanes = 1}, kvlane::cache_aware{}, line_watch{&joined}};
  auto const waiting_after = [&](int newcomers) {
    while (newcomers-- > 0) joined.acquire();
    return static_cast<unsigned long long>(queue.snapshot().waiting);
  };
  auto busy = queue.try_admit({.prompt_tokens = 1000});
  if (!busy) throw std::runtime_error{busy.error().message()};

  client ann{100}, bob{200}, eve{300};
  std::vector<std::packaged_task<std::string(std::stop_token const&)>> jobs;
  std::vector<std::future<std::string>> outcomes;
  for (auto* c : {&ann, &bob, &eve}) {
    jobs.emplace_back([&queue, c](std::stop_token const& stop) { return serve(queue, *c, stop); });
    outcomes.push_back(jobs.back().get_future());
  }
  std::atomic<std::size_t> next = 0;
  auto const work = [&](std::stop_token const& stop) {
    for (auto i = next++; i < jobs.size(); i = next++) jobs[i](stop);
  };
  std::jthread const workers[]{std::jthread{work},
                               std::jthread{work}};  // told to stop, and joined, before the rest goes

  std::printf("the lane is busy and both workers wait: %llu in line\n", waiting_after(2));
  bob.hung_up = true;
  std::printf("bob hangs up: %s\n", outcomes[1].get().c_str());
  std::printf("his worker has taken eve's job: %llu in line\n", waiting_after(1));
  busy->release();
  std::printf("ann: %s\n", outcomes[0].get().c_str());
  std::printf("eve: %s\n", outcomes[2].get().c_str());
}
