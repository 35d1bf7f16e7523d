#pragma once

#include "server_counters.hpp"

#include <kvlane/snapshot.hpp>

#include <string>

namespace server {

inline constexpr auto metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// The page that Prometheus reads: the metrics of the queue (docs/metrics.md) and those of the server.
[[nodiscard]] std::string metrics_page(kvlane::queue_snapshot const& queue, server_counters const& counters);

}  // namespace server
