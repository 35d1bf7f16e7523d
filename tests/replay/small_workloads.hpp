#pragma once

#include "simulation.hpp"

#include <chrono>
#include <initializer_list>
#include <utility>
#include <vector>

namespace replay::testing {

using std::chrono::milliseconds;

/// A request of a workload that is written out by hand.
struct hand_written {
  milliseconds at{};
  std::uint32_t prompt = 0;
  std::uint32_t reply = 1;
  std::vector<std::uint64_t> blocks = {};
};

inline workload workload_of(std::initializer_list<hand_written> requests) {
  workload w;
  w.title = "by hand";
  for (auto const& r : requests)
    w.requests.push_back({.arrival = r.at, .prompt_tokens = r.prompt, .reply_tokens = r.reply, .blocks = r.blocks});
  return w;
}

/// An engine whose times can be worked out in the head: a prefill takes 5 ms + 1 ms for each token, a decode step 10 ms +
/// 1 ms for each request. Tokens come in blocks of 1, of a reply 2 are reserved.
inline simulation_settings round_settings() {
  simulation_settings s;
  s.limits = {.lanes = 1, .kv_capacity = 1'000'000, .block_tokens = 1, .decode_headroom = 2, .max_waiting = 1000};
  s.engine = {.decode_base_ms = 10,
              .decode_per_request_ms = 1,
              .decode_per_kv_token_us = 0,
              .prefill_base_ms = 5,
              .prefill_per_token_us = 1000};
  return s;
}

}  // namespace replay::testing
