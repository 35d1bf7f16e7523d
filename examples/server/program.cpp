#include "program.hpp"

#include "command_line.hpp"
#include "http_front.hpp"
#include "model_engine.hpp"
#include "service.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace server {

namespace {

constexpr auto usage_is_bad = 2;
constexpr auto cannot_serve = 1;

/// From the first signal to the end: lets requests finish, closes the queue if that takes too long, stops the context.
class shutdown_sequence {
 public:
  shutdown_sequence(asio::io_context& context, service& s, http_front& front, std::chrono::milliseconds patience)
      : context_{context}, service_{s}, front_{front}, patience_{patience}, signals_{strand_, SIGINT, SIGTERM} {
    signals_.async_wait([this](auto const& error, int) {
      if (!error) begin();
    });
  }

 private:
  void begin() {
    fmt::print(stderr, "kvlane-server: draining; a second signal ends it at once\n");
    signals_.async_wait([](auto const& error, int signal) {
      if (!error) std::_Exit(128 + signal);
    });
    service_.drain();
    front_.when_idle([this] { context_.stop(); });
    timer_.expires_after(patience_);
    timer_.async_wait([this](auto const& error) {
      if (!error) close();
    });
  }

  void close() {
    fmt::print(stderr, "kvlane-server: closing; what still runs or waits is refused\n");
    service_.close();
    // Whoever does not even read its refusal is left behind.
    timer_.expires_after(std::chrono::seconds{5});
    timer_.async_wait([this](auto const& error) {
      if (!error) context_.stop();
    });
  }

  asio::io_context& context_;
  service& service_;
  http_front& front_;
  std::chrono::milliseconds patience_;
  asio::strand<asio::io_context::executor_type> strand_{context_.get_executor()};
  asio::signal_set signals_;
  asio::steady_timer timer_{strand_};
};

void say_where(std::ostream& out, command const& c, std::uint16_t port) {
  auto const host = c.listen.address.find(':') == std::string::npos ? c.listen.address : '[' + c.listen.address + ']';
  out << fmt::format("listening on http://{}:{}\n", host, port)
      << fmt::format("try: curl -N http://{}:{}/v1/chat/completions -d '{{\"model\": \"{}\", \"stream\": true, "
                     "\"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'\n",
                     host, port, c.service.model)
      << std::flush;
}

int serve(command const& c, console const& where) {
  asio::io_context context{static_cast<int>(c.threads)};
  model_engine engine{context.get_executor(), c.engine};
  service answers{c.service, context.get_executor(), engine};
  http_front front{context, c.listen, answers};
  shutdown_sequence const shutdown{context, answers, front, c.drain_timeout};
  auto status = 0;
  front.open([&](std::uint16_t port) { say_where(where.out, c, port); },
             [&](std::string const& why) {
               where.err << fmt::format("kvlane-server: cannot listen on {} port {}: {}\n", c.listen.address,
                                        c.listen.port, why);
               status = cannot_serve;
               context.stop();
             });
  std::vector<std::jthread> others;
  for (auto i = 1U; i != c.threads; ++i) others.emplace_back([&context] { context.run(); });
  context.run();
  return status;
}

}  // namespace

int run_program(int argc, char const* const* argv, console const& where) {
  try {
    auto const wish = parse_command_line(argc, argv);
    if (auto const* const help = std::get_if<help_text>(&wish)) {
      where.out << help->text;
      return 0;
    }
    return serve(std::get<command>(wish), where);
  } catch (usage_error const& error) {
    where.err << "kvlane-server: " << error.what() << "\nkvlane-server --help lists the options.\n";
    return usage_is_bad;
  } catch (std::invalid_argument const& error) {
    where.err << "kvlane-server: these settings make no sense: " << error.what()
              << "\nkvlane-server --help lists the options.\n";
    return usage_is_bad;
  } catch (std::exception const& error) {
    where.err << "kvlane-server: " << error.what() << '\n';
    return cannot_serve;
  }
}

}  // namespace server
