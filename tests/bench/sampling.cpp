#include "sampling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace kvlane::bench {

namespace {

/// A measurement that nobody disturbed, if one of a few is such.
nanoseconds undisturbed(side const& s, std::size_t rounds) {
  auto measured = s.measure(rounds);
  for (int again = 0; again != 8 && std::isnan(measured.count()); ++again) measured = s.measure(rounds);
  return measured;
}

/// How many rounds fill the slice of a side; warms everything up on the way.
std::size_t rounds_for(side const& s) {
  auto rounds = s.fewest_rounds;
  for (;;) {
    auto const since = std::chrono::steady_clock::now();
    auto const measured = undisturbed(s, rounds);
    auto const passed = nanoseconds{std::chrono::steady_clock::now() - since};
    // Too long to be left alone: less is more.
    if (std::isnan(measured.count())) return std::max(rounds / 4, s.fewest_rounds);
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
  void take() { last_ = undisturbed(side_, rounds_).count() / static_cast<double>(rounds_); }
  void keep() { values_.push_back(last_); }
  [[nodiscard]] double last() const { return last_; }
  [[nodiscard]] nanoseconds median() const { return nanoseconds{quantile(values_, 0.5)}; }

 private:
  side const& side_;
  std::size_t rounds_;
  double last_ = 0;
  std::vector<double> values_;
};

}  // namespace

figures sample(row const& r, effort const& how) {
  auto const sides = r.prepare();
  series baseline{sides.baseline};
  series subject{sides.subject};
  std::vector<double> ratios;
  auto const since = std::chrono::steady_clock::now();
  for (std::size_t turn = 0; turn != how.most; ++turn) {
    if (turn >= how.fewest && !ratios.empty() && nanoseconds{std::chrono::steady_clock::now() - since} > how.budget)
      break;
    (turn % 2 == 0 ? baseline : subject).take();
    (turn % 2 == 0 ? subject : baseline).take();
    if (std::isnan(baseline.last() + subject.last())) continue;
    baseline.keep();
    subject.keep();
    ratios.push_back(subject.last() / std::max(baseline.last(), 1e-3));
  }
  if (ratios.empty()) return {};
  figures f{.subject = subject.median(), .baseline = baseline.median(), .ratio = quantile(ratios, 0.5)};
  f.spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / f.ratio;
  f.repetitions = ratios.size();
  return f;
}

}  // namespace kvlane::bench
