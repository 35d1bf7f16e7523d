#include "sampling.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace kvlane::bench {

namespace {

/// How many rounds fill the slice of a side; warms everything up on the way.
std::size_t rounds_for(side const& s) {
  auto rounds = s.fewest_rounds;
  for (;;) {
    auto const since = std::chrono::steady_clock::now();
    auto const measured = s.measure(rounds);
    auto const passed = nanoseconds{std::chrono::steady_clock::now() - since};
    // What a side does around its measured part counts too, or a row with a dear preparation would never end.
    if (measured >= s.slice || passed >= 8 * s.slice || rounds >= s.most_rounds) return rounds;
    rounds = std::min(rounds * (measured * 8 < s.slice ? 4 : 2), s.most_rounds);
  }
}

double quantile(std::vector<double> values, double q) {
  auto const at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::ranges::nth_element(values, at);
  return *at;
}

/// The measurements of one side, for one operation.
class series {
 public:
  explicit series(side const& s) : side_{s}, rounds_{rounds_for(s)} {}
  void take() { values_.push_back(side_.measure(rounds_).count() / static_cast<double>(rounds_)); }
  [[nodiscard]] double last() const { return values_.back(); }
  [[nodiscard]] nanoseconds median() const { return nanoseconds{quantile(values_, 0.5)}; }

 private:
  side const& side_;
  std::size_t rounds_;
  std::vector<double> values_;
};

}  // namespace

figures sample(row const& r, effort const& how) {
  auto const sides = r.prepare();
  series baseline{sides.baseline};
  series subject{sides.subject};
  std::vector<double> ratios;
  auto const since = std::chrono::steady_clock::now();
  while (ratios.size() < how.fewest ||
         (ratios.size() < how.most && nanoseconds{std::chrono::steady_clock::now() - since} < how.budget)) {
    auto const baseline_first = ratios.size() % 2 == 0;
    (baseline_first ? baseline : subject).take();
    (baseline_first ? subject : baseline).take();
    ratios.push_back(subject.last() / std::max(baseline.last(), 1e-3));
  }
  figures f{.subject = subject.median(), .baseline = baseline.median(), .ratio = quantile(ratios, 0.5)};
  f.spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / f.ratio;
  f.repetitions = ratios.size();
  return f;
}

}  // namespace kvlane::bench
