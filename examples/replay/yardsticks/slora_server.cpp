#include "yardsticks/slora_server.hpp"

namespace replay {

namespace {

/// As S-LoRA counts: somebody who is about to run holds its prompt and one token.
kv_course course_of_newcomer(served_request const& r) noexcept {
  return {.held = std::uint64_t{r.origin->prompt_tokens} + 1, .left = r.reply - 1};
}
kv_course course_of_running(served_request const& r) noexcept {
  auto const left = r.reply - r.generated;
  return {.held = r.kv_needed(), .left = left == 0 ? 0 : left - 1};
}

}  // namespace

bool slora_server::can_ever_run(served_request const& r) const {
  auto alone = course_of_newcomer(r);
  auto const adapter = r.origin->client ? settings_.tokens_per_client : 0;
  return projected_peak({&alone, 1}) + adapter < settings_.kv_tokens &&
         r.origin->prompt_tokens <= settings_.batch_prompt_tokens;
}

std::optional<server_step> slora_server::next_step() {
  if (!batch_.empty() && decodes_ < settings_.decodes_between) {
    ++decodes_;
    return decode();
  }
  auto const newcomers = take_mini_batch();
  if (!newcomers.empty()) {
    decodes_ = 0;
    return prefill(newcomers);
  }
  if (batch_.empty()) return std::nullopt;
  return decode();
}

/// Takes from the front of the line whoever may run.
std::vector<served_request*> slora_server::take_mini_batch() {
  std::vector<served_request*> taken;
  std::vector<kv_course> courses;
  std::set<std::uint32_t> clients;
  for (auto const* const r : batch_) {
    courses.push_back(course_of_running(*r));
    if (r->origin->client) clients.insert(*r->origin->client);
  }
  std::uint64_t prompt_tokens = 0;
  while (!line_.empty() && courses.size() < settings_.running) {
    auto* const next = line_.front();
    courses.push_back(course_of_newcomer(*next));
    if (next->origin->client) clients.insert(*next->origin->client);
    prompt_tokens += next->origin->prompt_tokens;
    auto const adapters = clients.size() * settings_.tokens_per_client;
    if (projected_peak(courses) + adapters >= settings_.kv_tokens || prompt_tokens > settings_.batch_prompt_tokens)
      break;
    line_.pop_front();
    taken.push_back(next);
  }
  return taken;
}

server_step slora_server::prefill(std::vector<served_request*> const& mini_batch) {
  server_step step;
  std::uint64_t prompt_tokens = 0;
  for (auto* const r : mini_batch) {
    prompt_tokens += r->origin->prompt_tokens;
    step.admitted.push_back({.who = r, .hit_tokens = 0});
    step.tokens.push_back({.who = r, .nth = ++r->generated});
    batch_.push_back(r);
  }
  step.duration = engine_model::prefill_time(settings_.costs, prompt_tokens);
  return step;
}

server_step slora_server::decode() {
  server_step step;
  step.duration = engine_model::decode_time(settings_.costs, batch_.size(), kv_tokens());
  for (auto* const r : batch_) step.tokens.push_back({.who = r, .nth = ++r->generated});
  return step;
}

std::uint64_t slora_server::kv_tokens() const noexcept {
  std::uint64_t tokens = 0;
  for (auto const* const r : batch_) tokens += r->kv_needed();
  return tokens;
}

kvlane::queue_snapshot slora_server::load() const {
  kvlane::queue_snapshot now;
  now.lanes = settings_.running;
  now.lanes_busy = static_cast<std::uint32_t>(batch_.size());
  now.kv_capacity = settings_.kv_tokens;
  now.kv_tokens_used = kv_tokens();
  now.waiting = line_.size();
  return now;
}

}  // namespace replay
