#include "sweep_report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace replay {

namespace {

std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

std::string row_of(sweep_run const& r, bool timing) {
  auto const& f = r.figures;
  auto const of_all = [&](std::uint64_t n) { return percent(f.share(n)); };
  auto const wrong = f.let_in == 0 ? std::string{"-"} : fmt::format("{}/{}", f.let_in_good, f.let_in);
  auto const fair = f.fairness ? fmt::format("{:.2f}", *f.fairness) : std::string{"-"};
  auto row = fmt::format("{:>4g}  {:<23}  {:>7.3f} {:>6} {:>7.1f}  {:>6} {:>6} {:>6} {:>5}  {:>8}  {:>7.2f} {:>7.2f} "
                         "{:>7.2f}  {:>5} {:>7}  {:>6} "
                         "{:>6}  {:>5}",
                         r.load, name_of(r.used), f.good_per_second(), of_all(f.good),
                         f.good_tokens_per_second() / 1000, of_all(f.refused_early), of_all(f.timed_out),
                         of_all(f.late), of_all(f.cut_off), wrong, seconds(f.first_token.p50),
                         seconds(f.first_token.p95), seconds(f.first_token.p99), percent(f.run.hit_share()),
                         f.run.most_overtaken, percent(f.wasted_share()), percent(f.recomputed_share()), fair);
  if (timing) row += fmt::format(" {:>9.0f}", f.decisions_per_second());
  return row + '\n';
}

}  // namespace

std::string table_of(sweep_outcome const& o, sweep_settings const& s, bool timing) {
  auto text = fmt::format("{}\ncapacity: {:.3f} requests/s ({} requests at once, served as they came, take {:.3f} s)\n",
                          o.title, o.capacity(), o.requests, seconds(o.burst_time));
  text += fmt::format("{:>4}  {:<23}  {:>7} {:>6} {:>7}  {:>6} {:>6} {:>6} {:>5}  {:>8}  {:>7} {:>7} {:>7}  {:>5} "
                      "{:>7}  {:>6} {:>6}  {:>5}",
                      "load", "policy", "good/s", "good%", "ktok/s", "early%", "timed%", "late%", "cut%", "wrong no",
                      "ttft50", "ttft95", "ttft99", "hit%", "overt.", "waste%", "again%", "fair");
  if (timing) text += fmt::format(" {:>9}", "decided/s");
  text += '\n';
  for (std::size_t i = 0; i != o.runs.size(); ++i) {
    if (i != 0 && i % s.policies.size() == 0) text += '\n';
    text += row_of(o.runs[i], timing);
  }
  return text;
}

std::string legend_of(sweep_settings const& s) {
  auto const& l = s.simulation.limits;
  auto const wait = fmt::format("{:g} s", seconds(l.max_wait));
  auto const clients =
      s.simulation.clients.retry
          ? "Refused clients come back up to twice, as the openai client does; in time means: of the last try."
          : "Refused clients are gone.";
  auto const probes = s.simulation.probes ? fmt::format("1 in {:g} of those to be refused early is let in.",
                                                        1 / s.simulation.probes->share)
                                          : std::string{"Nobody who is to be refused is let in."};
  return fmt::format(
      "\n"
      "load      offered requests, as a multiple of the capacity\n"
      "good      whole replies whose first token came within {0}, a second, and as a share of all requests\n"
      "ktok/s    thousands of prompt and reply tokens of these requests, a second\n"
      "early     refused at arrival: the line is full, or the predicted wait too long\n"
      "timed     waited {0} in vain; late: the first token came later than that; cut: the reply ended early\n"
      "wrong no  of those let in although they were to be refused early, how many were good\n"
      "ttft      seconds to the first token, since the first try, of all who got one\n"
      "hit       prompt tokens found in the prefix cache; overt.: most often overtaken\n"
      "waste     of all computed tokens, those of requests that were late or cut; again: computed again after "
      "preemption\n"
      "fair      Jain's index of the shares of their offered tokens that clients got served well\n"
      "At most {1} overtakes, but for seed_order_turn_bound (32 turns), semaphore and no_admission (0). With "
      "no_admission\n"
      "nobody is refused or leaves. {2} {3}\n",
      wait, l.max_overtakes, clients, probes);
}

}  // namespace replay
