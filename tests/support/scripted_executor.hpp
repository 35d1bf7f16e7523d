#pragma once

#include "support/asio_flavour.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <utility>

namespace kvlane::test {

/// An executor of an io_context that does what a test tells it. Copies share the script.
class scripted_executor {
 public:
  struct script {
    int refusing = 0;  ///< so many functions are answered with std::bad_alloc, if they come from outside of the context
    int dropping = 0;  ///< after those, so many are destroyed and not run
    int taken = 0;     ///< how many have been passed on
    std::function<void()> before_passing_on;
  };

  explicit scripted_executor(net::io_context& context) : context_{&context}, script_{std::make_shared<script>()} {}

  [[nodiscard]] script& says() const noexcept { return *script_; }
  /// How many there are of it, itself included.
  [[nodiscard]] long copies() const noexcept { return script_.use_count(); }

  template <class F>
  void execute(F&& f) const {
    auto function = std::forward<F>(f);
    if (script_->refusing > 0 && !context_->get_executor().running_in_this_thread()) {
      --script_->refusing;
      throw std::bad_alloc{};
    }
    if (script_->dropping > 0) {
      --script_->dropping;
      return;
    }
    ++script_->taken;
    if (script_->before_passing_on) script_->before_passing_on();
    net::post(*context_, std::move(function));
  }

  [[nodiscard]] net::execution_context& query(net::execution::context_t) const noexcept { return *context_; }
  [[nodiscard]] static constexpr net::execution::blocking_t::never_t query(net::execution::blocking_t) noexcept {
    return net::execution::blocking.never;
  }
  [[nodiscard]] scripted_executor require(net::execution::blocking_t::never_t) const noexcept { return *this; }

  friend bool operator==(scripted_executor const&, scripted_executor const&) noexcept = default;

 private:
  net::io_context* context_;
  std::shared_ptr<script> script_;
};

}  // namespace kvlane::test
