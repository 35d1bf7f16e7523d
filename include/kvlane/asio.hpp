#pragma once

#include <kvlane/detail/async_initiation.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/is_executor.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/recycling_allocator.hpp>
#include <asio/require.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_executor.hpp>

#include <type_traits>
#include <utility>

namespace kvlane {

namespace detail {

/// What the implementation wants of Asio: all that may differ between its versions and flavours is here.
struct standalone_asio {
  using execution_context = ::asio::execution_context;
  using steady_timer = ::asio::steady_timer;
  using default_allocator = ::asio::recycling_allocator<void>;
  template <class T, class Executor>
  using associated_executor = ::asio::associated_executor<T, Executor>;
  template <class T, class Allocator>
  using associated_allocator = ::asio::associated_allocator<T, Allocator>;

  template <class E>
  static constexpr bool is_executor = ::asio::execution::is_executor<E>::value || ::asio::is_executor<E>::value;

  template <class Handler>
  static auto cancellation_slot(Handler const& handler) noexcept {
    return ::asio::get_associated_cancellation_slot(handler);
  }
  template <class Service>
  static Service& use_service(execution_context& context) {
    return ::asio::use_service<Service>(context);
  }
  /// An executor that does not say (that of use_future) runs functions in the system's.
  template <class Executor>
  static execution_context& context(Executor const& executor) {
    if constexpr (::asio::can_query<Executor, ::asio::execution::context_t>::value)
      return ::asio::query(executor, ::asio::execution::context);
    else
      return ::asio::system_executor{}.context();
  }
  /// Counts as outstanding work for as long as it lives.
  template <class Executor>
  static auto working(Executor const& executor) {
    return ::asio::prefer(executor, ::asio::execution::outstanding_work.tracked);
  }
  /// The same, and never runs a function inside `execute`.
  template <class Executor>
  static auto posting(Executor const& executor) {
    static_assert(::asio::can_require<Executor, ::asio::execution::blocking_t::never_t>::value,
                  "kvlane::async_admit needs executors that can be asked never to block (blocking.never); the old "
                  "io_context::strand cannot: use make_strand");
    return ::asio::prefer(::asio::require(executor, ::asio::execution::blocking.never),
                          ::asio::execution::relationship.fork, ::asio::execution::outstanding_work.tracked);
  }
  /// The one to keep a timer: it must not keep its context at work, and not be held up by what a strand runs.
  template <class Executor>
  static auto for_timer(Executor const& executor) {
    if constexpr (requires { executor.get_inner_executor(); })
      return for_timer(executor.get_inner_executor());
    else if constexpr (!::asio::can_query<Executor, ::asio::execution::context_t>::value)
      return ::asio::any_io_executor{::asio::system_executor{}};
    else
      return ::asio::any_io_executor{::asio::prefer(executor, ::asio::execution::outstanding_work.untracked)};
  }
  template <class Executor, class Function>
  static void execute(Executor const& executor, Function&& f) {
#if __has_include(<asio/execution/execute.hpp>)  // up to about 1.32, where not every executor has a public member
    ::asio::execution::execute(executor, std::forward<Function>(f));
#else
    executor.execute(std::forward<Function>(f));
#endif
  }
  template <class Token, class Initiation, class Queue>
  static auto initiate(Initiation initiation, Token&& token, Queue& queue, request const& r) {
    return ::asio::async_initiate<Token, void(admission)>(std::move(initiation), token, &queue, request{r});
  }
};

}  // namespace detail

inline namespace with_asio {

/// Waits for the lane and the KV tokens of `r` without blocking a thread.
///
///     kvlane::admission slot = co_await kvlane::async_admit(queue, {.prompt = tokens, .max_wait = 30s}, asio::use_awaitable);
///
/// \param r its prompt must live until the operation has been started: with a lazy token (deferred, use_awaitable that is
///   awaited later) that is not before this returns.
/// \param token any completion token whose handler has an associated executor (a coroutine's has; bind one to a plain
///   callback), which is where the handler runs. It may be move-only.
///
/// Completion signature: `void(kvlane::admission)`. A refusal is an ordinary value: in a parallel_group (`||`, `&&`) every
/// completion counts as a success.
///
/// The handler runs exactly once, never inside this function, and never inside the call that gives a lease back. Its
/// memory comes from its associated allocator and is freed before it runs. Its executor has outstanding work until then, and
/// the I/O executor until the handler has been posted.
/// If it is destroyed without being run, because its context is, then so is the lease: nothing is lost. A hand-over for
/// which there is no memory is tried again until there is.
///
/// Per-operation cancellation: total, partial and terminal, which all do the same. The outcome of an operation that was
/// cancelled in time is errc::cancelled. May be emitted from any thread, also while this function runs. The request leaves
/// the line at once; the handler runs later, and as always in Asio the signal must live until then.
///
/// Deadlines are kept by one timer for each context and queue; nobody need call `expire()`. With a clock that is not
/// `steady`, waits are measured by the queue's clock and waited for in real time.
///
/// Thread safety: as the queue. Lifetime: the context may be destroyed while operations wait, which destroys their handlers
/// and takes the requests out of line. The queue may be destroyed, which answers them with shutting_down.
/// \throws as `enqueue`, and what allocator and executor throw; lazy tokens report it where they are started
template <class Queue, class CompletionToken>
auto async_admit(Queue& queue, request const& r, CompletionToken&& token) {
  return detail::standalone_asio::initiate<CompletionToken>(
      detail::admit_on_handlers_executor<detail::standalone_asio>{}, std::forward<CompletionToken>(token), queue, r);
}

/// The same on an executor, or a context: for handlers that have none of their own, and otherwise the I/O executor whose
/// context keeps the deadline while the handler runs on its own.
template <class ExecutorOrContext, class Queue, class CompletionToken>
auto async_admit(ExecutorOrContext&& where, Queue& queue, request const& r, CompletionToken&& token) {
  if constexpr (detail::standalone_asio::is_executor<std::decay_t<ExecutorOrContext>>) {
    using initiation = detail::admit_on<detail::standalone_asio, std::decay_t<ExecutorOrContext>>;
    return detail::standalone_asio::initiate<CompletionToken>(initiation{where}, std::forward<CompletionToken>(token),
                                                              queue, r);
  } else {
    return with_asio::async_admit(where.get_executor(), queue, r, std::forward<CompletionToken>(token));
  }
}

}  // namespace with_asio

}  // namespace kvlane
