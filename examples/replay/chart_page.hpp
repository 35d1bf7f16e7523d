#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace replay {

enum class chart_scale : std::uint8_t { linear, logarithmic };

struct chart_axis {
  std::string label = {};
  std::string unit = {};  ///< empty: things are counted
  chart_scale scale = chart_scale::linear;
  std::optional<double> most = {};  ///< where the axis ends; absent: with the largest value
};

enum class series_role : std::uint8_t {
  subject,    ///< has a colour, and can be switched off by its name
  reference,  ///< a thin line for comparison
};

struct chart_series {
  std::string name;
  std::vector<double> y = {};  ///< one for each x; NaN, and what a logarithmic axis cannot show: a gap
  series_role role = series_role::subject;
};

/// What a chart shows at one choice. The x ascend.
struct chart_view {
  std::vector<double> x = {};
  std::vector<chart_series> series = {};
};

enum class chart_kind : std::uint8_t { lines, points };
enum class chart_width : std::uint8_t { half, full };

struct chart {
  std::string section = {};  ///< a heading above this chart and those that follow; empty: none
  std::string title;
  std::string note = {};
  chart_axis x = {};
  chart_axis y = {};
  chart_kind kind = chart_kind::lines;
  chart_width width = chart_width::half;
  std::optional<std::size_t> choice =
      {};  ///< of the page's choices, which has a view for each option; absent: one view
  std::vector<chart_view> views = {};
};

/// Something that a reader chooses, for all charts that depend on it at once.
struct chart_choice {
  std::string label = {};
  std::vector<std::string> options = {};
  std::size_t chosen = 0;
};

/// A line of the heading.
struct page_fact {
  std::string name;
  std::string text;
  bool is_code = false;
};

/// Charts and their numbers, to be read in a browser. Series of one name have one colour in all charts.
struct chart_page {
  std::string title;
  std::vector<page_fact> about = {};
  std::vector<chart_choice> choices = {};
  std::vector<chart> charts = {};
};

/// Pairs of an expectation and what came of it.
struct scatter_cloud {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y
};

/// A chart of points with a line where y is x. Points on logarithmic axes are moved up to `least`; those that are nowhere,
/// infinite or not a number, are left out.
struct scatter_settings {
  std::string title;
  std::string note = {};
  chart_axis x = {};
  chart_axis y = {};
  double least = 0.001;
  std::string diagonal = "y = x";
};
[[nodiscard]] chart scatter_of(scatter_settings s, std::vector<scatter_cloud> const& clouds);

/// There is no chart library in this program; the text says what to do.
struct no_charts : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// To be called before work is done for a page that cannot be made. \throws no_charts
void demand_charts();

/// The page in one file that asks nothing of any network. \throws no_charts
[[nodiscard]] std::string html_of(chart_page const& p);

}  // namespace replay
