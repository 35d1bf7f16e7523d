#pragma once

#include "simulation.hpp"
#include "statistics.hpp"
#include "workload.hpp"

#include <kvlane/snapshot.hpp>

#include <cstdint>
#include <optional>

namespace replay {

/// How well the requests of one run were served. Each request is in exactly one of good, refused_early, timed_out, late,
/// cut_off and impossible.
struct sweep_figures {
  std::uint64_t requests = 0;
  std::uint64_t good = 0;           ///< first token within max_wait of the try that was let in, and a whole reply
  std::uint64_t good_tokens = 0;    ///< prompts, cached parts too, and replies of these
  std::uint64_t refused_early = 0;  ///< at arrival: the line is full, or the predicted wait too long
  std::uint64_t timed_out = 0;      ///< in line, after max_wait
  std::uint64_t late = 0;           ///< a whole reply, but the first token came after max_wait
  std::uint64_t cut_off = 0;        ///< the reply ended early
  std::uint64_t impossible = 0;     ///< invalid, or larger than the machine
  std::uint64_t tries = 0;          ///< of all clients together
  std::uint64_t let_in = 0;         ///< requests that were to be refused early, and were let in to see
  std::uint64_t let_in_good = 0;    ///< of these, good after all: their refusal would have been wrong
  time_summary first_token;         ///< since the first try, of all who got one
  kvlane::log2_histogram<20>
      wait_ms;                        ///< in line, from the last try to admission, rounded up, of all who were admitted
  std::uint64_t computed_tokens = 0;  ///< all work: prompts without what was cached, replies, and what was done again
  std::uint64_t wasted_tokens = 0;    ///< of these, for requests that were cut off or late
  /// Jain's index of the shares of their offered tokens that clients got served well: 1, all got the same share; 1 / n, one
  /// of n got everything. Absent where the trace has no two clients, or nobody got anything.
  std::optional<double> fairness;
  run_result run;

  [[nodiscard]] double good_per_second() const noexcept;  ///< over the run time
  /// Orders that prefer small requests serve more of them, and not more tokens.
  [[nodiscard]] double good_tokens_per_second() const noexcept;
  [[nodiscard]] double share(std::uint64_t of_requests) const noexcept;
  [[nodiscard]] double wasted_share() const noexcept;
  [[nodiscard]] double recomputed_share() const noexcept;
  [[nodiscard]] double decisions_per_second() const noexcept;  ///< in real time: it differs between equal runs
};

/// \param max_wait what counts as in time, also for those who would have waited longer
[[nodiscard]] sweep_figures figures_of(workload const& w, run_details const& details, kvlane::duration max_wait);

}  // namespace replay
