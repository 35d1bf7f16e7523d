#include "yardsticks/server_run.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace replay {

server_run::server_run(workload const& w, server_model& server, server_pace const& pace)
    : server_{server}, pace_{pace}, requests_(w.requests.size()), record_{w.requests.size()} {
  for (std::size_t i = 0; i != requests_.size(); ++i) {
    auto& r = requests_[i];
    r.origin = &w.requests[i];
    r.index = i;
    r.reply = std::max(1U, std::min(r.origin->reply_tokens, pace.max_tokens));
  }
}

server_outcome server_run::run(progress_listener const& progress) {
  while (auto const next = next_moment()) {
    record_.pass(*next - now_, server_.load());
    now_ = *next;
    if (now_ > std::chrono::years{100})
      throw std::invalid_argument{
          "the run takes more than 100 years of virtual time; the engine constants are too large"};
    if (!plan_.empty() && plan_.front().end <= now_) end_step();
    take_arrivals();
    plan();
    if (progress) progress(record_.ended());
  }
  if (record_.ended() != requests_.size() || server_.load().kv_tokens_used != 0)
    throw std::logic_error{"the run has ended, but not every request has, or not all of its tokens have come back"};
  server_outcome outcome{.result = std::move(record_).result(), .times = {}};
  for (auto const& r : requests_) outcome.times.push_back(r.times);
  return outcome;
}

std::optional<nanoseconds> server_run::next_moment() const noexcept {
  if (!plan_.empty()) return plan_.front().end;
  if (arrived_ != requests_.size()) return std::max(now_, requests_[arrived_].origin->arrival);
  return std::nullopt;
}

void server_run::take_arrivals() {
  for (; arrived_ != requests_.size() && requests_[arrived_].origin->arrival <= now_; ++arrived_) {
    auto& r = requests_[arrived_];
    if (r.origin->prompt_tokens == 0)
      record_.refused(kvlane::errc::invalid_request);
    else if (!server_.can_ever_run(r))
      record_.refused(kvlane::errc::never_fits);
    else
      server_.arrive(r);
  }
}

void server_run::plan() {
  while (plan_.size() < pace_.steps_ahead) {
    auto step = server_.next_step();
    if (!step) return;
    note(*step);
    auto const end = (plan_.empty() ? now_ : plan_.back().end) + step->duration;
    plan_.push_back({.step = *std::move(step), .end = end});
  }
}

void server_run::note(server_step const& step) {
  for (auto const& [who, hit_tokens] : step.admitted) {
    if (who->times.admitted) {
      record_.recomputed(who->kv_needed() - hit_tokens);
      continue;
    }
    who->times.admitted = now_ - who->origin->arrival;
    record_.admitted(*who->times.admitted);
    record_.prefilled(who->origin->prompt_tokens, hit_tokens);
  }
  for (auto n = step.preempted; n != 0; --n) record_.preempted();
}

void server_run::end_step() {
  auto const step = std::move(plan_.front().step);
  plan_.pop_front();
  for (auto const& [who, nth] : step.tokens) {
    auto const since_arrival = now_ - who->origin->arrival;
    if (nth == 1) {
      who->times.first_token = since_arrival;
      record_.first_token(since_arrival);
    }
    if (nth != who->reply) continue;
    who->times.last_token = since_arrival;
    server_.finish(*who);
    record_.completed(std::min(who->reply, who->origin->reply_tokens));
  }
}

}  // namespace replay
