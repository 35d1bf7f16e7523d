#include <kvlane/lease.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kvlane::fractional_ms;
using kvlane::grant;
using kvlane::lease;
using kvlane::service_sample;
using kvlane::detail::lease_access;

static_assert(!std::is_copy_constructible_v<lease> && !std::is_copy_assignable_v<lease>);
static_assert(std::is_nothrow_move_constructible_v<lease> && std::is_nothrow_move_assignable_v<lease>);
static_assert(std::is_nothrow_destructible_v<lease>);
static_assert(!std::is_convertible_v<lease, bool>);

/// A queue with so many tokens left, that remembers what its leases told it.
class remembering_owner final : public kvlane::detail::lease_owner {
 public:
  void release(grant const& held, service_sample const* sample) noexcept override {
    released.push_back(held.tag);
    tokens_back += held.tokens;
    if (sample != nullptr) samples.push_back(sample->decode_tokens);
  }
  bool try_grow(grant& held, std::uint64_t total) noexcept override {
    ++asked_to_grow;
    if (total - held.tokens > free) return false;
    free -= total - held.tokens;
    held.tokens = total;
    return true;
  }
  void shrink(grant& held, std::uint64_t total) noexcept override {
    ++asked_to_shrink;
    free += held.tokens - total;
    held.tokens = total;
  }
  void progress(grant const& held, std::uint64_t decode_tokens) noexcept override {
    progress_of = held.tag;
    progressed = decode_tokens;
  }

  std::uint64_t progress_of = 0;
  std::uint64_t progressed = 0;
  std::vector<std::uint64_t> released;
  std::vector<std::uint64_t> samples;
  std::uint64_t tokens_back = 0;
  std::uint64_t free = 0;
  int asked_to_grow = 0;
  int asked_to_shrink = 0;
};

class Lease : public testing::Test {
 protected:
  lease make(std::uint64_t tag) {
    return lease_access::make(queue_, {.lane = 3, .overtaken = 2, .tokens = 528, .tag = tag, .waited = 1500us});
  }

  remembering_owner queue_;
};

TEST_F(Lease, PassesItsProgressOnForAsLongAsItHoldsAnything) {
  auto l = make(5);
  l.progress(17);
  EXPECT_EQ(queue_.progress_of, 5U);
  EXPECT_EQ(queue_.progressed, 17U);
  l.release();
  l.progress(18);
  EXPECT_EQ(queue_.progressed, 17U);
}

TEST_F(Lease, SaysWhatItHolds) {
  auto const held = make(7);
  EXPECT_TRUE(held);
  EXPECT_EQ(held.lane(), 3U);
  EXPECT_EQ(held.tokens(), 528U);
  EXPECT_EQ(held.tag(), 7U);
  EXPECT_EQ(held.waited(), fractional_ms{1.5});
  EXPECT_EQ(held.overtaken(), 2U);
}

TEST_F(Lease, GivesEverythingBackWithItsScope) {
  {
    auto const held = make(7);
  }
  EXPECT_EQ(queue_.released, std::vector<std::uint64_t>{7});
  EXPECT_EQ(queue_.tokens_back, 528U);
  EXPECT_TRUE(queue_.samples.empty()) << "nobody said how long it took";
}

TEST_F(Lease, GivesBackOnceHoweverOftenItIsReleased) {
  {
    auto held = make(7);
    held.release();
    EXPECT_FALSE(held);
    EXPECT_EQ(held.tokens(), 0U);
    held.release();
    held.complete({.decode_tokens = 9});
  }
  EXPECT_EQ(queue_.released.size(), 1U);
  EXPECT_TRUE(queue_.samples.empty());
}

TEST_F(Lease, CompletingHandsTheSampleOverAndGivesBack) {
  {
    auto held = make(7);
    held.complete({.decode_tokens = 9});
    EXPECT_FALSE(held);
  }
  EXPECT_EQ(queue_.released, std::vector<std::uint64_t>{7});
  EXPECT_EQ(queue_.samples, std::vector<std::uint64_t>{9});
}

TEST_F(Lease, LivesOnWhereItIsMovedTo) {
  auto from = make(7);
  lease const to{std::move(from)};
  EXPECT_FALSE(from);
  EXPECT_TRUE(to);
  EXPECT_EQ(to.lane(), 3U);
  from.release();
  EXPECT_TRUE(queue_.released.empty());
}

TEST_F(Lease, AssigningGivesTheOldOneBackAndKeepsTheNew) {
  auto held = make(1);
  held = make(2);
  EXPECT_EQ(queue_.released, std::vector<std::uint64_t>{1});
  EXPECT_EQ(held.tag(), 2U);
  auto& same = held;
  held = std::move(same);
  EXPECT_TRUE(held) << "assigned to itself";
  EXPECT_EQ(queue_.released.size(), 1U);
}

TEST_F(Lease, ShrinksAndNeverGrowsByShrinking) {
  auto held = make(7);
  EXPECT_TRUE(held.shrink_to(528));
  EXPECT_TRUE(held.shrink_to(1000));
  EXPECT_EQ(held.tokens(), 528U);
  EXPECT_EQ(queue_.asked_to_shrink, 0) << "there was nothing to ask for";
  EXPECT_TRUE(held.shrink_to(500));
  EXPECT_EQ(held.tokens(), 500U);
  EXPECT_EQ(queue_.free, 28U);
}

TEST_F(Lease, GrowsWhereThereIsRoomAndSaysNoWhereThereIsNone) {
  queue_.free = 100;
  auto held = make(7);
  EXPECT_TRUE(held.try_grow_to(600));
  EXPECT_EQ(held.tokens(), 600U);
  EXPECT_FALSE(held.try_grow_to(629));
  EXPECT_EQ(held.tokens(), 600U);
  EXPECT_TRUE(held.try_grow_to(628));
}

TEST_F(Lease, NeverShrinksByGrowing) {
  auto held = make(7);
  EXPECT_TRUE(held.try_grow_to(528));
  EXPECT_TRUE(held.try_grow_to(1));
  EXPECT_EQ(held.tokens(), 528U);
  EXPECT_EQ(queue_.asked_to_grow, 0);
}

TEST_F(Lease, OfNothingDoesNothing) {
  lease none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.tokens(), 0U);
  EXPECT_FALSE(none.try_grow_to(0));
  EXPECT_FALSE(none.shrink_to(0));
  none.release();
  none.complete({});
}

}  // namespace
