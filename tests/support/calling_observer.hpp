#pragma once

#include <kvlane/observer.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <variant>

namespace kvlane::test {

/// Calls a function of the test when the next request joins the line: on the thread that brings it, after unlocking, and
/// before the call that brings it goes on. Copies share the function.
class calling_observer {
 public:
  void when_queued(std::function<void()> call) { *call_ = std::move(call); }
  void operator()(event const& e) noexcept {
    if (!std::holds_alternative<events::queued>(e)) return;
    if (auto const call = std::exchange(*call_, nullptr)) call();
  }

 private:
  std::shared_ptr<std::function<void()>> call_ = std::make_shared<std::function<void()>>();
};

}  // namespace kvlane::test
