#include "workload.hpp"

#include "random_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace replay {

namespace {

/// Far from the end of a 64-bit clock, so that no sum of times overflows.
constexpr nanoseconds latest_arrival = std::chrono::years{10};

void spread_arrivals(std::vector<trace_request>& requests, reshaping const& how) {
  random_numbers random{how.seed};
  for (auto& r : requests)
    r.arrival += nanoseconds{std::llround(random.unit() * static_cast<double>(how.spread.count()))};
  sort_by_arrival(requests);
}

void set_speed(std::vector<trace_request>& requests, double speed) {
  for (auto& r : requests) {
    auto const at = static_cast<double>(r.arrival.count()) / speed;
    if (at > static_cast<double>(latest_arrival.count()))
      throw std::invalid_argument{"at this --speed the last request comes after more than 10 years; raise it"};
    if (speed != 1.0) r.arrival = nanoseconds{std::llround(at)};
  }
}

}  // namespace

// Not std::stable_sort: with libstdc++ 12 it does not compile without a warning on clang.
void sort_by_arrival(std::vector<trace_request>& requests) {
  std::vector<std::pair<nanoseconds, std::size_t>> places;
  places.reserve(requests.size());
  for (std::size_t i = 0; i != requests.size(); ++i) places.emplace_back(requests[i].arrival, i);
  std::ranges::sort(places);
  std::vector<trace_request> sorted;
  sorted.reserve(requests.size());
  for (auto const& [arrival, place] : places) sorted.push_back(std::move(requests[place]));
  requests = std::move(sorted);
}

workload reshape(workload original, reshaping const& how) {
  auto w = std::move(original);
  auto& requests = w.requests;
  sort_by_arrival(requests);
  if (how.limit < requests.size()) {
    requests.resize(how.limit);
    w.title += fmt::format(", first {} requests", how.limit);
  }
  if (how.spread > nanoseconds::zero()) {
    spread_arrivals(requests, how);
    w.title +=
        fmt::format(", arrivals spread by up to {} ms (seed {})", how.spread / std::chrono::milliseconds{1}, how.seed);
  }
  if (requests.empty()) return w;
  auto const start = requests.front().arrival;
  for (auto& r : requests) r.arrival -= start;
  set_speed(requests, how.speed);
  if (how.speed != 1.0) w.title += fmt::format(", {} times as fast", how.speed);
  return w;
}

}  // namespace replay
