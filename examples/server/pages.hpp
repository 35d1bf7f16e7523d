#pragma once

#include "completion_task.hpp"

#include <kvlane/http.hpp>
#include <kvlane/snapshot.hpp>

#include <string>
#include <vector>

namespace server {

/// What /debug/queue shows.
struct queue_view {
  kvlane::queue_snapshot queue;
  std::vector<kvlane::waiter_info> waiting;
  std::vector<running_info> running;
};

[[nodiscard]] kvlane::http_reply queue_page(queue_view const& view);
[[nodiscard]] kvlane::http_reply models_page(std::string const& model);
/// 200 while newcomers are taken, else 503.
[[nodiscard]] kvlane::http_reply health_page(kvlane::queue_snapshot const& queue);

}  // namespace server
