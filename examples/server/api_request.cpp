#include "api_request.hpp"

#include "chat_template.hpp"
#include "hash.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <span>

namespace server {

namespace {

using nlohmann::json;

/// Leaves the reader; never leaves this file.
struct refused {
  api_error error;
};

[[noreturn]] void refuse(std::string param, std::string const& what) {
  throw refused{{.status = 400, .message = fmt::format("{} {}", param, what), .param = param, .code = {}}};
}

/// A value as an error names it: small, whatever a client sends.
std::string shown(json const& value) {
  return value.is_number() || value.is_boolean() ? value.dump() : value.type_name();
}

/// "an array", "a string"
std::string kind_of(json const& value) {
  std::string_view const kind = value.type_name();
  return fmt::format("{} {}", kind.front() == 'a' || kind.front() == 'o' ? "an" : "a", kind);
}

std::string shortened(std::string text) {
  constexpr std::size_t most = 100;
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

/// The field, unless it is absent or null.
json const* find(json const& object, char const* name) {
  auto const at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

bool read_flag(json const& object, char const* name, std::string const& path) {
  auto const* const field = find(object, name);
  if (field == nullptr) return false;
  if (!field->is_boolean()) refuse(path, fmt::format("is {}; true or false is needed", kind_of(*field)));
  return field->get<bool>();
}

/// A whole number from `least` up; what does not fit into 32 bits counts as the highest number that does.
std::optional<std::uint32_t> read_count(json const& object, char const* name, std::uint32_t least) {
  auto const* const field = find(object, name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_number_integer())
    refuse(name, fmt::format("is {}; a whole number is needed",
                             field->is_number() ? "a number with a fraction" : kind_of(*field)));
  if (!field->is_number_unsigned() || field->get<std::uint64_t>() < least)
    refuse(name, fmt::format("is {}; at least {} is needed", shown(*field), least));
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(field->get<std::uint64_t>(), most));
}

std::string read_text(json const& value, std::string const& path) {
  if (!value.is_string()) refuse(path, fmt::format("is {}; a string is needed", kind_of(value)));
  return value.get<std::string>();
}

json read_body(std::string const& body) {
  try {
    auto parsed = json::parse(body);
    if (parsed.is_object()) return parsed;
  } catch (json::parse_error const& error) {
    throw refused{{.status = 400,
                   .message = fmt::format("the body is not JSON: look at byte {}", error.byte),
                   .param = {},
                   .code = {}}};
  } catch (json::out_of_range const&) {  // a number; other JSON can be anything
    throw refused{{.status = 400, .message = "the body has a number that is too large", .param = {}, .code = {}}};
  }
  throw refused{{.status = 400, .message = "the body is JSON, but not an object", .param = {}, .code = {}}};
}

void check_model(json const& body, std::string_view model) {
  auto const* const field = find(body, "model");
  if (field == nullptr) refuse("model", fmt::format("is missing; this server has '{}'", model));
  if (auto const asked = read_text(*field, "model"); asked != model)
    throw refused{
        {.status = 404,
         .message = fmt::format("the model '{}' does not exist; this server has '{}'", shortened(asked), model),
         .param = "model",
         .code = "model_not_found"}};
}

/// Refuses what this server does not do and what a client would miss in the reply.
void check_unsupported(json const& body) {
  for (auto const* const name : {"stop", "tools", "functions", "logprobs", "echo", "suffix", "response_format"}) {
    auto const* const field = find(body, name);
    if (field == nullptr || *field == false || (field->is_array() && field->empty())) continue;
    if (field->is_object() && field->value("type", json{}) == "text") continue;
    refuse(name, "is not supported by this server; leave it out");
  }
  for (auto const* const name : {"n", "best_of"})
    if (auto const* const field = find(body, name); field != nullptr && *field != 1)
      refuse(name, fmt::format("is {}; this server makes 1 choice", shown(*field)));
}

role read_role(json const& message, std::string const& path) {
  auto const* const field = find(message, "role");
  if (field == nullptr) refuse(path + ".role", "is missing");
  auto const name = read_text(*field, path + ".role");
  if (name == "system" || name == "developer") return role::system;
  if (name == "user") return role::user;
  if (name == "assistant") return role::assistant;
  if (name == "tool") return role::tool;
  refuse(path + ".role", fmt::format("is '{}'; system, developer, user, assistant or tool is needed", shortened(name)));
}

/// A string, or a list of parts that are text.
std::string read_content(json const& message, std::string const& path, role from) {
  auto const* const field = find(message, "content");
  if (field == nullptr) {
    if (from == role::assistant) return {};  // may have called tools instead
    refuse(path + ".content", "is missing");
  }
  if (field->is_string()) return field->get<std::string>();
  if (!field->is_array())
    refuse(path + ".content", fmt::format("is {}; a string or a list of text parts is needed", kind_of(*field)));
  std::string all;
  for (auto const& part : *field) {
    if (!part.is_object() || part.value("type", json{}) != "text" || !part.contains("text"))
      refuse(path + ".content", "has a part that is not text; this server knows text only");
    all += read_text(part.at("text"), path + ".content");
  }
  return all;
}

token_ids read_messages(json const& body) {
  auto const* const field = find(body, "messages");
  if (field == nullptr) refuse("messages", "is missing");
  if (!field->is_array()) refuse("messages", fmt::format("is {}; a list is needed", kind_of(*field)));
  if (field->empty()) refuse("messages", "is empty; at least 1 message is needed");
  std::vector<chat_message> messages;
  for (auto const& m : *field) {
    auto const path = fmt::format("messages[{}]", messages.size());
    if (!m.is_object()) refuse(path, fmt::format("is {}; an object is needed", kind_of(m)));
    auto const from = read_role(m, path);
    messages.push_back({.from = from, .content = read_content(m, path, from)});
  }
  return prompt_of(messages);
}

token_ids read_token_list(json const& list) {
  token_ids ids;
  ids.reserve(list.size());
  for (auto const& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= token_id_end)
      refuse("prompt", fmt::format("has the token {}; ids from 0 to {} are needed", shown(id), token_id_end - 1));
    ids.push_back(id.get<kvlane::token_id>());
  }
  return ids;
}

/// A string, a list of one string, or a list of token ids.
token_ids read_prompt(json const& body) {
  auto const* const field = find(body, "prompt");
  if (field == nullptr) refuse("prompt", "is missing");
  token_ids ids;
  if (field->is_string())
    ids = tokenize(field->get<std::string>());
  else if (field->is_array() && !field->empty() && field->front().is_number())
    ids = read_token_list(*field);
  else if (field->is_array() && field->size() == 1 && field->front().is_string())
    ids = tokenize(field->front().get<std::string>());
  else
    refuse("prompt", "is neither a string, a list of one string nor a list of token ids");
  if (ids.empty()) refuse("prompt", "is empty");
  return ids;
}

void read_stream_options(json const& body, completion_request& r) {
  r.stream = read_flag(body, "stream", "stream");
  auto const* const options = find(body, "stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) refuse("stream_options", fmt::format("is {}; an object is needed", kind_of(*options)));
  if (!r.stream) refuse("stream_options", "is given, but stream is not true");
  r.include_usage = read_flag(*options, "include_usage", "stream_options.include_usage");
}

/// How long to wait for a client that gives up after `text` seconds: a little less, so that it still hears the refusal. Its
/// clock has begun before ours. Whole seconds; the client cuts fractions off, so 0 stands for less than 1.
std::optional<kvlane::duration> read_timeout(std::string const& text) {
  constexpr std::uint32_t most = 12 * 3600;
  constexpr auto for_the_way = std::chrono::milliseconds{200};
  std::uint32_t seconds = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds{std::clamp(seconds, std::uint32_t{1}, most)} - for_the_way;
}

std::uint64_t read_flow(json const& body, http_call const& call) {
  if (auto const* const user = find(body, "user")) return hash_of(read_text(*user, "user"));
  return call.authorization.empty() ? 0 : hash_of(call.authorization);
}

completion_request read(api kind, http_call const& call, std::string_view model) {
  auto const body = read_body(call.body);
  completion_request r;
  r.kind = kind;
  check_model(body, model);
  r.prompt = kind == api::chat ? read_messages(body) : read_prompt(body);
  r.max_tokens = read_count(body, "max_tokens", 1);
  if (kind == api::chat)
    if (auto const newer = read_count(body, "max_completion_tokens", 1)) r.max_tokens = newer;
  read_stream_options(body, r);
  check_unsupported(body);
  r.ignore_eos = read_flag(body, "ignore_eos", "ignore_eos");
  r.priority = read_count(body, "priority", 0).value_or(0);
  r.flow = read_flow(body, call);
  r.max_wait = read_timeout(call.client_timeout);
  return r;
}

}  // namespace

std::variant<completion_request, api_error> read_request(api kind, http_call const& call, std::string_view model) {
  try {
    return read(kind, call, model);
  } catch (refused const& why) {
    return why.error;
  }
}

}  // namespace server
