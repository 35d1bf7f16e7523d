#include <kvlane/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <system_error>
#include <type_traits>

namespace {

using kvlane::admission_category;
using kvlane::errc;
using kvlane::make_error_code;

static_assert(std::is_error_code_enum_v<errc>);
static_assert(!std::is_error_condition_enum_v<errc>);

TEST(Errc, KeepsTheNumbersThatProgramsAreCompiledAgainst) {
  EXPECT_EQ(static_cast<int>(errc::invalid_request), 1);
  EXPECT_EQ(static_cast<int>(errc::never_fits), 2);
  EXPECT_EQ(static_cast<int>(errc::shutting_down), 3);
  EXPECT_EQ(static_cast<int>(errc::would_wait), 4);
  EXPECT_EQ(static_cast<int>(errc::queue_full), 5);
  EXPECT_EQ(static_cast<int>(errc::would_time_out), 6);
  EXPECT_EQ(static_cast<int>(errc::timed_out), 7);
  EXPECT_EQ(static_cast<int>(errc::cancelled), 8);
  EXPECT_EQ(static_cast<int>(errc::no_longer_fits), 9);
}

TEST(Errc, EveryCodeIsOfOneCategoryObject) {
  EXPECT_EQ(&make_error_code(errc::invalid_request).category(), &admission_category());
  EXPECT_EQ(&make_error_code(errc::no_longer_fits).category(), &admission_category());
  EXPECT_EQ(&admission_category(), &admission_category());
  EXPECT_STREQ(admission_category().name(), "kvlane.admission");
}

TEST(Errc, TurnsIntoAnErrorCodeThatCompares) {
  std::error_code const full = errc::queue_full;
  EXPECT_TRUE(full) << "every value means an error";
  EXPECT_EQ(full.value(), 5);
  EXPECT_EQ(full, errc::queue_full);
  EXPECT_NE(full, errc::timed_out);
}

TEST(Errc, IsNotMistakenForTheSameNumberOfAnotherCategory) {
  EXPECT_NE((std::error_code{5, std::generic_category()}), make_error_code(errc::queue_full));
  EXPECT_NE(make_error_code(errc::queue_full), std::errc::io_error);
}

TEST(Errc, SaysWhatEachCodeMeans) {
  auto const text = [](errc code) { return make_error_code(code).message(); };
  EXPECT_EQ(text(errc::invalid_request), "the request is invalid");
  EXPECT_EQ(text(errc::never_fits), "the request can never fit");
  EXPECT_EQ(text(errc::shutting_down), "the queue is shutting down");
  EXPECT_EQ(text(errc::would_wait), "the request would have to wait");
  EXPECT_EQ(text(errc::queue_full), "the waiting line is full");
  EXPECT_EQ(text(errc::would_time_out), "the predicted wait is longer than the request may wait");
  EXPECT_EQ(text(errc::timed_out), "the request waited until its deadline");
  EXPECT_EQ(text(errc::cancelled), "the request was cancelled");
  EXPECT_EQ(text(errc::no_longer_fits), "the request no longer fits");
}

TEST(Errc, NamesANumberItDoesNotKnow) {
  EXPECT_EQ(admission_category().message(42), "unknown admission error 42");
  EXPECT_EQ(admission_category().message(0), "unknown admission error 0");
}

}  // namespace
