// One running request for each agent session: a queue of one lane for every session, passed before the main queue.
// A session waits in its own queue, so it never holds a place in the main line, and both waits share one deadline.

#include <kvlane/kvlane.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using queue_type =
    kvlane::basic_admission_queue<kvlane::cache_aware, kvlane::null_observer, std::mutex, kvlane::manual_clock>;

/// The sessions that somebody uses. A session's queue lives for as long as one of its requests does.
class sessions {
 public:
  explicit sessions(kvlane::manual_clock clock) : clock_{clock} {}

  std::shared_ptr<queue_type> of(std::string const& id) {
    auto& known = known_[id];
    auto session = known.lock();
    if (!session) {
      session = std::make_shared<queue_type>(kvlane::limits{.lanes = 1}, kvlane::cache_aware{}, kvlane::null_observer{},
                                             clock_);
      known = session;
    }
    return session;
  }
  long users_of(std::string const& id) const {
    auto const found = known_.find(id);
    return found == known_.end() ? 0 : found->second.use_count();
  }
  std::size_t count() {
    std::erase_if(known_, [](auto const& entry) { return entry.second.expired(); });
    return known_.size();
  }

 private:
  kvlane::manual_clock clock_;
  std::map<std::string, std::weak_ptr<queue_type>> known_;
};

/// One request of a session: first the session's lane, then one of the server's. Destroying it gives back both.
class session_request {
 public:
  session_request(sessions& all, queue_type& server, std::string const& id, char const* name,
                  kvlane::time_point deadline)
      : server_{server}, session_{all.of(id)}, name_{name}, deadline_{deadline} {
    kvlane::request const r{.kv_demand = 0, .deadline = deadline_};
    if (auto now = session_->enqueue(r, place_, [this](auto a) { enter(std::move(a)); })) enter(std::move(*now));
  }
  void expire() {
    session_->expire();
    server_.expire();
  }

 private:
  void enter(kvlane::admission turn) {
    if (!turn) return say(turn.error().message().c_str());
    turn_ = std::move(*turn);
    kvlane::request const r{.prompt_tokens = 100, .deadline = deadline_};
    if (auto now = server_.enqueue(r, place_, [this](auto a) { start(std::move(a)); })) start(std::move(*now));
  }
  void start(kvlane::admission slot) {
    if (!slot) {
      turn_.release();
      return say(slot.error().message().c_str());
    }
    slot_ = std::move(*slot);
    say("runs");
  }
  void say(char const* what) const { std::printf("  %s: %s\n", name_, what); }

  queue_type& server_;
  std::shared_ptr<queue_type> session_;
  char const* name_;
  kvlane::time_point deadline_;
  kvlane::lease turn_;
  kvlane::lease slot_;    // goes back before the session's turn, so that the next of the session finds it free
  kvlane::ticket place_;  // given up before either
};

int main() {
  kvlane::manual_clock clock;
  sessions all{clock};
  queue_type server{{.lanes = 2, .max_waiting = 1}, kvlane::cache_aware{}, {}, clock};
  auto const ask = [&](char const* id, char const* name, kvlane::duration wait = 1h) {
    return std::make_unique<session_request>(all, server, id, name, clock() + wait);
  };
  auto const look = [&] {
    auto const s = server.snapshot();
    std::printf("  server: %u lanes busy, %llu of 1 waiting\n", s.lanes_busy,
                static_cast<unsigned long long>(s.waiting));
  };

  std::puts("a session runs one request at a time; its others take no place in the server's line");
  auto a1 = ask("a", "a1");
  auto a2 = ask("a", "a2");
  auto a3 = ask("a", "a3");
  look();
  std::puts("another session runs beside it");
  auto b1 = ask("b", "b1");
  look();
  std::puts("a waiter that is cancelled leaves nothing behind");
  a2.reset();
  std::printf("  users of session a: %ld\n", all.users_of("a"));
  std::puts("session and lane are held until the work ends");
  clock.advance(5min);
  look();
  a1.reset();
  std::printf("  users of session a: %ld\n", all.users_of("a"));
  std::puts("both waits share one deadline: 140 ms for the session leave 60 ms for the lane");
  auto c1 = ask("c", "c1");
  auto a4 = ask("a", "a4", 200ms);
  clock.advance(140ms);
  a3.reset();
  clock.advance(60ms);
  a4->expire();
  std::puts("sessions go with their last user");
  a4.reset();
  std::printf("  users of session a: %ld, sessions: %zu\n", all.users_of("a"), all.count());
  b1.reset();
  c1.reset();
  std::printf("  sessions: %zu\n", all.count());
  look();
}
