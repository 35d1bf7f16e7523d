#include "service.hpp"

#include "api_reply.hpp"
#include "metrics_page.hpp"
#include "pages.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace server {

namespace {

/// The engine's prefix cache, as the queue asks it.
struct cache_view {
  engine* asked;
  std::uint64_t cost_per_token;

  [[nodiscard]] std::uint64_t epoch() const noexcept { return asked->cache_epoch(); }
  [[nodiscard]] std::uint64_t saved_cost(std::span<kvlane::token_id const> prompt) const noexcept {
    return asked->cached_tokens(prompt) * cost_per_token;
  }
};

kvlane::rejection closed() {
  kvlane::refusal_facts facts;
  facts.code = kvlane::errc::shutting_down;
  facts.cause = kvlane::refusal_cause::closed;
  return kvlane::rejection{facts};
}

kvlane::http_reply error_reply(std::string const& what, int status) {
  return to_http(api_error{.status = status, .message = what, .param = {}, .code = {}});
}

}  // namespace

service::service(service_settings settings, asio::any_io_executor executor, engine& e)
    : queue_{settings.limits},
      serving_{.settings = std::move(settings),
               .executor = std::move(executor),
               .queue = queue_,
               .engine = e,
               .counters = counters_} {
  queue_.attach(cache_view{&e, serving_.settings.cost_per_cached_token});
}

void service::handle(http_call const& call, std::shared_ptr<exchange> client) {
  struct route {
    std::string_view method;
    std::string_view path;
    void (*go)(service&, http_call const&, std::shared_ptr<exchange>);
  };
  using shared_client = std::shared_ptr<exchange>;
  static constexpr route routes[] = {
      {"POST", "/v1/chat/completions",
       [](service& s, http_call const& c, shared_client to) { s.complete(api::chat, c, std::move(to)); }},
      {"POST", "/v1/completions",
       [](service& s, http_call const& c, shared_client to) { s.complete(api::text, c, std::move(to)); }},
      {"GET", "/v1/models",
       [](service& s, http_call const&, shared_client to) { s.answer(*to, models_page(s.serving_.settings.model)); }},
      {"GET", "/health",
       [](service& s, http_call const&, shared_client to) { s.answer(*to, health_page(s.queue_.snapshot())); }},
      {"GET", "/metrics",
       [](service& s, http_call const&, shared_client to) {
         to->reply_text(metrics_page(s.queue_.snapshot(), s.counters_), metrics_content_type);
       }},
      {"GET", "/debug/queue",
       [](service& s, http_call const&, shared_client to) {
         s.answer(*to,
                  queue_page({.queue = s.queue_.snapshot(), .waiting = s.queue_.waiters(), .running = s.running()}));
       }},
  };
  auto known = false;
  for (auto const& r : routes) {
    if (r.path != call.path) continue;
    known = true;
    if (r.method != call.method) continue;
    try {
      return r.go(*this, call, client);
    } catch (std::exception const& failure) {
      // A hung-up connection would tell the client to try the very same again.
      fmt::print(stderr, "{} {}: {}\n", call.method, call.path, failure.what());
      return answer(*client, error_reply("the server failed", 500));
    }
  }
  if (known)
    answer(*client, error_reply(fmt::format("{} is not a method of {}", call.method, call.path), 405));
  else
    answer(*client,
           error_reply(fmt::format("there is no {}; see the server's README for what there is", call.path), 404));
}

void service::complete(api kind, http_call const& call, std::shared_ptr<exchange> client) {
  auto read = read_request(kind, call, serving_.settings.model);
  if (auto const* const error = std::get_if<api_error>(&read)) return answer(*client, to_http(*error));
  tasks_
      .add(std::make_unique<completion_task>(serving_, ++last_tag_, std::move(std::get<completion_request>(read)),
                                             std::move(client)))
      ->start();
}

void service::answer(exchange& client, kvlane::http_reply const& reply) {
  counters_.replied(reply.status);
  client.reply(reply);
}

std::vector<running_info> service::running() const {
  std::vector<running_info> all;
  for (auto const& task : tasks_.all())
    if (auto const info = task->info()) all.push_back(*info);
  return all;
}

void service::close() {
  queue_.close();
  for (auto const& task : tasks_.all()) task->stop(closed());
}

}  // namespace server
