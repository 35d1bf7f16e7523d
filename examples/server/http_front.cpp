#include "http_front.hpp"

#include "activity.hpp"
#include "connections.hpp"
#include "event_stream.hpp"

#include <restinio/all.hpp>

#include <utility>

namespace server {

namespace {

/// Requests of one connection that are read ahead. RESTinio stops reading when so many are being answered, and would then
/// not notice that the client leaves; so it is far above what clients do.
constexpr std::size_t read_ahead = 32;
constexpr std::size_t largest_body = std::size_t{16} << 20;

struct close_listener {
  std::shared_ptr<connections> known;
  void state_changed(restinio::connection_state::notice_t const& notice) noexcept {
    if (std::holds_alternative<restinio::connection_state::closed_t>(notice.cause()))
      known->closed(notice.connection_id());
  }
};

struct front_traits : restinio::traits_t<restinio::asio_timer_manager_t, restinio::null_logger_t> {
  using connection_state_listener_t = close_listener;
};
using http_server = restinio::http_server_t<front_traits>;

char const* phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 429: return "Too Many Requests";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
  }
  return "Status";
}

restinio::http_status_line_t status_line(int status) {
  return {restinio::http_status_code_t{static_cast<std::uint16_t>(status)}, phrase_of(status)};
}

/// The exchange over a RESTinio connection.
class http_exchange final : public exchange {
 public:
  http_exchange(restinio::request_handle_t request, std::shared_ptr<void> busy, asio::any_io_executor executor)
      : request_{std::move(request)}, busy_{std::move(busy)}, executor_{std::move(executor)} {}

  [[nodiscard]] std::shared_ptr<departure_bell> const& bell() const noexcept { return bell_; }

  void reply(kvlane::http_reply const& whole) override {
    auto response = begin_reply(whole.status, "application/json");
    if (whole.retry_after) response.append_header("Retry-After", std::to_string(whole.retry_after->count()));
    if (whole.should_retry) response.append_header("x-should-retry", *whole.should_retry ? "true" : "false");
    response.set_body(whole.body);
    finish(response);
  }
  void reply_text(std::string body, std::string const& content_type) override {
    auto response = begin_reply(200, content_type);
    response.set_body(std::move(body));
    finish(response);
  }

  void begin_stream() override {
    auto response = request_->create_response<restinio::chunked_output_t>(status_line(200));
    response.append_header("Content-Type", "text/event-stream; charset=utf-8");
    response.append_header("Cache-Control", "no-cache");
    stream_ = std::make_shared<event_stream>(std::move(response), executor_);
    stream_->begin();
  }
  void send(std::string events) override { stream_->send(events); }
  void end_stream() override {
    bell_->silence();
    stream_->end(std::move(busy_));
    stream_.reset();
    request_.reset();
  }

  void when_gone(std::function<void()> gone) override { bell_->when_gone(std::move(gone)); }

 private:
  using whole_response = restinio::response_builder_t<restinio::restinio_controlled_output_t>;

  whole_response begin_reply(int status, std::string const& content_type) {
    auto response = request_->create_response(status_line(status));
    response.append_header("Content-Type", content_type);
    return response;
  }
  void finish(whole_response& response) {
    bell_->silence();
    // Busy until the last byte has been written, or never will be.
    response.done([busy = std::move(busy_)](auto const&) {});
    request_.reset();
  }

  restinio::request_handle_t request_;
  std::shared_ptr<void> busy_;
  asio::any_io_executor executor_;
  std::shared_ptr<departure_bell> bell_ = std::make_shared<departure_bell>();
  std::shared_ptr<event_stream> stream_;
};

http_call call_of(restinio::request_t const& request) {
  auto const& header = request.header();
  auto const field = [&](char const* name) {
    auto const* const value = header.try_get_field(name) ? &header.get_field(name) : nullptr;
    return value == nullptr ? std::string{} : *value;
  };
  return {.method = header.method().c_str(),
          .path = std::string{header.path()},
          .body = request.body(),
          .authorization = field("Authorization"),
          .client_timeout = field("x-stainless-timeout")};
}

}  // namespace

struct http_front::state {
  state(asio::io_context& context, listen_settings const& s, service& behind)
      : server{restinio::external_io_context(context),
               [&](auto& settings) { configure(settings, s, behind, context); }} {}

  void configure(auto& settings, listen_settings const& s, service& behind, asio::io_context& context) {
    settings.address(s.address)
        .port(s.port)
        .acceptor_post_bind_hook([this](asio::ip::tcp::acceptor& a) { port = a.local_endpoint().port(); })
        .socket_options_setter([](auto& options) { options.set_option(asio::ip::tcp::no_delay{true}); })
        .max_pipelined_requests(read_ahead)
        .handle_request_timeout(s.longest_exchange)
        .write_http_response_timelimit(std::chrono::minutes{1})
        .read_next_http_message_timelimit(std::chrono::minutes{5})
        .incoming_http_msg_limits(restinio::incoming_http_msg_limits_t{}.max_body_size(largest_body))
        .connection_state_listener(std::make_shared<close_listener>(close_listener{open_connections}))
        .request_handler([this, &behind, &context](restinio::request_handle_t const& request) {
          auto const client = std::make_shared<http_exchange>(request, busy.begin(), context.get_executor());
          open_connections->add(request->connection_id(), client->bell());
          behind.handle(call_of(*request), client);
          return restinio::request_accepted();
        });
  }

  activity busy;
  std::shared_ptr<connections> open_connections = std::make_shared<connections>();
  std::uint16_t port = 0;
  http_server server;
};

http_front::http_front(asio::io_context& context, listen_settings const& s, service& behind)
    : state_{std::make_unique<state>(context, s, behind)} {}

http_front::~http_front() = default;

void http_front::open(std::function<void(std::uint16_t)> listening, std::function<void(std::string)> failed) {
  state_->server.open_async([this, listening = std::move(listening)] { listening(state_->port); },
                            [failed = std::move(failed)](std::exception_ptr const& why) {
                              try {
                                std::rethrow_exception(why);
                              } catch (std::exception const& error) {
                                failed(error.what());
                              }
                            });
}

void http_front::when_idle(std::function<void()> idle) { state_->busy.when_idle(std::move(idle)); }

}  // namespace server
