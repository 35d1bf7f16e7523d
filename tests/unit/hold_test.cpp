#include <kvlane/hold.hpp>

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace {

using kvlane::dispatch_hold;

class counting_owner final : public kvlane::detail::hold_owner {
 public:
  void end_hold() noexcept override { ++ended; }
  int ended = 0;
};

static_assert(!std::is_copy_constructible_v<dispatch_hold> && !std::is_copy_assignable_v<dispatch_hold>);
static_assert(std::is_nothrow_move_constructible_v<dispatch_hold> && std::is_nothrow_move_assignable_v<dispatch_hold>);

TEST(DispatchHold, EndsWithItsScope) {
  counting_owner queue;
  {
    dispatch_hold const hold{queue};
    EXPECT_TRUE(hold);
    EXPECT_EQ(queue.ended, 0);
  }
  EXPECT_EQ(queue.ended, 1);
}

TEST(DispatchHold, EndsOnceHoweverOftenItIsReleased) {
  counting_owner queue;
  {
    dispatch_hold hold{queue};
    hold.release();
    EXPECT_EQ(queue.ended, 1);
    EXPECT_FALSE(hold);
    hold.release();
  }
  EXPECT_EQ(queue.ended, 1);
}

TEST(DispatchHold, LivesOnWhereItIsMovedTo) {
  counting_owner queue;
  dispatch_hold from{queue};
  dispatch_hold to{std::move(from)};
  EXPECT_FALSE(from);
  EXPECT_TRUE(to);
  from.release();
  EXPECT_EQ(queue.ended, 0);
  to.release();
  EXPECT_EQ(queue.ended, 1);
}

TEST(DispatchHold, AssigningEndsTheOldOneAndKeepsTheNew) {
  counting_owner old_queue;
  counting_owner new_queue;
  dispatch_hold hold{old_queue};
  hold = dispatch_hold{new_queue};
  EXPECT_EQ(old_queue.ended, 1);
  EXPECT_EQ(new_queue.ended, 0);
  auto& same = hold;
  hold = std::move(same);
  EXPECT_EQ(new_queue.ended, 0) << "assigned to itself";
  EXPECT_TRUE(hold);
  hold = dispatch_hold{};
  EXPECT_EQ(new_queue.ended, 1);
}

TEST(DispatchHold, OfNothingIsEmpty) {
  dispatch_hold hold;
  EXPECT_FALSE(hold);
  hold.release();
}

}  // namespace
