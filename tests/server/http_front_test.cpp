// The server over real sockets on the loopback interface, with one thread that serves.

#include "http_front.hpp"
#include "scripted_engine.hpp"

#include <kvlane/blocking.hpp>

#include <asio/connect.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

namespace {

using asio::ip::tcp;
using server::test::scripted_engine;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

/// Blocks: every test ends within the limit of its program.
class http_client {
 public:
  explicit http_client(std::uint16_t port) { socket_.connect({asio::ip::make_address("127.0.0.1"), port}); }

  void send(std::string const& method, std::string const& path, std::string const& body = {},
            std::string const& headers = {}) {
    asio::write(socket_, asio::buffer(fmt::format("{} {} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n{}\r\n{}",
                                                  method, path, body.size(), headers, body)));
  }
  void complete(std::string const& more, std::string const& headers = {}) {
    send("POST", "/v1/completions", R"({"model": "m", "prompt": [50, 51, 52], "max_tokens": 8)" + more + "}", headers);
  }
  /// Up to and with `end`.
  std::string read_to(std::string const& end) {
    auto const size = asio::read_until(socket_, asio::dynamic_buffer(pending_), end);
    auto text = pending_.substr(0, size);
    pending_.erase(0, size);
    return text;
  }
  std::string read_head() { return read_to("\r\n\r\n"); }
  /// Everything until the server closes the connection.
  std::string read_all() {
    asio::error_code ended;
    asio::read(socket_, asio::dynamic_buffer(pending_), ended);
    EXPECT_EQ(ended, asio::error::eof);
    return std::move(pending_);
  }
  void leave() { socket_.close(); }
  /// Without a word, as a process that is killed.
  void vanish() {
    socket_.set_option(asio::socket_base::linger{true, 0});
    socket_.close();
  }

 private:
  asio::io_context own_;
  tcp::socket socket_{own_};
  std::string pending_;
};

class HttpFront : public testing::Test {
 protected:
  HttpFront() {
    std::promise<std::uint16_t> port;
    front_.open([&](std::uint16_t p) { port.set_value(p); }, [](std::string const& why) { FAIL() << why; });
    thread_ = std::jthread{[this] { context_.run(); }};
    port_ = port.get_future().get();
  }
  ~HttpFront() override {
    EXPECT_TRUE(is_idle());
    context_.stop();
  }

  bool is_idle() { return kvlane::wait_idle(service_.queue(), std::chrono::steady_clock::now() + 20s); }
  /// Runs on the thread that serves, between what it does, and waits for that.
  void on_server(auto const& f) {
    asio::post(context_, std::packaged_task<void()>{f});
    std::promise<void> done;
    asio::post(context_, [&] { done.set_value(); });
    done.get_future().get();
  }
  /// Lets the server take in what has been sent to it; every client of it sees a reply.
  void round_trip() {
    http_client other{port_};
    other.send("GET", "/health");
    other.read_to("}");
  }

  /// Until that is so: what a client has sent is read when the server gets to it.
  void until(auto const& is_so) {
    for (auto i = 0; i != 1000 && !is_so(); ++i) round_trip();
    EXPECT_TRUE(is_so());
  }
  std::uint64_t waiting() { return service_.queue().snapshot().waiting; }
  std::uint64_t running() { return service_.queue().snapshot().lanes_busy; }

  static server::service_settings settings() {
    server::service_settings s;
    s.limits = {.lanes = 1, .kv_capacity = 100, .max_waiting = 1};
    s.model = "m";
    s.quiet = true;
    return s;
  }

  scripted_engine engine_;
  asio::io_context context_{1};
  server::service service_{settings(), context_.get_executor(), engine_};
  server::http_front front_{context_, {}, service_};
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

TEST_F(HttpFront, AWholeReplyHasItsLengthAndTheConnectionGoesOn) {
  http_client client{port_};
  client.send("GET", "/health");
  EXPECT_THAT(client.read_head(), testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 15\r\n"),
                                                 HasSubstr("Content-Type: application/json\r\n")));
  EXPECT_EQ(client.read_to("}"), R"({"status":"ok"})");
  client.send("GET", "/nothing");
  EXPECT_THAT(client.read_head(), StartsWith("HTTP/1.1 404 Not Found\r\n"));
}

TEST_F(HttpFront, AStreamComesInChunksEachAsSoonAsThereIsOne) {
  http_client client{port_};
  client.complete(R"(, "stream": true)");
  auto const head = client.read_head();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream; charset=utf-8\r\n"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  on_server([&] { engine_.make_tokens(0, 1); });
  EXPECT_THAT(client.read_to("\n\n"), HasSubstr(R"("text":" t100")"));
  on_server([&] { engine_.end(0); });
  EXPECT_THAT(client.read_to("\r\n0\r\n\r\n"), HasSubstr("data: [DONE]\n\n"));
}

TEST_F(HttpFront, ARefusalNamesItsReasonAndWhenToComeBack) {
  http_client runs{port_};
  runs.complete("");
  until([&] { return running() == 1; });
  http_client waits{port_};
  // A short wait, which the queue's timer ends.
  waits.complete(R"(, "stream": true)", "x-stainless-timeout: 1\r\n");
  EXPECT_THAT(waits.read_head(), StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(waits.read_to("}}"), HasSubstr("timed out after"));
  on_server([&] { engine_.end(0); });
  EXPECT_THAT(runs.read_head(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpFront, AClientThatLeavesWhileItWaitsIsNoticed) {
  http_client runs{port_};
  runs.complete("");
  runs.send("GET", "/health");  // another request on its connection changes nothing
  until([&] { return running() == 1; });
  http_client waits{port_};
  waits.complete("");
  until([&] { return waiting() == 1; });
  waits.leave();
  until([&] { return waiting() == 0; });
  on_server([&] { engine_.end(0); });
  EXPECT_THAT(runs.read_head(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpFront, AClientThatLeavesAWholeReplyFreesLaneAndTokens) {
  http_client client{port_};
  client.complete("");
  until([&] { return running() == 1; });
  client.vanish();
  EXPECT_TRUE(is_idle());
}

TEST_F(HttpFront, AClientThatLeavesAStreamFreesLaneAndTokens) {
  http_client client{port_};
  client.complete(R"(, "stream": true)");
  client.read_head();
  client.leave();
  EXPECT_TRUE(is_idle());
}

TEST_F(HttpFront, BothRequestsOfAConnectionAreGivenUpWithIt) {
  http_client client{port_};
  client.complete("");
  client.complete("");
  until([&] { return waiting() == 1; });
  client.leave();
  EXPECT_TRUE(is_idle());
}

TEST_F(HttpFront, ItIsIdleOnceEveryReplyHasBeenWritten) {
  http_client client{port_};
  client.complete("");
  until([&] { return running() == 1; });
  std::promise<void> idle;
  front_.when_idle([&] { idle.set_value(); });
  auto told = idle.get_future();
  EXPECT_EQ(told.wait_for(0s), std::future_status::timeout);
  on_server([&] { engine_.end(0); });
  told.get();
  EXPECT_THAT(client.read_head(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

}  // namespace
