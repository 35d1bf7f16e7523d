#include "validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace replay {

std::string table_of(validated_run const& v) {
  auto const& r = v.simulated;
  auto text =
      fmt::format("{}\nengine: {}\nserver: {}; {} requests; the simulation preempted {} times, used {:.1f} % of the KV "
                  "tokens and hit {:.1f} % of the prompt tokens\n",
                  v.title, v.engine, v.server, v.requests, r.preempted, r.kv_used * 100, r.hit_share() * 100);
  text += fmt::format("{:<30}{:>14}{:>14}{:>12}\n", "", "measured", "simulated", "error [%]");
  for (auto const& f : v.figures)
    text += fmt::format("{:<30}{:>14.3f}{:>14.3f}{:>+12.2f}{}{}\n", f.name, f.measured, f.simulated, f.error() * 100,
                        f.fitted ? "  (fitted)" : "", f.within_bound() ? "" : "  OUT OF BOUND");
  for (auto const& name : v.not_measured) text += fmt::format("{:<30}{:>14}\n", name, "not measured");
  if (!v.of_requests.empty())
    text += fmt::format("{:<30}{:>14}{:>14}\n", "single requests, error [%]", "median", "p90");
  for (auto const& e : v.of_requests)
    text += fmt::format("{:<30}{:>14.2f}{:>14.2f}\n", e.name, e.median * 100, e.p90 * 100);
  return text;
}

std::string verdict_on(std::span<validated_run const> all) {
  std::size_t figures = 0;
  std::vector<std::string> out;
  for (auto const& v : all) {
    figures += v.figures.size();
    for (auto const& f : v.figures)
      if (!f.within_bound()) out.push_back(fmt::format("{} of {}", f.name, v.server));
  }
  auto const bound = validation_bound * 100;
  if (out.empty()) return fmt::format("all {} figures are within {:g} % of what was measured\n", figures, bound);
  return fmt::format("{} of {} figures are off by more than {:g} %: {}\n", out.size(), figures, bound,
                     fmt::join(out, "; "));
}

nlohmann::ordered_json json_of(std::span<validated_run const> all) {
  using json = nlohmann::ordered_json;
  auto runs = json::array();
  for (auto const& v : all) {
    auto figures = json::array();
    for (auto const& f : v.figures)
      figures.push_back({{"name", f.name},
                         {"measured", f.measured},
                         {"simulated", f.simulated},
                         {"error", std::isfinite(f.error()) ? json(f.error()) : json{}},
                         {"fitted", f.fitted},
                         {"within_bound", f.within_bound()}});
    auto of_requests = json::array();
    for (auto const& e : v.of_requests)
      of_requests.push_back({{"name", e.name}, {"median_error", e.median}, {"p90_error", e.p90}});
    runs.push_back({{"title", v.title},
                    {"engine", v.engine},
                    {"server", v.server},
                    {"requests", v.requests},
                    {"figures", std::move(figures)},
                    {"not_measured", v.not_measured},
                    {"single_requests", std::move(of_requests)}});
  }
  return {{"bound", validation_bound}, {"runs", std::move(runs)}};
}

}  // namespace replay
