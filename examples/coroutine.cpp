// Coroutines on Asio: an admission is awaited, raced against something else, and cancelled from outside. Whoever gives up
// leaves the line, and a lane that nobody takes goes to the next.

#include <kvlane/admission_queue.hpp>
#include <kvlane/asio.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

/// A refusal is a value; what is thrown is a fault, and ends the program by way of run().
constexpr auto rethrow = [](std::exception_ptr const& fault) {
  if (fault) std::rethrow_exception(fault);
};

void tell(char const* name, kvlane::admission const& slot) {
  if (slot)
    std::printf("%s runs on lane %u\n", name, slot->lane());
  else
    std::printf("%s: %s\n", name, slot.error().error_code().message().c_str());
}

asio::awaitable<void> serve(kvlane::admission_queue& queue, char const* name) {
  auto const slot = co_await kvlane::async_admit(queue, {.prompt_tokens = 100, .max_wait = 30s}, asio::use_awaitable);
  tell(name, slot);
}  // lane and tokens go back here

/// Waits for a lane or for the timer. When the timer is first, the request has left the line by the time this goes on.
asio::awaitable<void> serve_soon(kvlane::admission_queue& queue, char const* name, kvlane::duration patience) {
  asio::steady_timer timer{co_await asio::this_coro::executor, patience};
  auto const first = co_await (kvlane::async_admit(queue, {.prompt_tokens = 100}, asio::use_awaitable) ||
                               timer.async_wait(asio::use_awaitable));
  if (auto const* const slot = std::get_if<kvlane::admission>(&first))
    tell(name, *slot);
  else
    std::printf("%s has waited long enough: %u in line\n", name, static_cast<unsigned>(queue.snapshot().waiting));
}

asio::awaitable<void> joined(kvlane::admission_queue const& queue, unsigned waiting) {
  while (queue.snapshot().waiting != waiting) co_await asio::post(asio::use_awaitable);
}

asio::awaitable<void> day(kvlane::admission_queue& queue, asio::cancellation_signal& hang_up) {
  auto const here = co_await asio::this_coro::executor;
  auto busy = co_await kvlane::async_admit(queue, {.prompt_tokens = 900}, asio::use_awaitable);
  tell("ann", busy);

  co_await serve_soon(queue, "bob", 1ms);

  asio::co_spawn(here, serve(queue, "eve"), asio::bind_cancellation_slot(hang_up.slot(), rethrow));
  co_await joined(queue, 1);
  hang_up.emit(asio::cancellation_type::terminal);

  asio::co_spawn(here, serve(queue, "fay"), rethrow);
  co_await joined(queue, 1);
  // Without a coroutine: any handler that has an executor, here a strand, on which it runs.
  auto const strand = asio::make_strand(here);
  kvlane::async_admit(queue, {.prompt_tokens = 100},
                      asio::bind_executor(strand, [](kvlane::admission slot) { tell("gus", slot); }));
  if (busy) busy->release();
}

int main() {
  kvlane::admission_queue queue{{.lanes = 1}};
  asio::cancellation_signal hang_up;  // outlives whoever it may cancel
  asio::io_context context;
  asio::co_spawn(context, day(queue, hang_up), rethrow);
  context.run();
}
