#pragma once

// The Asio that a test is compiled for, as `net`, and what versions name differently. The tests of tests/asio are compiled twice: for
// standalone Asio, and with KVLANE_TEST_BOOST_ASIO for Boost's.

#ifdef KVLANE_TEST_BOOST_ASIO
#include <kvlane/boost_asio.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

namespace net = boost::asio;
#define KVLANE_TEST_NET_VERSION BOOST_ASIO_VERSION
#else
#include <kvlane/asio.hpp>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/experimental/parallel_group.hpp>

namespace net = asio;
#define KVLANE_TEST_NET_VERSION ASIO_VERSION
#endif

namespace kvlane::test {

#if KVLANE_TEST_NET_VERSION < 102300
using net::experimental::as_tuple;
using net::experimental::deferred;
#else
using net::as_tuple;
using net::deferred;
#endif

}  // namespace kvlane::test
