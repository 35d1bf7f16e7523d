#pragma once

#include "engine_model/step_costs.hpp"
#include "replay/small_workloads.hpp"
#include "yardsticks/server_model.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace replay::testing {

/// Costs for the head: see round_settings.
inline engine_model::engine_constants round_costs() { return round_settings().engine; }

struct arrival {
  std::uint32_t prompt = 1;
  std::uint32_t reply = 1;
  std::optional<std::uint32_t> client = {};
  std::vector<std::uint64_t> blocks = {};
};

/// Requests that a test hands to a server itself, to look at each of its steps.
class arrivals {
 public:
  arrivals(std::initializer_list<arrival> all) : origins_(all.size()), requests_(all.size()) {
    std::size_t i = 0;
    for (auto const& a : all) {
      origins_[i] = {.prompt_tokens = a.prompt, .reply_tokens = a.reply, .blocks = a.blocks, .client = a.client};
      requests_[i].origin = &origins_[i];
      requests_[i].index = i;
      requests_[i].reply = a.reply;
      ++i;
    }
  }
  arrivals(arrivals const&) = delete;
  arrivals& operator=(arrivals const&) = delete;

  [[nodiscard]] served_request& operator[](std::size_t i) { return requests_[i]; }

  void arrive_at(server_model& server) { arrive_at(server, 0, requests_.size()); }
  void arrive_at(server_model& server, std::size_t first, std::size_t end) {
    for (auto i = first; i != end; ++i) server.arrive(requests_[i]);
  }

 private:
  std::vector<trace_request> origins_;
  std::vector<served_request> requests_;
};

/// Who is admitted by a step.
inline std::vector<std::size_t> admitted_in(std::optional<server_step> const& s) {
  std::vector<std::size_t> who;
  if (s)
    for (auto const& a : s->admitted) who.push_back(a.who->index);
  return who;
}

/// Who gets which token of its reply.
inline std::vector<std::pair<int, int>> tokens_in(std::optional<server_step> const& s) {
  std::vector<std::pair<int, int>> tokens;
  if (s)
    for (auto const& t : s->tokens) tokens.emplace_back(static_cast<int>(t.who->index), static_cast<int>(t.nth));
  return tokens;
}

/// Ends a step: whoever has got its last token leaves.
inline void end(std::optional<server_step> const& s, server_model& server) {
  if (!s) return;
  for (auto const& t : s->tokens)
    if (t.nth == t.who->reply) server.finish(*t.who);
}

}  // namespace replay::testing
