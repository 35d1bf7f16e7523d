#pragma once

#include <kvlane/detail/async_operation.hpp>
#include <kvlane/request.hpp>

#include <type_traits>
#include <utility>

namespace kvlane::detail {

/// Stands for "none" where an associated executor is asked for.
struct no_executor {};

template <class Net, class Handler>
inline constexpr bool has_executor =
    !std::is_same_v<typename Net::template associated_executor<Handler, no_executor>::type, no_executor>;

/// Starts an async_admit on the executor that the handler brings along.
template <class Net>
struct admit_on_handlers_executor {
  template <class Handler, class Queue>
  void operator()(Handler&& handler, Queue* queue, request const& r) const {
    using handler_type = std::decay_t<Handler>;
    static_assert(has_executor<Net, handler_type>,
                  "the completion handler of kvlane::async_admit has no associated executor: bind one to it "
                  "(bind_executor), or pass one: async_admit(executor, queue, request, token)");
    if constexpr (has_executor<Net, handler_type>) {
      auto executor = Net::template associated_executor<handler_type, no_executor>::get(handler, no_executor{});
      handler_type own(std::forward<Handler>(handler));
      async_operation<Net, handler_type, decltype(executor)>::start(std::move(own), executor, *queue, r);
    }
  }
};

/// Starts an async_admit on a given executor, which is also the handler's if that has none.
template <class Net, class Executor>
class admit_on {
 public:
  using executor_type = Executor;

  explicit admit_on(Executor const& executor) noexcept : executor_{executor} {}
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <class Handler, class Queue>
  void operator()(Handler&& handler, Queue* queue, request const& r) const {
    auto const executor = executor_;  // a coroutine may go on elsewhere before `start` returns, and this with it
    std::decay_t<Handler> own(std::forward<Handler>(handler));
    async_operation<Net, std::decay_t<Handler>, Executor>::start(std::move(own), executor, *queue, r);
  }

 private:
  Executor executor_;
};

}  // namespace kvlane::detail
