#pragma once

#include <kvlane/observer.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace kvlane::test {

/// The number of an event.
[[nodiscard]] inline std::uint64_t sequence_of(event const& e) {
  return std::visit([](auto const& any) { return any.sequence; }, e);
}

/// The kind of an event, as it is called in `kvlane::events`.
[[nodiscard]] inline std::string_view kind_of(event const& e) {
  constexpr std::string_view names[] = {"configured", "admitted", "queued",     "refused", "cancelled", "expired",
                                        "released",   "grown",    "readmitted", "updated", "prewarmed", "idle"};
  static_assert(std::size(names) == std::variant_size_v<event>);
  return names[e.index()];
}

/// Keeps every event. Copies share what they hear, so a test keeps one copy and gives the queue another.
class recording_observer {
 public:
  void operator()(event const& e) noexcept {
    std::lock_guard const lock{heard_->mutex};
    heard_->events.push_back(e);
  }

  [[nodiscard]] std::vector<event> events() const {
    std::lock_guard const lock{heard_->mutex};
    return heard_->events;
  }
  /// The kinds of all events, in the order in which they were told.
  [[nodiscard]] std::vector<std::string> kinds() const {
    std::vector<std::string> names;
    for (auto const& e : events()) names.emplace_back(kind_of(e));
    return names;
  }
  /// All events of one kind.
  template <class Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> found;
    for (auto const& e : events())
      if (auto const* const one = std::get_if<Event>(&e)) found.push_back(*one);
    return found;
  }
  void forget() {
    std::lock_guard const lock{heard_->mutex};
    heard_->events.clear();
  }

 private:
  struct heard {
    std::mutex mutex;
    std::vector<event> events;
  };
  std::shared_ptr<heard> heard_ = std::make_shared<heard>();
};

static_assert(event_observer<recording_observer>);

}  // namespace kvlane::test
