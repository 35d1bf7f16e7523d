// An event loop: whoever has to wait is called back, and erasing a client gives up its place in line or its lane.
// What is decided at once is returned, and the callback is only for those who wait: it never runs inside enqueue().

#include <kvlane/kvlane.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using queue_type =
    kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock>;

/// Clients by name; no name comes twice. Used by one thread, the one that runs the event loop.
class server {
 public:
  explicit server(kvlane::manual_clock clock)
      : clock_{std::move(clock)}, queue_{{.lanes = 1, .max_waiting = 2}, kvlane::cache_aware{}, {}, clock_} {}
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  /// Answers those who wait while there still is a map for their callbacks to look into.
  ~server() { queue_.close(); }

  void connect(std::string const& name, kvlane::duration max_wait) {
    auto const later = [this, name](kvlane::admission outcome) { tell("called back", name, std::move(outcome)); };
    kvlane::request const r{.prompt_tokens = 100, .max_tokens = 50, .max_wait = max_wait};
    if (auto now = queue_.enqueue(r, clients_[name].place, later)) tell("at once", name, std::move(*now));
  }
  /// Taken out of the map first: what it gives back may call others, who use the map.
  void disconnect(std::string const& name) { auto const gone = clients_.extract(name); }

  /// Lets time pass until the next deadline; a real loop has a timer that it arms again after every call of the queue.
  void sleep() {
    auto const next = queue_.next_deadline();
    if (!next) return;
    clock_.set(*next);
    queue_.expire();
  }

 private:
  struct client {
    kvlane::ticket place;
    kvlane::lease slot;
  };

  void tell(char const* how, std::string const& name, kvlane::admission outcome) {
    auto const found = clients_.find(name);
    if (found == clients_.end()) return;  // it left when its turn was on the way: the next one gets it
    if (outcome) {
      std::printf("  %s, %s: runs after %.0f ms in line\n", name.c_str(), how, outcome->waited().count());
      found->second.slot = std::move(*outcome);
    } else {
      std::printf("  %s, %s: %s\n", name.c_str(), how, outcome.error().message().c_str());
      disconnect(name);
    }
  }

  kvlane::manual_clock clock_;
  queue_type queue_;
  std::map<std::string, client> clients_;
};

int main() {
  server chat{kvlane::manual_clock{}};
  std::puts("ann gets the lane, bob and eve wait, and for dan the line is full");
  chat.connect("ann", 60s);
  chat.connect("bob", 10s);
  chat.connect("eve", 60s);
  chat.connect("dan", 10s);
  std::puts("bob hangs up, which leaves a place for fay; nobody is called");
  chat.disconnect("bob");
  chat.connect("fay", 5s);
  std::puts("fay's time is over");
  chat.sleep();
  std::puts("ann is done");
  chat.disconnect("ann");
  chat.connect("gus", 60s);
  std::puts("the server ends");
}
