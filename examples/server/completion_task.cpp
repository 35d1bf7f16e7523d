#include "completion_task.hpp"

#include <kvlane/asio.hpp>
#include <kvlane/token_limit.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace server {

namespace {

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

completion_task::completion_task(serving& with, std::uint64_t tag, completion_request request,
                                 std::shared_ptr<exchange> client)
    : with_{with},
      tag_{tag},
      request_{std::move(request)},
      client_{std::move(client)},
      writer_{{.kind = request_.kind,
               .number = tag,
               .model = with.settings.model,
               .created = seconds_since_1970(),
               .with_usage = request_.include_usage}},
      strand_{with.executor},
      arrived_{std::chrono::steady_clock::now()},
      tokens_{std::move(request_.prompt)} {
  usage_.prompt_tokens = tokens_.size();
}

void completion_task::start() {
  client_->when_gone([weak = weak_from_this()] {
    if (auto const self = weak.lock())
      asio::post(self->strand_, [self] {
        self->gone_ = true;
        self->interrupt();
      });
  });
  asio::co_spawn(strand_, run(),
                 asio::bind_cancellation_slot(cancel_.slot(), [self = shared_from_this()](std::exception_ptr failure) {
                   if (failure)
                     self->refuse(
                         to_http(api_error{.status = 500, .message = "the server failed", .param = {}, .code = {}}));
                   self->publish(nullptr);
                 }));
}

void completion_task::stop(kvlane::rejection const& why) {
  asio::post(strand_, [self = shared_from_this(), why] {
    self->stopped_with_ = why;
    self->interrupt();
  });
}

/// Whatever the coroutine waits for ends now. What it begins to wait for later does not: it asks given_up() before.
void completion_task::interrupt() { cancel_.emit(asio::cancellation_type::terminal); }

asio::awaitable<void> completion_task::run() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  if (given_up()) {
    give_up();
    co_return;
  }

  auto const& s = with_.settings;
  auto const room = kvlane::token_limit::from_request(request_.max_tokens, s.default_max_tokens)
                        .resolve(tokens_.size(), s.context_tokens);
  if (!room) {
    fail_with(room.error());
    co_return;
  }
  max_tokens_ = *room;
  auto const asked = request_now();
  auto slot = co_await kvlane::async_admit(with_.queue, asked, asio::use_awaitable);
  if (slot)
    co_await serve(std::move(*slot));
  else if (given_up())
    give_up();
  else
    fail_with(slot.error());
}

/// What it asks of the queue: for the rest of its reply, with what there is of it as part of the prompt.
kvlane::request completion_task::request_now() const {
  kvlane::request r;
  r.prompt = tokens_;
  r.max_tokens = max_tokens_ - static_cast<std::uint32_t>(usage_.reply_tokens);
  r.priority = request_.priority;
  r.saved_cost = with_.engine.cached_tokens(tokens_) * with_.settings.cost_per_cached_token;
  r.tag = tag_;
  r.flow = request_.flow;
  r.max_wait = request_.max_wait;
  return r;
}

asio::awaitable<void> completion_task::serve(kvlane::lease slot) {
  waited_ = slot.waited();
  overtaken_ = slot.overtaken();
  for (auto first = true;; first = false) {
    if (given_up()) break;
    if (first) begin_reply();
    publish(&slot);
    auto end = run_end::done;
    {
      generation g;
      g.lane = slot.lane();
      g.prompt = tokens_;
      g.reply_so_far = static_cast<std::uint32_t>(usage_.reply_tokens);
      g.max_tokens = max_tokens_ - g.reply_so_far;
      g.room = slot.tokens();
      g.ends_at_max_tokens = request_.ignore_eos;
      engine_run running{with_.engine, std::move(g), std::make_shared<task_mailbox>(strand_)};
      end = co_await follow(running, slot);
    }
    if (end == run_end::done) co_return;
    if (end == run_end::out_of_room && !co_await come_back(slot)) co_return;
  }
  slot.release();
  give_up();
}

asio::awaitable<completion_task::run_end> completion_task::follow(engine_run& running, kvlane::lease& slot) {
  for (;;) {
    auto const m = co_await running.events().next(with_.settings.keep_alive);
    if (given_up()) co_return run_end::given_up;
    if (!m) {
      if (streaming_) client_->send(comment_event("keep-alive"));
      continue;
    }
    auto const& event = std::get<engine_event>(*m);
    if (auto const* const p = std::get_if<prefilled>(&event)) {
      if (preempted_ == 0) usage_.cached_tokens = p->cached_tokens;
      with_.counters.prompt_tokens += tokens_.size();
      with_.counters.cached_prompt_tokens += p->cached_tokens;
    } else if (auto const* const token = std::get_if<token_made>(&event)) {
      take(*token);
      publish(&slot);
    } else if (auto const* const end = std::get_if<ended>(&event)) {
      running.over();
      end_reply(*end, slot);
      co_return run_end::done;
    } else if (grow(slot)) {
      running.extend(slot.tokens());
    } else {
      co_return run_end::out_of_room;
    }
  }
}

/// More KV tokens for the rest of the reply.
bool completion_task::grow(kvlane::lease& slot) {
  auto const rest = max_tokens_ - usage_.reply_tokens;
  return slot.try_grow_to(tokens_.size() + std::min<std::uint64_t>(rest, with_.settings.growth_step));
}

/// Gives lane and tokens back, and goes on when there is more room; the engine has left the lane. False when it cannot.
asio::awaitable<bool> completion_task::come_back(kvlane::lease& slot) {
  ++preempted_;
  publish(nullptr);
  if (streaming_) client_->send(comment_event("preempted: waits for KV tokens"));
  auto const box = std::make_shared<task_mailbox>(strand_);
  kvlane::ticket place;
  auto asked = request_now();
  asked.max_wait.reset();
  auto outcome =
      with_.queue.readmit(std::move(slot), asked, place, [box](kvlane::admission a) { box->post(std::move(a)); });
  while (!outcome) {
    auto m = co_await box->next(with_.settings.keep_alive);
    if (m) {
      outcome = std::get<kvlane::admission>(std::move(*m));
    } else if (given_up()) {
      place.cancel();
      give_up();
      co_return false;
    } else if (streaming_) {
      client_->send(comment_event("keep-alive"));
    }
  }
  if (!*outcome) {
    slot.release();
    fail_with(outcome->error());
    co_return false;
  }
  slot = std::move(**outcome);
  co_return true;
}

void completion_task::take(token_made const& token) {
  tokens_.push_back(token.id);
  ++usage_.reply_tokens;
  ++with_.counters.reply_tokens;
  if (streaming_)
    client_->send(writer_.text_event(token.text));
  else
    text_ += token.text;
}

void completion_task::begin_reply() {
  if (!request_.stream) return;
  streaming_ = true;
  client_->begin_stream();
  if (auto first = writer_.first_event(); !first.empty()) client_->send(std::move(first));
}

void completion_task::end_reply(ended const& end, kvlane::lease& slot) {
  // Before the reply: whoever has read it finds the lane free.
  publish(nullptr);
  slot.complete(end.sample);
  if (streaming_) {
    client_->send(writer_.last_event(end.why) + writer_.usage_event(usage_) + std::string{done_event});
    client_->end_stream();
  } else {
    client_->reply(ok(writer_.whole(text_, end.why, usage_)));
  }
  with_.counters.replied(200);
  log(end.why == finish_reason::stop ? "stop" : "length");
}

/// Only a stop has something to tell: a client that has gone hears nothing.
void completion_task::give_up() {
  if (!gone_) return fail_with(*stopped_with_);
  with_.counters.replied(499);
  log("the client has left");
}

/// Ends the exchange with an error: a reply of its own, or the last event of a stream that has begun.
void completion_task::refuse(kvlane::http_reply const& reply) {
  if (streaming_) {
    client_->send(error_event(reply.body));
    client_->end_stream();
    ++with_.counters.streams_broken;
  } else {
    client_->reply(reply);
  }
  with_.counters.replied(reply.status);
  log(fmt::format("{} {}", reply.status, reply.body));
}

void completion_task::publish(kvlane::lease const* slot) {
  std::optional<running_info> now;
  if (slot != nullptr)
    now = running_info{.tag = tag_,
                       .flow = request_.flow,
                       .priority = request_.priority,
                       .lane = slot->lane(),
                       .kv_tokens = slot->tokens(),
                       .prompt_tokens = usage_.prompt_tokens,
                       .reply_tokens = usage_.reply_tokens,
                       .preempted = preempted_,
                       .waited = waited_,
                       .age = {}};
  std::lock_guard const lock{shown_mutex_};
  shown_ = now;
}

std::optional<running_info> completion_task::info() const {
  std::lock_guard const lock{shown_mutex_};
  auto now = shown_;
  if (now) now->age = std::chrono::steady_clock::now() - arrived_;
  return now;
}

void completion_task::log(std::string_view how) const {
  if (with_.settings.quiet) return;
  kvlane::fractional_ms const took = std::chrono::steady_clock::now() - arrived_;
  fmt::print(stderr, "{} prompt={} cached={} reply={} waited={:.0f}ms overtaken={} preempted={} took={:.0f}ms: {}\n",
             writer_.id(), usage_.prompt_tokens, usage_.cached_tokens, usage_.reply_tokens, waited_.count(), overtaken_,
             preempted_, took.count(), how);
}

}  // namespace server
