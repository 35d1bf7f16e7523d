#include "metrics_page.hpp"

#include <kvlane/prometheus.hpp>

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace server {

namespace {

prometheus::MetricFamily counter_family(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .type = prometheus::MetricType::Counter, .metric = {}};
}

void count(prometheus::MetricFamily& family, std::vector<prometheus::ClientMetric::Label> labels, std::uint64_t value) {
  auto& series = family.metric.emplace_back();
  series.label = std::move(labels);
  series.counter.value = static_cast<double>(value);
}

}  // namespace

std::string metrics_page(kvlane::queue_snapshot const& queue, server_counters const& counters) {
  auto families = kvlane::metric_families(queue);
  auto const add = [&](char const* name, char const* help, std::uint64_t value) {
    count(families.emplace_back(counter_family(name, help)), {}, value);
  };
  auto& replies = families.emplace_back(counter_family(
      "kvlane_server_replies_total", "HTTP replies by status; 499 for clients that left before theirs had ended."));
  for (auto const& [status, times] : counters.replies()) count(replies, {{"status", std::to_string(status)}}, times);
  add("kvlane_server_prompt_tokens_total", "Prompt tokens that the engine has gone through.", counters.prompt_tokens);
  add("kvlane_server_prompt_tokens_cached_total", "Prompt tokens of these that were in the prefix cache.",
      counters.cached_prompt_tokens);
  add("kvlane_server_reply_tokens_total", "Tokens that the engine has generated.", counters.reply_tokens);
  add("kvlane_server_streams_broken_total", "Streams that ended with an error.", counters.streams_broken);
  return prometheus::TextSerializer{}.Serialize(families);
}

}  // namespace server
