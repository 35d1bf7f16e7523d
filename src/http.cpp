#include <kvlane/http.hpp>

#include <nlohmann/json.hpp>

namespace kvlane {

http_table::http_table() {
  auto& table = *this;
  http_rule const come_back{
      .status = 429, .type = "rate_limit_error", .code = "rate_limit_exceeded", .retry_after = true};
  http_rule const unavailable{.status = 503, .type = "server_error", .code = "service_unavailable"};
  table[errc::invalid_request] = {.status = 400, .type = "invalid_request_error", .code = "invalid_request_error"};
  table[errc::never_fits] = {.status = 400, .type = "invalid_request_error", .code = "context_length_exceeded"};
  table[errc::would_wait] = come_back;
  table[errc::queue_full] = come_back;
  table[errc::would_time_out] = come_back;
  table[errc::timed_out] = come_back;
  table[errc::cancelled] = {.status = 499, .type = "invalid_request_error", .code = "request_cancelled"};
  table[errc::shutting_down] = unavailable;
  table[errc::no_longer_fits] = unavailable;
}

http_reply to_http(rejection const& why) {
  static http_table const standard;
  return to_http(why, standard);
}

http_reply to_http(rejection const& why, http_table const& table) {
  auto const& rule = table[why.code()];
  http_reply reply{.status = rule.status, .body = {}};
  if (rule.retry_after) {
    reply.retry_after = why.retry_after();
    auto const& exact = why.facts().retry_after;
    if (exact && *exact > fractional_ms{std::chrono::seconds{60}}) reply.should_retry = false;
  }
  nlohmann::ordered_json const body{
      {"error", {{"message", why.message()}, {"type", rule.type}, {"param", nullptr}, {"code", rule.code}}}};
  // Words of a replaced table may be anything; a reply that names a refusal is not lost to a wrong byte in them.
  reply.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return reply;
}

}  // namespace kvlane
