#include <kvlane/observer.hpp>

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace {

using kvlane::errc;
using kvlane::event;
using kvlane::event_observer;
using kvlane::null_observer;
using kvlane::rejection;

namespace events = kvlane::events;

struct careful {
  void operator()(event const&) noexcept {}
};
struct careless {
  void operator()(event const&) {}
};
struct deaf {};
struct hears_refusals_only {
  void operator()(events::refused const&) noexcept {}
};
struct wants_to_change_events {
  void operator()(event&) noexcept {}
};

static_assert(event_observer<null_observer>);
static_assert(event_observer<careful>);
static_assert(event_observer<void (*)(event const&) noexcept>);
static_assert(!event_observer<void (*)(event const&)>, "it may throw");
static_assert(!event_observer<careless>, "it may throw");
static_assert(!event_observer<deaf>);
static_assert(!event_observer<hears_refusals_only>);
static_assert(!event_observer<wants_to_change_events>, "events are shared");
static_assert(std::is_empty_v<null_observer>, "it costs nothing");

TEST(Events, AreTwelveKindsAllWithASequence) {
  EXPECT_EQ(std::variant_size_v<event>, 12U);
  event const e = events::idle{.sequence = 9};
  EXPECT_EQ(std::visit([](auto const& any) { return any.sequence; }, e), 9U);
}

TEST(Events, AreCopiedWithoutAllocating) { EXPECT_TRUE(std::is_trivially_copyable_v<event>); }

TEST(Events, CarryTheRefusal) {
  std::vector<std::string> log;
  auto observer = [&log](event const& e) noexcept {
    if (auto const* const refused = std::get_if<events::refused>(&e)) log.push_back(refused->why.message());
  };
  static_assert(event_observer<decltype(observer)>);
  observer(events::idle{});
  observer(events::refused{
      .sequence = 1, .flow = 2, .why = rejection{{.code = errc::never_fits, .asked_tokens = 129, .kv_capacity = 128}}});
  EXPECT_EQ(log, std::vector<std::string>{"the request needs 129 KV tokens; the cache holds 128"});
}

TEST(NullObserver, HearsEverythingAndDoesNothing) {
  null_observer observer;
  observer(events::configured{});
  observer(events::released{});
  static_assert(noexcept(observer(events::idle{})));
}

}  // namespace
