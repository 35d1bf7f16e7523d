#pragma once

#include "recorder.hpp"
#include "simulation.hpp"
#include "workload.hpp"
#include "yardsticks/server_model.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace replay {

/// What a run on a server_model came to.
struct server_outcome {
  run_result result;
  std::vector<request_times> times;  ///< of each request of the workload; empty of one that was refused
};

/// How a server is driven.
struct server_pace {
  std::uint32_t max_tokens = 0;  ///< ceiling of every reply
  /// How many steps are planned at most: 1, a step is planned when the one before has ended; 2, while it still runs, so that
  /// the engine never waits for the plan, and the plan does not know what that step brings.
  std::uint32_t steps_ahead = 1;
};

/// Runs a workload on a server in virtual time. A server that works sees who has arrived when a step ends; one that is idle
/// sees it at once. At one moment the order is: the end of a step, arrivals in order of the trace, the plans for further
/// steps. An empty reply is answered like one of a single token, which counts as none.
class server_run {
 public:
  server_run(workload const& w, server_model& server, server_pace const& pace);

  /// Runs until every request has ended. To be called once.
  [[nodiscard]] server_outcome run(progress_listener const& progress = {});

 private:
  struct planned {
    server_step step;
    nanoseconds end;
  };
  void take_arrivals();
  void plan();
  void note(server_step const& step);
  void end_step();
  [[nodiscard]] std::optional<nanoseconds> next_moment() const noexcept;

  server_model& server_;
  server_pace pace_;
  std::vector<served_request> requests_;
  recorder record_;
  nanoseconds now_{};
  std::size_t arrived_ = 0;
  std::deque<planned> plan_;
};

}  // namespace replay
