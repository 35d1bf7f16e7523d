#pragma once

#include <kvlane/admission_queue.hpp>
#include <kvlane/error.hpp>
#include <kvlane/snapshot.hpp>

#include <prometheus/check_names.h>
#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvlane {

/// Something that tells all its figures at once, as queues do.
template <class Queue>
concept snapshot_source = requires(Queue const& queue) {
  { queue.snapshot() } -> std::same_as<queue_snapshot>;
};

namespace detail {

/// The value of the label `reason`: the code as it is written in error.hpp.
constexpr char const* reason_label(errc code) noexcept {
  switch (code) {
    case errc::invalid_request: return "invalid_request";
    case errc::never_fits: return "never_fits";
    case errc::shutting_down: return "shutting_down";
    case errc::would_wait: return "would_wait";
    case errc::queue_full: return "queue_full";
    case errc::would_time_out: return "would_time_out";
    case errc::timed_out: return "timed_out";
    case errc::cancelled: return "cancelled";
    case errc::no_longer_fits: return "no_longer_fits";
  }
  return "unknown";
}

/// Collects families whose series all carry the same constant labels.
class metric_page {
  using label = ::prometheus::ClientMetric::Label;
  using metric_type = ::prometheus::MetricType;

 public:
  explicit metric_page(::prometheus::Labels const& constant) {
    for (auto const& [name, value] : constant) constant_.push_back({name, value});
  }

  /// Begins a family; the series that follow belong to it.
  void family(metric_type type, char const* name, char const* help) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
  }
  void gauge(char const* name, double value, char const* help) {
    family(metric_type::Gauge, name, help);
    series({}).gauge.value = value;
  }
  template <std::unsigned_integral Number>
  void gauge(char const* name, Number value, char const* help) {
    gauge(name, number(value), help);
  }
  void counter(char const* name, std::uint64_t value, char const* help) {
    family(metric_type::Counter, name, help);
    count({}, value);
  }
  /// A series of the counter family that was begun last.
  void count(std::vector<label> const& labels, std::uint64_t value) { series(labels).counter.value = number(value); }
  /// `per_unit`: how many of the histogram's units make one of the metric's.
  template <std::size_t Buckets>
  void histogram(char const* name, log2_histogram<Buckets> const& values, double per_unit, char const* help) {
    family(metric_type::Histogram, name, help);
    auto& out = series({}).histogram;
    for (std::size_t i = 0; i != Buckets; ++i) {
      out.sample_count += values.counts()[i];
      auto const bound =
          i + 1 == Buckets ? std::numeric_limits<double>::infinity() : number(values.upper_bound(i)) / per_unit;
      out.bucket.push_back({.cumulative_count = out.sample_count, .upper_bound = bound});
    }
    out.sample_sum = number(values.sum()) / per_unit;
  }

  [[nodiscard]] std::vector<::prometheus::MetricFamily> take() && { return std::move(families_); }

 private:
  static constexpr double number(std::uint64_t value) noexcept { return static_cast<double>(value); }

  ::prometheus::ClientMetric& series(std::vector<label> const& labels) {
    auto& metric = families_.back().metric.emplace_back();
    metric.label = constant_;
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    return metric;
  }

  std::vector<label> constant_;
  std::vector<::prometheus::MetricFamily> families_;
};

inline void add_gauges(metric_page& page, queue_snapshot const& s) {
  page.gauge("kvlane_lanes", s.lanes, "Requests that may run at once.");
  page.gauge("kvlane_requests_running", s.lanes_busy, "Requests that hold a lane.");
  page.gauge("kvlane_requests_waiting", s.waiting, "Requests in line.");
  page.gauge("kvlane_waiting_places", s.max_waiting, "Requests that the line has room for.");
  page.gauge("kvlane_waiting_tokens", s.waiting_tokens, "KV tokens that the requests in line ask for.");
  page.gauge("kvlane_kv_capacity_tokens", s.kv_capacity, "Size of the KV cache in tokens.");
  page.gauge("kvlane_kv_used_tokens", s.kv_tokens_used, "KV tokens that leases hold.");
  // A queue has capacity; a snapshot that nobody filled has none.
  auto const capacity = static_cast<double>(std::max<std::uint64_t>(s.kv_capacity, 1));
  page.gauge("kvlane_kv_usage_ratio", std::min(static_cast<double>(s.kv_tokens_used) / capacity, 1.0),
             "Part of the KV cache that leases hold, 0 to 1; stays 1 while they hold more than a lowered capacity.");
  page.gauge("kvlane_held", s.held, "1 while a hold keeps everybody from being admitted.");
  page.gauge("kvlane_draining", s.draining, "1 while newcomers are refused and the line runs dry.");
  page.gauge("kvlane_closed", s.closed, "1 once the queue is closed.");
}

inline void add_outcomes(metric_page& page, outcome_counters const& c) {
  page.family(::prometheus::MetricType::Counter, "kvlane_request_outcomes_total",
              "How requests ended: admitted (at once or from the line), refused or cancelled, and why.");
  page.count({{"outcome", "admitted"}, {"reason", "at_once"}}, c.admitted - c.admitted_from_line);
  page.count({{"outcome", "admitted"}, {"reason", "from_line"}}, c.admitted_from_line);
  // Every code has its series from the start: a rate needs the zero before the first one.
  for (std::size_t i = 1; i != c.refused.size(); ++i) {
    auto const code = static_cast<errc>(i);
    auto const gave_up = code == errc::cancelled;
    page.count({{"outcome", gave_up ? "cancelled" : "refused"}, {"reason", reason_label(code)}},
               gave_up ? c.cancelled : c.refused_for(code));
  }
}

inline void add_counters(metric_page& page, queue_snapshot const& s) {
  auto const& c = s.counters;
  add_outcomes(page, c);
  page.counter("kvlane_turns_total", s.turn, "Admissions out of a line in which somebody waited.");
  page.counter("kvlane_leases_released_total", c.released, "Leases given back, for good or for readmission.");
  page.counter("kvlane_leases_grown_total", c.grown, "Leases that got more KV tokens.");
  page.counter("kvlane_lease_growth_refused_total", c.growth_refused,
               "Leases that asked for more KV tokens and did not get them.");
  page.counter("kvlane_readmissions_total", c.readmitted, "Preempted requests that joined the line again.");
  page.counter("kvlane_service_samples_ignored_total", c.samples_ignored,
               "Measurements of the engine that made no sense and were not used.");
}

}  // namespace detail

/// The metrics of one snapshot, each series with `labels`; docs/metrics.md says what every one means. For exporters of
/// one's own: basic_queue_collector does it for prometheus-cpp. \throws std::bad_alloc
[[nodiscard]] inline std::vector<::prometheus::MetricFamily> metric_families(queue_snapshot const& s,
                                                                             ::prometheus::Labels const& labels = {}) {
  detail::metric_page page{labels};
  detail::add_gauges(page, s);
  detail::add_counters(page, s);
  page.histogram("kvlane_wait_seconds", s.wait_ms, 1000.0,
                 "How long admitted requests waited; the sum is of whole milliseconds, rounded up.");
  page.histogram("kvlane_overtakes", s.overtakes, 1.0, "How often admitted requests had been overtaken.");
  return std::move(page).take();
}

/// Shows a queue to Prometheus: a Collectable of prometheus-cpp. One scrape takes one snapshot, so the figures on a page
/// belong together.
///
///     kvlane::admission_queue queue{{.lanes = 8, .kv_capacity = 131'072}};
///     auto const metrics = std::make_shared<kvlane::queue_collector>(queue, prometheus::Labels{{"model_name", "m"}});
///     prometheus::Exposer exposer{"127.0.0.1:9100"};
///     exposer.RegisterCollectable(metrics);   // keeps a weak_ptr: what it shows lives as long as `metrics`
///
/// The sum of `kvlane_wait_seconds` is of waits in whole milliseconds, each rounded up; its buckets are exact. Prometheus
/// wants a metric once on a page: show a second queue under a path of its own.
///
/// Thread safety: shared objects are safe if the queue's snapshot() is; a queue with null_mutex is scraped by the thread
/// that owns it. A scrape holds the queue's mutex for one snapshot and makes its metrics after that. Lifetime: must not
/// outlive the queue, unless `detach` was called before the queue went. To drop the shared_ptr is not enough while another
/// thread may scrape: it then holds one of its own.
template <snapshot_source Queue>
class basic_queue_collector final : public ::prometheus::Collectable {
 public:
  /// `labels` are added to every series. \throws std::invalid_argument for a label that Prometheus does not allow or
  /// that a metric has already; std::bad_alloc
  explicit basic_queue_collector(Queue const& queue, ::prometheus::Labels labels = {})
      : labels_{std::move(labels)}, queue_{&queue} {
    for (auto const& [name, value] : labels_) check(name);
  }
  basic_queue_collector(Queue const&& queue, ::prometheus::Labels labels = {}) = delete;
  basic_queue_collector(basic_queue_collector const&) = delete;
  basic_queue_collector& operator=(basic_queue_collector const&) = delete;
  ~basic_queue_collector() override = default;

  /// The queue as it is now; nothing after `detach`. Called by prometheus-cpp. \throws std::bad_alloc
  [[nodiscard]] std::vector<::prometheus::MetricFamily> Collect() const override {
    queue_snapshot seen;
    {
      std::scoped_lock const lock{mutex_};
      if (queue_ == nullptr) return {};
      seen = queue_->snapshot();
    }
    return metric_families(seen, labels_);
  }

  /// Forgets the queue, which may be destroyed then: waits until no scrape reads it, and none will.
  void detach() noexcept {
    std::scoped_lock const lock{mutex_};
    queue_ = nullptr;
  }

 private:
  static void check(std::string const& name) {
    if (!::prometheus::CheckLabelName(name))
      throw std::invalid_argument{"kvlane: \"" + name +
                                  "\" cannot be a label in Prometheus; use letters, digits and _, beginning with a "
                                  "letter or a single _"};
    if (name == "le" || name == "outcome" || name == "reason")
      throw std::invalid_argument{"kvlane: the label \"" + name +
                                  "\" already tells series of one metric apart; choose another name"};
  }

  ::prometheus::Labels labels_;
  std::mutex mutable mutex_;  // of queue_ alone
  Queue const* queue_;
};

using queue_collector = basic_queue_collector<admission_queue>;

}  // namespace kvlane
