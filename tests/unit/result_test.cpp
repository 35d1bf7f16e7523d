#include <kvlane/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using kvlane::errc;
using kvlane::refusal_facts;
using kvlane::rejection;
using kvlane::result;

using owned_int = std::unique_ptr<int>;

static_assert(!std::is_copy_constructible_v<result<owned_int>>, "as movable as what it holds");
static_assert(std::is_nothrow_move_constructible_v<result<owned_int>>);
static_assert(std::is_trivially_copyable_v<result<int>>);
static_assert(!std::is_convertible_v<result<int>, bool>, "tested, never taken for a number");
static_assert(std::is_same_v<result<owned_int>::value_type, owned_int>);
static_assert(std::is_same_v<decltype(*std::declval<result<owned_int>>()), owned_int&&>);

TEST(Result, HoldsAValue) {
  result<int> const r = 7;
  EXPECT_TRUE(r);
  EXPECT_TRUE(r.has_value());
  EXPECT_EQ(*r, 7);
}

TEST(Result, HoldsTheReasonWhyThereIsNone) {
  result<int> const r = rejection{{.code = errc::never_fits, .tag = 3}};
  EXPECT_FALSE(r);
  EXPECT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code(), errc::never_fits);
  EXPECT_EQ(r.error().tag(), 3U);
}

TEST(Result, WithoutAnythingIsAnInvalidRequest) {
  result<int> const r;
  EXPECT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::invalid_request);
  EXPECT_EQ(r.error().message(), "no request was made");
}

TEST(Result, ReachesIntoItsValue) {
  result<std::string> r = std::string{"lane"};
  EXPECT_EQ(r->size(), 4U);
  r->push_back('s');
  *r += '!';
  EXPECT_EQ(*std::as_const(r), "lanes!");
  EXPECT_EQ(std::as_const(r)->size(), 6U);
}

TEST(Result, LetsAMoveOnlyValueOut) {
  result<owned_int> r = std::make_unique<int>(5);
  owned_int const out = *std::move(r);
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(*out, 5);
  EXPECT_EQ(*r, nullptr);
}

TEST(Result, MovesItsValueAlong) {
  result<owned_int> from = std::make_unique<int>(5);
  result<owned_int> to = std::move(from);
  ASSERT_TRUE(to);
  EXPECT_EQ(**to, 5);
  to = rejection{{.code = errc::cancelled}};
  EXPECT_FALSE(to);
  EXPECT_EQ(to.error().code(), errc::cancelled);
}

#ifndef NDEBUG
TEST(ResultDeathTest, ReadingWhatIsNotThereIsABugInTheCaller) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)result<int>{7}.error(), "error\\(\\) of a result that holds a value");
  EXPECT_DEATH((void)*result<int>{}, "the value of a result that holds a refusal");
}
#endif

}  // namespace
