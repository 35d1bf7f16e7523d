#include <kvlane/ticket.hpp>
#include <kvlane/waiter_base.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace {

using kvlane::errc;
using kvlane::rejection;
using kvlane::ticket;
using kvlane::time_point;
using kvlane::waiter_base;
using kvlane::waiter_info;
using kvlane::detail::ticket_access;

static_assert(!std::is_copy_constructible_v<ticket> && !std::is_copy_assignable_v<ticket>);
static_assert(std::is_nothrow_move_constructible_v<ticket> && std::is_nothrow_move_assignable_v<ticket>);
static_assert(std::is_nothrow_destructible_v<ticket>);

class waiter final : public waiter_base {};

/// A line of one place, that remembers what its ticket told it.
class place final : public kvlane::detail::place_owner {
 public:
  std::optional<rejection> cancel(waiter_base& w) noexcept override {
    EXPECT_EQ(&w, &standing);
    if (!std::exchange(in_line, false)) return std::nullopt;
    return rejection{{.code = errc::cancelled, .tag = 7}};
  }
  bool waiting(waiter_base const&) noexcept override { return in_line; }
  bool rescore(waiter_base&, std::uint64_t cost) noexcept override {
    saved_cost = cost;
    return in_line;
  }
  std::optional<waiter_info> info(waiter_base const&) noexcept override {
    if (!in_line) return std::nullopt;
    return waiter_info{.tag = 7};
  }
  void leave(waiter_base& w) noexcept override {
    EXPECT_EQ(&w, &standing);
    ++left;
    in_line = false;
  }
  void share() noexcept override { ++shares; }
  void unshare() noexcept override { --shares; }
  std::size_t expire() noexcept override { return 0; }
  std::optional<time_point> next_deadline() noexcept override { return std::nullopt; }
  time_point now() noexcept override { return {}; }

  ticket take() {
    ticket t;
    ticket_access::bind(t, *this, standing);
    return t;
  }

  waiter standing;
  bool in_line = true;
  std::uint64_t saved_cost = 0;
  int left = 0;
  int shares = 0;
};

TEST(OwnerShare, KeepsItsOwnerForAsLongAsItLives) {
  place p;
  {
    kvlane::detail::owner_share const share{p};
    EXPECT_EQ(p.shares, 1);
    EXPECT_EQ(&*share, &p);
  }
  EXPECT_EQ(p.shares, 0);
}

TEST(Ticket, StandsForItsPlace) {
  place line;
  auto mine = line.take();
  EXPECT_TRUE(mine.waiting());
  EXPECT_EQ(mine.info().value().tag, 7U);
  EXPECT_TRUE(mine.set_saved_cost(99));
  EXPECT_EQ(line.saved_cost, 99U);
  EXPECT_EQ(ticket_access::waiter(mine), &line.standing);
}

TEST(Ticket, CancelsOnce) {
  place line;
  auto mine = line.take();
  EXPECT_TRUE(mine.cancel());
  EXPECT_FALSE(mine.waiting());
  EXPECT_FALSE(mine.cancel()) << "it no longer waits";
  EXPECT_FALSE(mine.set_saved_cost(1));
  EXPECT_EQ(mine.info().has_value(), false);
}

TEST(Ticket, SaysWhatACancelledRequestIsTold) {
  place line;
  auto mine = line.take();
  auto const why = mine.cancel_with_reason();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::cancelled);
  EXPECT_EQ(why->tag(), 7U);
}

TEST(Ticket, GivesThePlaceUpWithItsScope) {
  place line;
  {
    auto const mine = line.take();
  }
  EXPECT_EQ(line.left, 1);
}

TEST(Ticket, LivesOnWhereItIsMovedTo) {
  place line;
  {
    auto from = line.take();
    ticket const to{std::move(from)};
    EXPECT_FALSE(from.waiting());
    EXPECT_FALSE(from.cancel());
    EXPECT_TRUE(to.waiting());
    EXPECT_EQ(line.left, 0);
  }
  EXPECT_EQ(line.left, 1);
}

TEST(Ticket, AssigningGivesTheOldPlaceUpAndKeepsTheNew) {
  place old_line;
  place new_line;
  auto mine = old_line.take();
  mine = new_line.take();
  EXPECT_EQ(old_line.left, 1);
  EXPECT_EQ(new_line.left, 0);
  auto& same = mine;
  mine = std::move(same);
  EXPECT_TRUE(mine.waiting()) << "assigned to itself";
  EXPECT_EQ(new_line.left, 0);
}

TEST(Ticket, OfNothingStandsNowhere) {
  ticket none;
  EXPECT_FALSE(none.waiting());
  EXPECT_FALSE(none.cancel());
  EXPECT_FALSE(none.set_saved_cost(1));
  EXPECT_EQ(none.info().has_value(), false);
  EXPECT_EQ(none.cancel_with_reason().has_value(), false);
  EXPECT_EQ(ticket_access::waiter(none), nullptr);
}

}  // namespace
