#pragma once

#include <kvlane/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace kvlane {

/// A token of a prompt, as tokenizers number them. Compared as a signed number.
using token_id = std::int32_t;
/// The number of a lane, counted from 0.
using lane_id = std::uint32_t;

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;
/// Milliseconds with a fraction: the unit of every measured or predicted time that the library reports.
using fractional_ms = std::chrono::duration<double, std::milli>;

/// A wait without an end.
inline constexpr duration forever = duration::max();

/// What a waiter, or a request that was refused for want of room, lacked: the first of these that applies.
enum class blocked_on : std::uint8_t {
  nothing,      ///< not applicable
  hold,         ///< admissions are held back by a dispatch_hold
  lane,         ///< no lane is free
  tokens,       ///< too few KV tokens are free
  reservation,  ///< the resources are kept for a waiter that was overtaken often enough
};

/// How waits are predicted.
enum class predictor : std::uint8_t {
  work_left,  ///< what is left of the replies ahead, over the pace of the engine; needs lease::progress (work_left.hpp)
  ewma_p95,   ///< the work ahead whole, at the careful rates of completed requests (service_rates.hpp)
};

/// Why a waiter left the line, as ordering policies are told.
enum class departure : std::uint8_t {
  admitted,   ///< it got its lane and tokens: one turn passes
  cancelled,  ///< its owner gave it up
  expired,    ///< its deadline came
  refused,    ///< the queue closed, or it can never fit any more
};

struct limits;
struct request;
struct service_sample;
struct work;
struct waiter_info;
struct queue_snapshot;
struct steady;
struct null_observer;
class rejection;
class lease;
class ticket;
class waiter_base;
class cache_aware;
template <class T>
class result;

/// What became of a request: a lease, or the reason why there is none.
using admission = result<lease>;

template <class Policy>
class admission_core;

template <class Policy = cache_aware, class Observer = null_observer, class Mutex = std::mutex, class Clock = steady>
class basic_admission_queue;

using admission_queue = basic_admission_queue<>;

/// A mutex that does nothing, for a queue that one thread owns.
struct null_mutex {
  constexpr void lock() noexcept {}
  constexpr bool try_lock() noexcept { return true; }
  constexpr void unlock() noexcept {}
};

}  // namespace kvlane
