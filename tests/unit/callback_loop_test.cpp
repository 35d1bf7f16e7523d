#include <kvlane/detail/callback_loop.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using kvlane::detail::callback_loop;
using kvlane::detail::deferred_call;

class call final : public deferred_call {
 public:
  explicit call(std::function<void()> body) : body_{std::move(body)} {}
  void run() noexcept override { body_(); }

 private:
  std::function<void()> body_;
};

TEST(CallbackLoop, RunsCallsInTheOrderOfTheirComing) {
  std::vector<int> ran;
  call one{[&] { ran.push_back(1); }};
  call two{[&] { ran.push_back(2); }};
  call three{[&] { ran.push_back(3); }};
  callback_loop loop;
  loop.push(two);
  loop.push(one);
  loop.push(three);
  EXPECT_TRUE(ran.empty()) << "nothing runs before it is told to";
  loop.run();
  EXPECT_EQ(ran, (std::vector{2, 1, 3}));
  loop.run();
  EXPECT_EQ(ran, (std::vector{2, 1, 3})) << "each of them once";
}

TEST(CallbackLoop, DoesNotNestCalls) {
  std::vector<int> ran;
  callback_loop loop;
  call inner{[&] { ran.push_back(2); }};
  call outer{[&] {
    loop.push(inner);
    loop.run();
    ran.push_back(1);
  }};
  loop.push(outer);
  loop.run();
  EXPECT_EQ(ran, (std::vector{1, 2}));
}

TEST(CallbackLoop, WhatACallCausesRunsAfterWhatWasThereBefore) {
  std::vector<int> ran;
  callback_loop loop;
  call caused{[&] { ran.push_back(3); }};
  call first{[&] {
    ran.push_back(1);
    loop.push(caused);
    loop.run();
  }};
  call second{[&] { ran.push_back(2); }};
  loop.push(first);
  loop.push(second);
  loop.run();
  EXPECT_EQ(ran, (std::vector{1, 2, 3}));
}

TEST(CallbackLoop, ACallMayDestroyItself) {
  int ran = 0;
  callback_loop loop;
  std::unique_ptr<call> gone;
  gone = std::make_unique<call>([&] {
    ++ran;
    auto const last_words = std::move(gone);
  });
  call after{[&] { ++ran; }};
  loop.push(*gone);
  loop.push(after);
  loop.run();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(gone, nullptr);
}

TEST(CallbackLoop, ACallMayComeAgain) {
  int ran = 0;
  callback_loop loop;
  call again{[&] {
    if (++ran < 3) loop.push(again);
  }};
  loop.push(again);
  loop.run();
  EXPECT_EQ(ran, 3);
}

TEST(CallbackLoop, AChainOfAMillionCallsNeedsNoStack) {
  constexpr int length = 1'000'000;
  int ran = 0;
  int depth = 0;
  int deepest = 0;
  callback_loop loop;
  call link{[&] {
    deepest = std::max(deepest, ++depth);
    if (++ran < length) {
      loop.push(link);
      loop.run();
    }
    --depth;
  }};
  loop.push(link);
  loop.run();
  EXPECT_EQ(ran, length);
  EXPECT_EQ(deepest, 1);
}

TEST(CallbackLoop, WorksAgainAfterItHasRunDry) {
  int ran = 0;
  callback_loop loop;
  call one{[&] { ++ran; }};
  for (int i = 0; i != 3; ++i) {
    loop.push(one);
    loop.run();
  }
  EXPECT_EQ(ran, 3);
}

TEST(CallbackLoop, EachThreadHasItsOwn) {
  auto* const mine = &callback_loop::of_this_thread();
  EXPECT_EQ(&callback_loop::of_this_thread(), mine);
  callback_loop* theirs = nullptr;
  int ran = 0;
  call waiting_here{[&] { ++ran; }};
  mine->push(waiting_here);
  std::thread{[&] {
    theirs = &callback_loop::of_this_thread();
    theirs->run();
  }}.join();
  EXPECT_NE(theirs, mine);
  EXPECT_EQ(ran, 0) << "another thread does not run what was caused here";
  mine->run();
  EXPECT_EQ(ran, 1);
}

}  // namespace
