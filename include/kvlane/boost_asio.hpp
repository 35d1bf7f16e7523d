#pragma once

#include <kvlane/detail/async_initiation.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/is_executor.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>

#include <type_traits>
#include <utility>

namespace kvlane {

namespace detail {

/// As standalone_asio.
struct boost_asio {
  using execution_context = ::boost::asio::execution_context;
  using steady_timer = ::boost::asio::steady_timer;
  using default_allocator = ::boost::asio::recycling_allocator<void>;
  template <class T, class Executor>
  using associated_executor = ::boost::asio::associated_executor<T, Executor>;
  template <class T, class Allocator>
  using associated_allocator = ::boost::asio::associated_allocator<T, Allocator>;

  template <class E>
  static constexpr bool is_executor =
      ::boost::asio::execution::is_executor<E>::value || ::boost::asio::is_executor<E>::value;

  template <class Handler>
  static auto cancellation_slot(Handler const& handler) noexcept {
    return ::boost::asio::get_associated_cancellation_slot(handler);
  }
  template <class Service>
  static Service& use_service(execution_context& context) {
    return ::boost::asio::use_service<Service>(context);
  }
  /// An executor that does not say (that of use_future) runs functions in the system's.
  template <class Executor>
  static execution_context& context(Executor const& executor) {
    if constexpr (::boost::asio::can_query<Executor, ::boost::asio::execution::context_t>::value)
      return ::boost::asio::query(executor, ::boost::asio::execution::context);
    else
      return ::boost::asio::system_executor{}.context();
  }
  /// Counts as outstanding work for as long as it lives.
  template <class Executor>
  static auto working(Executor const& executor) {
    return ::boost::asio::prefer(executor, ::boost::asio::execution::outstanding_work.tracked);
  }
  /// The same, and never runs a function inside `execute`.
  template <class Executor>
  static auto posting(Executor const& executor) {
    static_assert(::boost::asio::can_require<Executor, ::boost::asio::execution::blocking_t::never_t>::value,
                  "kvlane::async_admit needs executors that can be asked never to block (blocking.never); the old "
                  "io_context::strand cannot: use make_strand");
    return ::boost::asio::prefer(::boost::asio::require(executor, ::boost::asio::execution::blocking.never),
                                 ::boost::asio::execution::relationship.fork,
                                 ::boost::asio::execution::outstanding_work.tracked);
  }
  /// The one to keep a timer: it must not keep its context at work, and not be held up by what a strand runs.
  template <class Executor>
  static auto for_timer(Executor const& executor) {
    if constexpr (requires { executor.get_inner_executor(); })
      return for_timer(executor.get_inner_executor());
    else if constexpr (!::boost::asio::can_query<Executor, ::boost::asio::execution::context_t>::value)
      return ::boost::asio::any_io_executor{::boost::asio::system_executor{}};
    else
      return ::boost::asio::any_io_executor{
          ::boost::asio::prefer(executor, ::boost::asio::execution::outstanding_work.untracked)};
  }
  template <class Executor, class Function>
  static void execute(Executor const& executor, Function&& f) {
#if __has_include(                                                                                                     \
    <boost/asio/execution/execute.hpp>)  // up to about 1.32, where not every executor has a public member
    ::boost::asio::execution::execute(executor, std::forward<Function>(f));
#else
    executor.execute(std::forward<Function>(f));
#endif
  }
  template <class Token, class Initiation, class Queue>
  static auto initiate(Initiation initiation, Token&& token, Queue& queue, request const& r) {
    return ::boost::asio::async_initiate<Token, void(admission)>(std::move(initiation), token, &queue, request{r});
  }
};

}  // namespace detail

inline namespace with_boost_asio {

/// As async_admit of <kvlane/asio.hpp>, for the Asio that is part of Boost. A translation unit that includes both headers
/// says which one it means: `kvlane::with_asio::async_admit`, `kvlane::with_boost_asio::async_admit`.
template <class Queue, class CompletionToken>
auto async_admit(Queue& queue, request const& r, CompletionToken&& token) {
  return detail::boost_asio::initiate<CompletionToken>(detail::admit_on_handlers_executor<detail::boost_asio>{},
                                                       std::forward<CompletionToken>(token), queue, r);
}

/// The same on an executor, or a context: for handlers that have none of their own, and otherwise the I/O executor whose
/// context keeps the deadline while the handler runs on its own.
template <class ExecutorOrContext, class Queue, class CompletionToken>
auto async_admit(ExecutorOrContext&& where, Queue& queue, request const& r, CompletionToken&& token) {
  if constexpr (detail::boost_asio::is_executor<std::decay_t<ExecutorOrContext>>) {
    using initiation = detail::admit_on<detail::boost_asio, std::decay_t<ExecutorOrContext>>;
    return detail::boost_asio::initiate<CompletionToken>(initiation{where}, std::forward<CompletionToken>(token), queue,
                                                         r);
  } else {
    return with_boost_asio::async_admit(where.get_executor(), queue, r, std::forward<CompletionToken>(token));
  }
}

}  // namespace with_boost_asio

}  // namespace kvlane
