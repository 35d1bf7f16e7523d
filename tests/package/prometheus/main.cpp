#include <kvlane/prometheus.hpp>

#include <prometheus/text_serializer.h>

#include <string>

// One lane, shown by a program that knows the library by its package alone.
int main() {
  kvlane::admission_queue const queue{{.lanes = 1, .kv_capacity = 1024}};
  kvlane::queue_collector const metrics{queue};
  auto const page = prometheus::TextSerializer{}.Serialize(metrics.Collect());
  return page.find("\nkvlane_lanes 1\n") == std::string::npos ? 1 : 0;
}
