// A handler says where it runs: by an executor of its own, or by one that is passed.
// expect: has no associated executor
#include <kvlane/asio.hpp>
#include <kvlane/kvlane.hpp>

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>

void ask(kvlane::admission_queue& queue, asio::io_context& context) {
  auto const handler = [](kvlane::admission const&) {};
#ifdef KVLANE_COMPILE_FAIL_OK
  kvlane::async_admit(queue, {.kv_demand = 1}, asio::bind_executor(context.get_executor(), handler));
  kvlane::async_admit(context, queue, {.kv_demand = 1}, handler);
#else
  static_cast<void>(context);
  kvlane::async_admit(queue, {.kv_demand = 1}, handler);
#endif
}
