#pragma once

#include "engine.hpp"
#include "server_counters.hpp"

#include <kvlane/admission_queue.hpp>

#include <asio/any_io_executor.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace server {

struct service_settings {
  kvlane::limits limits;
  std::uint64_t context_tokens = 8192;
  std::uint32_t default_max_tokens = 256;
  std::uint64_t cost_per_cached_token = 32;    ///< against the ordering's cost of a turn
  std::uint32_t growth_step = 64;              ///< KV tokens that a reply asks for when it outgrows its reservation
  std::chrono::milliseconds keep_alive{5000};  ///< between comments in a stream that stands still
  std::string model = "kvlane-model";
  bool quiet = false;
};

/// What all requests are served with. Outlives them.
struct serving {
  service_settings settings;
  asio::any_io_executor executor;
  kvlane::admission_queue& queue;
  server::engine& engine;
  server_counters& counters;
};

}  // namespace server
