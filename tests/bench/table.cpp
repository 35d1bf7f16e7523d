#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace kvlane::bench {

namespace {

std::string with_digits(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  std::string const plain{text};
  auto const whole = std::min(plain.find('.'), plain.size());
  std::string grouped;
  for (std::size_t i = 0; i != plain.size(); ++i) {
    if (i != 0 && i < whole && (whole - i) % 3 == 0) grouped += ',';
    grouped += plain[i];
  }
  return grouped;
}

std::string target_text(goal const& wanted) {
  switch (wanted.of) {
    case goal::kind::none: return "stated";
    case goal::kind::ratio: return text_of(wanted.bound).append(" x at most");
    case goal::kind::share: return text_of(wanted.bound).append(" of it at least");
    case goal::kind::time: return text_of(nanoseconds{wanted.bound}).append(" at most");
  }
  return {};
}

std::string result_text(goal const& wanted, figures const& f) {
  switch (wanted.of) {
    case goal::kind::none: return "";
    case goal::kind::ratio: return compare(f.ratio, wanted.bound);
    case goal::kind::share: return compare(f.ratio, 1 / wanted.bound) + " (" + text_of(1 / f.ratio) + " of it)";
    case goal::kind::time: return compare(f.subject.count(), wanted.bound);
  }
  return {};
}

}  // namespace

std::string text_of(double number) {
  if (number == 0) return "0";
  auto const magnitude = static_cast<int>(std::floor(std::log10(std::abs(number) * 1.0005)));
  return with_digits(number, magnitude >= 2 ? 0 : 2 - magnitude);
}

std::string text_of(std::size_t count) { return with_digits(static_cast<double>(count), 0); }

std::string text_of(nanoseconds time) {
  auto const ns = time.count();
  if (ns < 1e3) return text_of(ns) + " ns";
  if (ns < 1e6) return text_of(ns / 1e3) + " us";
  return text_of(ns / 1e6) + " ms";
}

std::string compare(double value, double bound) {
  if (value <= bound) return "met";
  auto const over = value / bound;
  return over < 2 ? "missed by " + text_of((over - 1) * 100) + " %" : "missed: " + text_of(over) + " times it";
}

void write_table(std::ostream& out, topic const& t, std::vector<result_line> const& lines) {
  out << "### " << t.title << "\n\n" << t.text << "\n\n";
  if (lines.empty()) return;
  out << "| what | takes | baseline | takes | ratio | +- | target | result |\n|---|--:|---|--:|--:|--:|--:|---|\n";
  for (auto const& [of, f] : lines) {
    if (f.repetitions == 0) {
      out << "| " << of->name << " | | " << of->baseline << " | | | | " << target_text(of->wanted)
          << " | not measured: disturbed each time |\n";
      continue;
    }
    out << "| " << of->name << " | " << text_of(f.subject) << " | " << of->baseline << " | " << text_of(f.baseline)
        << " | " << (f.baseline.count() < 1 ? "-" : text_of(f.ratio)) << " | " << with_digits(f.spread * 50, 0)
        << " % | " << target_text(of->wanted) << " | " << result_text(of->wanted, f) << " |\n";
  }
  out << "\n";
}

}  // namespace kvlane::bench
