#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvlane::test {

/// What one scrape showed.
class page {
 public:
  explicit page(std::vector<::prometheus::MetricFamily> families) : families_{std::move(families)} {}

  [[nodiscard]] std::vector<::prometheus::MetricFamily> const& families() const& { return families_; }
  [[nodiscard]] std::vector<::prometheus::MetricFamily> families() && { return std::move(families_); }

  [[nodiscard]] ::prometheus::MetricFamily const& family(std::string const& name) const {
    for (auto const& f : families_)
      if (f.name == name) return f;
    throw std::out_of_range{"no metric is called " + name};
  }
  /// The series of a metric that has exactly these labels.
  [[nodiscard]] ::prometheus::ClientMetric const& series(std::string const& name,
                                                         ::prometheus::Labels const& labels = {}) const {
    for (auto const& metric : family(name).metric)
      if (labels_of(metric) == labels) return metric;
    throw std::out_of_range{name + " has no such series"};
  }
  /// The value of a gauge or a counter.
  [[nodiscard]] double value(std::string const& name, ::prometheus::Labels const& labels = {}) const {
    auto const& metric = series(name, labels);
    return family(name).type == ::prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  [[nodiscard]] double outcomes(std::string const& outcome, std::string const& reason) const {
    return value("kvlane_request_outcomes_total", {{"outcome", outcome}, {"reason", reason}});
  }

  static ::prometheus::Labels labels_of(::prometheus::ClientMetric const& metric) {
    ::prometheus::Labels labels;
    for (auto const& [name, value] : metric.label)
      if (!labels.emplace(name, value).second) throw std::logic_error{"the label " + name + " is given twice"};
    return labels;
  }

 private:
  std::vector<::prometheus::MetricFamily> families_;
};

}  // namespace kvlane::test
