#pragma once

#include "support/asio_flavour.hpp"
#include "support/queue_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kvlane::test {

/// A queue with one lane and the real clock, and a context to wait in. In the end nobody may have anything.
class AsyncAdmit : public testing::Test {
 protected:
  admission_queue queue{{.lanes = 1, .max_waiting = 100}};
  net::io_context context;

  /// The lane, so that everybody else has to wait.
  [[nodiscard]] lease take() { return std::move(*queue.try_admit({.kv_demand = 1})); }
  [[nodiscard]] std::uint64_t waiting() const { return queue.snapshot().waiting; }

  /// A handler that keeps what it gets.
  [[nodiscard]] auto keep() {
    return [this](admission a) { outcomes.push_back(std::move(a)); };
  }
  [[nodiscard]] std::optional<errc> refusal() const { return refused(outcomes.at(0)); }

  /// What is ready now, also after the context has run dry once.
  void run_ready() {
    context.restart();
    context.poll();
  }

  void TearDown() override {
    outcomes.clear();
    run_ready();
    expect_nothing_left(queue);
  }

  std::vector<admission> outcomes;
};

}  // namespace kvlane::test
