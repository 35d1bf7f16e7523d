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

/// A choice with one member of its own, `what`.
json choice_of(json const& what, json const& why) {
  json choice{{"index", 0}};
  choice.update(what);
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = why;
  return choice;
}

json chunk_of(reply_writer::heading const& h, std::string const& id, json const& choice) {
  json chunk{{"id", id},
             {"object", h.kind == api::chat ? "chat.completion.chunk" : "text_completion"},
             {"created", h.created},
             {"model", h.model},
             {"choices", json::array({choice})}};
  if (h.with_usage) chunk["usage"] = nullptr;
  return chunk;
}

}  // namespace

reply_writer::reply_writer(heading h)
    : heading_{std::move(h)},
      id_{fmt::format("{}-{}", heading_.kind == api::chat ? "chatcmpl" : "cmpl", heading_.number)} {}

std::string reply_writer::whole(std::string_view text, finish_reason why, token_usage const& usage) const {
  auto const what = heading_.kind == api::chat
                        ? json{{"message", {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}}}}
                        : json{{"text", text}};
  return dump({{"id", id_},
               {"object", heading_.kind == api::chat ? "chat.completion" : "text_completion"},
               {"created", heading_.created},
               {"model", heading_.model},
               {"choices", json::array({choice_of(what, name_of(why))})},
               {"usage", json_of(usage)}});
}

std::string reply_writer::first_event() const {
  if (heading_.kind == api::text) return {};
  return event_of(chunk_of(heading_, id_, choice_of({{"delta", {{"role", "assistant"}, {"content", ""}}}}, nullptr)));
}

std::string reply_writer::text_event(std::string_view text) const {
  auto const what = heading_.kind == api::chat ? json{{"delta", {{"content", text}}}} : json{{"text", text}};
  return event_of(chunk_of(heading_, id_, choice_of(what, nullptr)));
}

std::string reply_writer::last_event(finish_reason why) const {
  auto const what = heading_.kind == api::chat ? json{{"delta", json::object()}} : json{{"text", ""}};
  return event_of(chunk_of(heading_, id_, choice_of(what, name_of(why))));
}

std::string reply_writer::usage_event(token_usage const& usage) const {
  if (!heading_.with_usage) return {};
  auto chunk = chunk_of(heading_, id_, nullptr);
  chunk["choices"] = json::array();
  chunk["usage"] = json_of(usage);
  return event_of(chunk);
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
