#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace kvlane::test {

/// Runs `f` on a thread whose stack is too small for a call for each of many thousand symbols or prompts.
template <class F>
void on_a_small_stack(F f, std::size_t bytes = std::size_t{256} * 1024) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  auto const body = [](void* given) -> void* {
    (*static_cast<F*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &f), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace kvlane::test
