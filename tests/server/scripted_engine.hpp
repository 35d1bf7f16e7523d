#pragma once

#include "engine.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace server::test {

/// An engine that does what the test says, when it says so.
class scripted_engine final : public engine {
 public:
  struct entry {
    generation g;
    event_sink sink;
  };

  void start(generation g, event_sink sink) override {
    auto const lane = g.lane;
    starts.push_back(g);
    running.insert_or_assign(lane, entry{std::move(g), std::move(sink)});
  }
  void extend(kvlane::lane_id lane, std::uint64_t room) override { running.at(lane).g.room = room; }
  void abort(kvlane::lane_id lane) noexcept override {
    aborts.push_back(lane);
    running.erase(lane);
  }
  [[nodiscard]] std::uint64_t cache_epoch() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t cached_tokens(std::span<kvlane::token_id const>) const noexcept override { return 0; }

  void tell(kvlane::lane_id lane, engine_event e) { running.at(lane).sink(std::move(e)); }
  void make_tokens(kvlane::lane_id lane, std::uint32_t count) {
    for (auto i = 0U; i != count; ++i) {
      auto const id = next_++;
      tell(lane, token_made{.id = id, .text = " t" + std::to_string(id)});
    }
  }
  void end(kvlane::lane_id lane, finish_reason why = finish_reason::stop) {
    auto const sink = running.at(lane).sink;
    running.erase(lane);
    sink(ended{.why = why, .sample = {}});
  }

  std::vector<generation> starts;
  std::vector<kvlane::lane_id> aborts;
  std::map<kvlane::lane_id, entry> running;

 private:
  kvlane::token_id next_ = 100;
};

}  // namespace server::test
