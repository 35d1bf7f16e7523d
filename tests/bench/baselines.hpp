#pragma once

#include "catalog.hpp"

#include <cstddef>
#include <functional>

namespace kvlane::bench {

/// The yardstick of most rows: lock and unlock of a std::mutex that nobody else wants.
[[nodiscard]] side mutex_pair();
inline constexpr char const* a_mutex_pair = "mutex lock + unlock";

/// asio::post and run_one on a context of one's own; a round of no length where Asio is not there.
enum class armed_timer { none, one };
[[nodiscard]] side asio_post(armed_timer timer);

/// Runs `work(0)` and `work(1)` in two threads at once, each on a processor of its own where the system lets us choose.
/// The time is that of the slower one, without starting and joining.
[[nodiscard]] nanoseconds in_two_threads(std::function<void(std::size_t thread)> const& work);

}  // namespace kvlane::bench
