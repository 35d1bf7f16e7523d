#include "pages.hpp"

#include "api_reply.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace server {

namespace {

using json = nlohmann::ordered_json;

char const* name_of(kvlane::blocked_on b) {
  switch (b) {
    case kvlane::blocked_on::nothing: return "nothing";
    case kvlane::blocked_on::hold: return "hold";
    case kvlane::blocked_on::lane: return "lane";
    case kvlane::blocked_on::tokens: return "tokens";
    case kvlane::blocked_on::reservation: return "reservation";
  }
  return "nothing";
}

double milliseconds(kvlane::fractional_ms t) { return std::round(t.count() * 10) / 10; }

json json_of(kvlane::waiter_info const& w) {
  return {{"place", w.place},
          {"tag", w.tag},
          {"flow", w.flow},
          {"priority", w.priority},
          {"demand_tokens", w.demand},
          {"waited_ms", milliseconds(w.waited)},
          {"overtaken", w.overtaken},
          {"waits_for", name_of(w.blocked)}};
}

json json_of(running_info const& r) {
  return {{"tag", r.tag},
          {"flow", r.flow},
          {"priority", r.priority},
          {"lane", r.lane},
          {"kv_tokens", r.kv_tokens},
          {"prompt_tokens", r.prompt_tokens},
          {"reply_tokens", r.reply_tokens},
          {"preempted", r.preempted},
          {"waited_ms", milliseconds(r.waited)},
          {"age_ms", milliseconds(r.age)}};
}

}  // namespace

kvlane::http_reply queue_page(queue_view const& view) {
  auto const& q = view.queue;
  json page{{"lanes", q.lanes},
            {"lanes_busy", q.lanes_busy},
            {"kv_capacity", q.kv_capacity},
            {"kv_tokens_used", q.kv_tokens_used},
            {"waiting", q.waiting},
            {"max_waiting", q.max_waiting},
            {"waiting_tokens", q.waiting_tokens},
            {"turn", q.turn},
            {"held", q.held},
            {"draining", q.draining},
            {"closed", q.closed},
            {"line", json::array()},
            {"running", json::array()}};
  for (auto const& w : view.waiting) page["line"].push_back(json_of(w));
  for (auto const& r : view.running) page["running"].push_back(json_of(r));
  return ok(page.dump(2) + "\n");
}

kvlane::http_reply models_page(std::string const& model) {
  json const entry{{"id", model}, {"object", "model"}, {"created", 0}, {"owned_by", "kvlane"}};
  return ok(
      json{{"object", "list"}, {"data", json::array({entry})}}.dump(-1, ' ', false, json::error_handler_t::replace));
}

kvlane::http_reply health_page(kvlane::queue_snapshot const& queue) {
  auto const* const word = queue.closed ? "closed" : queue.draining ? "draining" : "ok";
  auto page = ok(json{{"status", word}}.dump());
  if (queue.closed || queue.draining) page.status = 503;
  return page;
}

}  // namespace server
