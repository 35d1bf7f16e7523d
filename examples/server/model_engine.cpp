#include "model_engine.hpp"

#include "hash.hpp"
#include "model_reply.hpp"

#include <algorithm>

namespace server {

namespace {

constexpr std::uint32_t block_tokens = 16;

using clock = std::chrono::steady_clock;

/// The id of the block that follows the prefix with id `before`.
std::uint64_t next_block(std::uint64_t before, std::span<kvlane::token_id const> block) noexcept {
  for (auto const id : block) before = extended(before, static_cast<std::uint64_t>(id));
  return before;
}

/// Ids of the whole blocks of a prompt; each stands for the prefix up to its end.
std::vector<std::uint64_t> blocks_of(std::span<kvlane::token_id const> prompt) {
  std::vector<std::uint64_t> blocks;
  blocks.reserve(prompt.size() / block_tokens);
  std::uint64_t id = 0;
  for (; prompt.size() >= block_tokens; prompt = prompt.subspan(block_tokens))
    blocks.push_back(id = next_block(id, prompt.first(block_tokens)));
  return blocks;
}

}  // namespace

struct model_engine::run {
  run(generation todo, event_sink to)
      : g{std::move(todo)}, sink{std::move(to)}, reply{std::span{g.prompt}.first(g.prompt.size() - g.reply_so_far)} {}

  [[nodiscard]] std::uint64_t held() const noexcept { return g.prompt.size(); }
  [[nodiscard]] bool has_room() const noexcept { return held() < g.room; }
  [[nodiscard]] bool at_its_end() const noexcept {
    return made == g.max_tokens || (!g.ends_at_max_tokens && g.reply_so_far >= reply.length());
  }

  generation g;  // its prompt grows with the reply
  event_sink sink;
  model_reply reply;
  std::uint32_t made = 0;
  std::uint64_t computed = 0;  // prompt tokens that were not cached
  bool in_step = false;        // takes part in the step that goes on
  bool is_prefilled = false;
  bool asked_for_room = false;
  clock::time_point started = clock::now();
  clock::time_point first_token;
};

model_engine::model_engine(asio::any_io_executor executor, model_settings const& s)
    : settings_{s},
      cache_{{.capacity_tokens = s.cache_tokens, .block_tokens = block_tokens}},
      lanes_(s.lanes),
      timer_{asio::make_strand(std::move(executor))} {
  engine_model::validate(s.costs);
}

model_engine::~model_engine() = default;

void model_engine::start(generation g, event_sink sink) {
  auto const lane = g.lane;
  auto r = std::make_unique<run>(std::move(g), std::move(sink));
  std::lock_guard const lock{mutex_};
  lanes_.at(lane) = std::move(r);
  if (stepping_) return;
  // Not now: it might have to tell something, and its caller does not expect to be called back yet.
  stepping_ = true;
  end_step_in({});
}

void model_engine::extend(kvlane::lane_id lane, std::uint64_t room) {
  news out;
  {
    std::lock_guard const lock{mutex_};
    auto const& r = lanes_.at(lane);
    if (r == nullptr) return;
    r->g.room = std::max(r->g.room, room);
    r->asked_for_room = false;
    if (!stepping_) begin_step(out);
  }
  tell(out);
}

void model_engine::abort(kvlane::lane_id lane) noexcept {
  std::unique_ptr<run> aborted;  // its sink dies without the mutex
  std::lock_guard const lock{mutex_};
  aborted.swap(lanes_[lane]);
}

std::uint64_t model_engine::cache_epoch() const noexcept { return epoch_.load(); }

std::uint64_t model_engine::cached_tokens(std::span<kvlane::token_id const> prompt) const noexcept {
  std::lock_guard const lock{mutex_};
  return cached_tokens_locked(prompt);
}

std::uint64_t model_engine::cached_tokens_locked(std::span<kvlane::token_id const> prompt) const noexcept {
  std::uint64_t id = 0;
  std::uint64_t cached = 0;
  for (; prompt.size() >= block_tokens; prompt = prompt.subspan(block_tokens)) {
    id = next_block(id, prompt.first(block_tokens));
    if (!cache_.contains(id)) break;
    cached += block_tokens;
  }
  return cached;
}

/// Sets the timer for a step of all that can go on, or lets it rest. Needs the mutex.
void model_engine::begin_step(news& out) {
  std::chrono::nanoseconds takes{};
  std::uint64_t kv_tokens = 0;
  std::uint64_t batch = 0;
  for (auto const& r : lanes_) {
    if (r == nullptr) continue;
    r->in_step = r->has_room() || r->g.max_tokens == 0;
    if (!r->in_step) {
      if (!std::exchange(r->asked_for_room, true)) out.emplace_back(r->sink, room_needed{});
      continue;
    }
    if (!r->is_prefilled) {
      // At least one token of a prompt is computed.
      r->computed = r->held() - std::min(cached_tokens_locked(r->g.prompt), r->held() - 1);
      takes += engine_model::prefill_time(settings_.costs, r->computed);
    }
    ++batch;
    kv_tokens += r->held();
  }
  stepping_ = batch != 0;
  if (!stepping_) return;
  takes += engine_model::decode_time(settings_.costs, batch, kv_tokens);
  std::chrono::duration<double, std::nano> const scaled{static_cast<double>(takes.count()) / settings_.speed};
  end_step_in(std::chrono::duration_cast<clock::duration>(scaled));
}

void model_engine::end_step_in(clock::duration wait) {
  timer_.expires_after(wait);
  timer_.async_wait([this](auto const& error) {
    if (!error) end_step();
  });
}

void model_engine::end_step() {
  news out;
  {
    std::lock_guard const lock{mutex_};
    auto const changes = cache_.changes();
    for (auto& r : lanes_)
      if (r != nullptr && r->in_step) make_token(r, out);
    if (cache_.changes() != changes) ++epoch_;
    begin_step(out);
  }
  tell(out);
}

void model_engine::make_token(std::unique_ptr<run>& r, news& out) {
  if (!r->is_prefilled) {
    r->is_prefilled = true;
    r->first_token = clock::now();
    remember(*r);
    out.emplace_back(r->sink, prefilled{.cached_tokens = r->held() - r->computed});
  }
  if (!r->at_its_end()) {
    auto token = r->reply.token(r->g.reply_so_far);
    ++r->g.reply_so_far;
    ++r->made;
    r->g.prompt.push_back(token.id);
    out.emplace_back(r->sink, std::move(token));
  }
  if (r->at_its_end()) finish(r, r->made == r->g.max_tokens ? finish_reason::length : finish_reason::stop, out);
}

void model_engine::finish(std::unique_ptr<run>& r, finish_reason why, news& out) {
  remember(*r);
  ended end{.why = why, .sample = {}};
  end.sample.prompt_tokens = r->computed;
  end.sample.prefill = r->first_token - r->started;
  // The first token came with the prefill.
  if (r->made > 1) {
    end.sample.decode_tokens = r->made - 1;
    end.sample.decode = clock::now() - r->first_token;
  }
  out.emplace_back(std::move(r->sink), end);
  r.reset();
}

/// Puts the prompt, and what has been made of the reply, into the prefix cache.
void model_engine::remember(run const& r) {
  auto const blocks = blocks_of(r.g.prompt);
  cache_.insert(blocks, blocks.size() * block_tokens);
}

void model_engine::tell(news const& out) {
  for (auto const& [sink, event] : out) sink(event);
}

}  // namespace server
