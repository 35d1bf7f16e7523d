#pragma once

#include "engine.hpp"
#include "mailbox.hpp"

#include <kvlane/lease.hpp>
#include <kvlane/result.hpp>

#include <memory>
#include <utility>
#include <variant>

namespace server {

/// What the coroutine of a request hears: of its generation, or of its place in line.
using task_message = std::variant<engine_event, kvlane::admission>;
using task_mailbox = mailbox<task_message>;

/// A generation on the lane of a lease. It must die, or be over, before the lease gives the lane back: so the engine is off
/// the lane when somebody else gets it. Thread safety: for one thread at a time.
class engine_run {
 public:
  /// Starts it. The mailbox is for this run alone: what comes late from it is never taken for something else.
  engine_run(engine& e, generation g, std::shared_ptr<task_mailbox> box)
      : engine_{e}, lane_{g.lane}, box_{std::move(box)} {
    engine_.start(std::move(g), [box = box_](engine_event event) { box->post(std::move(event)); });
  }
  engine_run(engine_run const&) = delete;
  engine_run& operator=(engine_run const&) = delete;
  ~engine_run() {
    if (!over_) engine_.abort(lane_);
  }

  [[nodiscard]] task_mailbox& events() noexcept { return *box_; }
  void extend(std::uint64_t room) { engine_.extend(lane_, room); }
  /// The engine has left the lane by itself. It must not be told to once more: the lane may be somebody else's by then.
  void over() noexcept { over_ = true; }

 private:
  engine& engine_;
  kvlane::lane_id lane_;
  std::shared_ptr<task_mailbox> box_;
  bool over_ = false;
};

}  // namespace server
