#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/request.hpp>
#include <kvlane/work.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

namespace kvlane {

/// What happens in a queue, as observers are told. `sequence` counts the events of a queue from 1 without gaps and was
/// taken under its lock: observers are called after unlocking and side by side, so it tells the order.
namespace events {

/// The queue was made.
struct configured {
  std::uint64_t sequence = 0;
  limits now;
};
/// A request got its lane and tokens.
struct admitted {
  std::uint64_t sequence = 0;
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint32_t priority = 0;
  lane_id lane = 0;
  std::uint64_t demand = 0;  ///< KV tokens
  fractional_ms waited{};
  std::uint32_t overtaken = 0;
  std::uint64_t depth = 0;                           ///< requests in line afterwards
  std::uint64_t capacity = 0;                        ///< places in line
  std::optional<fractional_ms> predicted_wait = {};  ///< for a request of its priority, afterwards
};
/// A request joined the line.
struct queued {
  std::uint64_t sequence = 0;
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint32_t priority = 0;
  std::uint64_t demand = 0;
  std::uint64_t depth = 0;  ///< requests in line, with it
  std::uint64_t capacity = 0;
  blocked_on blocked = blocked_on::nothing;
  std::optional<fractional_ms> predicted_wait = {};  ///< what it was told to expect: without its own work
};
/// A request was refused at once, or a waiter was told shutting_down or no_longer_fits.
struct refused {
  std::uint64_t sequence = 0;
  std::uint64_t flow = 0;
  rejection why;
};
/// A waiter was taken out of line by its owner.
struct cancelled {
  std::uint64_t sequence = 0;
  std::uint64_t flow = 0;
  rejection why;
};
/// A waiter's deadline came.
struct expired {
  std::uint64_t sequence = 0;
  std::uint64_t flow = 0;
  rejection why;
};
/// A lease was given back.
struct released {
  std::uint64_t sequence = 0;
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  lane_id lane = 0;
  std::uint64_t tokens = 0;
  std::optional<service_sample> sample = {};
};
/// A lease asked for more tokens. `to` equals `from` when too few were free.
struct grown {
  std::uint64_t sequence = 0;
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  lane_id lane = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};
/// Preempted work gave its lease back and joined the line again.
struct readmitted {
  std::uint64_t sequence = 0;
  std::uint64_t tag = 0;
  std::uint64_t flow = 0;
  std::uint32_t priority = 0;
  std::uint64_t demand = 0;
  std::uint64_t depth = 0;
};
/// Limits changed, or the door was closed or opened.
struct updated {
  std::uint64_t sequence = 0;
  limits now;
  bool draining = false;
  bool closed = false;
};
/// Idle lanes were warmed up.
struct prewarmed {
  std::uint64_t sequence = 0;
  std::uint32_t lanes = 0;   ///< lanes of the queue
  std::uint32_t active = 0;  ///< that were busy
  std::uint32_t idle = 0;    ///< that were warmed
  fractional_ms elapsed{};
};
/// No lease is out any more and nobody waits.
struct idle {
  std::uint64_t sequence = 0;
};

}  // namespace events

using event = std::variant<events::configured, events::admitted, events::queued, events::refused, events::cancelled,
                           events::expired, events::released, events::grown, events::readmitted, events::updated,
                           events::prewarmed, events::idle>;

/// Something that is told every event of a queue: a function of an event that does not throw.
///
///     struct printer {
///       void operator()(kvlane::event const& e) noexcept {
///         if (auto const* refused = std::get_if<kvlane::events::refused>(&e)) std::puts(refused->why.message().c_str());
///       }
///     };
///
/// It is called after the queue has unlocked, from any thread, several at once; it may use the queue, and lives until the
/// last lease and ticket of the queue has gone.
template <class O>
concept event_observer = requires(O& o, event const& e) {
  { o(e) } noexcept;
};

/// Hears nothing and costs nothing.
struct null_observer {
  constexpr void operator()(event const&) noexcept {}
};

static_assert(event_observer<null_observer>);

}  // namespace kvlane
