#include "api_reply.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace server {

namespace {

using json = nlohmann::ordered_json;

/// Texts of clients may hold any bytes; no reply gets lost over them.
std::string dump(json const& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string event_of(json const& value) { return "data: " + dump(value) + "\n\n"; }

char const* name_of(finish_reason why) { return why == finish_reason::stop ? "stop" : "length"; }

json json_of(token_usage const& u) {
  return {{"prompt_tokens", u.prompt_tokens},
          {"completion_tokens", u.reply_tokens},
          {"total_tokens", u.prompt_tokens + u.reply_tokens},
          {"prompt_tokens_details", {{"cached_tokens", u.cached_tokens}}}};
}

}  // namespace

reply_writer::reply_writer(heading h)
    : heading_{std::move(h)},
      id_{fmt::format("{}-{}", heading_.kind == api::chat ? "chatcmpl" : "cmpl", heading_.number)} {}

std::string reply_writer::whole(std::string_view text, finish_reason why, token_usage const& usage) const {
  json choice{{"index", 0}};
  if (heading_.kind == api::chat)
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  else
    choice["text"] = text;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = name_of(why);
  return dump({{"id", id_},
               {"object", heading_.kind == api::chat ? "chat.completion" : "text_completion"},
               {"created", heading_.created},
               {"model", heading_.model},
               {"choices", json::array({choice})},
               {"usage", json_of(usage)}});
}

std::string reply_writer::event_with(std::string_view text, std::optional<finish_reason> why) const {
  json choice{{"index", 0}};
  if (heading_.kind == api::text)
    choice["text"] = text;
  else if (why)
    choice["delta"] = json::object();
  else
    choice["delta"] = {{"content", text}};
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = why ? json(name_of(*why)) : json(nullptr);
  json chunk{{"id", id_},
             {"object", heading_.kind == api::chat ? "chat.completion.chunk" : "text_completion"},
             {"created", heading_.created},
             {"model", heading_.model},
             {"choices", json::array({choice})}};
  if (heading_.with_usage) chunk["usage"] = nullptr;
  return event_of(chunk);
}

std::string reply_writer::first_event() const {
  if (heading_.kind == api::text) return {};
  json const choice{{"index", 0},
                    {"delta", {{"role", "assistant"}, {"content", ""}}},
                    {"logprobs", nullptr},
                    {"finish_reason", nullptr}};
  json chunk{{"id", id_},
             {"object", "chat.completion.chunk"},
             {"created", heading_.created},
             {"model", heading_.model},
             {"choices", json::array({choice})}};
  if (heading_.with_usage) chunk["usage"] = nullptr;
  return event_of(chunk);
}

std::string reply_writer::text_event(std::string_view text) const { return event_with(text, std::nullopt); }

std::string reply_writer::last_event(finish_reason why) const { return event_with("", why); }

std::string reply_writer::usage_event(token_usage const& usage) const {
  if (!heading_.with_usage) return {};
  return event_of({{"id", id_},
                   {"object", heading_.kind == api::chat ? "chat.completion.chunk" : "text_completion"},
                   {"created", heading_.created},
                   {"model", heading_.model},
                   {"choices", json::array()},
                   {"usage", json_of(usage)}});
}

std::string comment_event(std::string_view text) { return fmt::format(": {}\n\n", text); }

std::string error_event(std::string_view body) { return fmt::format("data: {}\n\n", body); }

kvlane::http_reply to_http(api_error const& error) {
  auto const or_null = [](std::string const& text) { return text.empty() ? json(nullptr) : json(text); };
  json const body{{"error",
                   {{"message", error.message},
                    {"type", error.status < 500 ? "invalid_request_error" : "server_error"},
                    {"param", or_null(error.param)},
                    {"code", or_null(error.code)}}}};
  kvlane::http_reply reply;
  reply.status = error.status;
  reply.body = dump(body);
  return reply;
}

kvlane::http_reply ok(std::string body) {
  kvlane::http_reply reply;
  reply.status = 200;
  reply.body = std::move(body);
  return reply;
}

}  // namespace server
