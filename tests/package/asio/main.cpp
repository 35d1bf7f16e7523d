#include <kvlane/asio.hpp>
#include <kvlane/kvlane.hpp>

#include <asio/io_context.hpp>

#ifdef WITH_BOOST_ASIO
#include <kvlane/boost_asio.hpp>

#include <boost/asio/io_context.hpp>
#endif

int main() {
  kvlane::admission_queue queue;
  int admitted = 0;
  auto const count = [&](kvlane::admission const& slot) { admitted += slot ? 1 : 0; };

  asio::io_context context;
  kvlane::with_asio::async_admit(context, queue, {.kv_demand = 1}, count);
  context.run();
  if (admitted != 1) return 1;
#ifdef WITH_BOOST_ASIO
  boost::asio::io_context boost_context;
  kvlane::with_boost_asio::async_admit(boost_context, queue, {.kv_demand = 1}, count);
  boost_context.run();
  if (admitted != 2) return 2;
#endif
  return 0;
}
