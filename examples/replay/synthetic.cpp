#include "synthetic.hpp"

#include "random_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace replay {

namespace {

constexpr double least_answer_seconds = 5;
constexpr double burst_cycle_seconds = 60;
constexpr double burst_seconds = 15;
constexpr std::uint32_t most_turns_times = 3;

void demand_that(bool fine, std::string_view name, double value, std::string_view bound) {
  if (!fine)
    throw std::invalid_argument{fmt::format("synthetic requests: {} is {}; it must be {}", name, value, bound)};
}

void validate(synthetic_settings const& s) {
  constexpr std::uint32_t most = 1'000'000;
  auto const count = [](std::uint32_t value, std::string_view name) {
    demand_that(value >= 1 && value <= most, name, value, "from 1 to 1000000");
  };
  auto const number = [](double value, double least, std::string_view name) {
    demand_that(value >= least && value <= 1e6, name, value,
                least == 1 ? "from 1 to 1000000" : "from 0.001 to 1000000");
  };
  count(s.chats, "chats");
  count(s.families, "families");
  count(s.turns, "turns");
  count(s.system_tokens, "system-tokens");
  count(s.user_tokens, "user-tokens");
  count(s.reply_tokens, "reply-tokens");
  number(s.chats_per_second, 0.001, "chats-per-second");
  number(s.burst, 1, "burst");
  number(s.think_seconds, 0.001, "think-seconds");
}

nanoseconds from_seconds(double seconds) { return nanoseconds{std::llround(seconds * 1e9)}; }

class chat_maker {
 public:
  explicit chat_maker(synthetic_settings const& s) : s_{s}, random_{s.seed} {
    for (std::uint32_t i = 0; i != s.families; ++i) families_.push_back(make_family());
  }

  workload make() {
    workload w;
    w.title = fmt::format("synthetic, seed {}", s_.seed);
    for (std::uint32_t i = 0; i != s_.chats; ++i) add_chat(w.requests);
    return w;
  }

 private:
  struct family {
    std::uint32_t system_tokens = 0;
    std::vector<std::uint64_t> blocks;  // the whole ones
  };

  family make_family() {
    family f{.system_tokens =
                 s_.system_tokens / 2 + static_cast<std::uint32_t>(random_.below(s_.system_tokens + 1ULL))};
    extend(f.blocks, f.system_tokens);
    return f;
  }

  /// Gives ids to the whole blocks of a prompt that have none yet.
  void extend(std::vector<std::uint64_t>& blocks, std::uint64_t prompt_tokens) {
    while (blocks.size() < prompt_tokens / prefix_block_tokens) blocks.push_back(next_block_++);
  }

  std::uint32_t tokens_around(std::uint32_t mean) {
    auto const drawn = std::min(random_.exponential(mean), 8.0 * mean);
    return 1 + static_cast<std::uint32_t>(drawn);
  }

  /// The next new chat: a Poisson stream whose rate changes, made from one at the highest rate by leaving some out.
  double next_chat() {
    auto const at_burst = s_.chats_per_second * s_.burst;
    for (;;) {
      clock_ += random_.exponential(1.0 / at_burst);
      auto const in_burst = std::fmod(clock_, burst_cycle_seconds) < burst_seconds;
      if (random_.unit() * s_.burst < (in_burst ? s_.burst : 1.0)) return clock_;
    }
  }

  void add_chat(std::vector<trace_request>& requests) {
    auto at = next_chat();
    auto const& own = families_[random_.below(families_.size())];
    auto blocks = own.blocks;
    auto prompt = own.system_tokens;
    for (auto turns = 1U; turns <= s_.turns * most_turns_times; ++turns) {
      prompt += tokens_around(s_.user_tokens);
      extend(blocks, prompt);
      trace_request r{.arrival = from_seconds(at),
                      .prompt_tokens = prompt,
                      .reply_tokens = tokens_around(s_.reply_tokens),
                      .blocks = blocks};
      // The beginning of a block is not what the whole block will be: an id of its own.
      if (prompt % prefix_block_tokens != 0) r.blocks.push_back(next_block_++);
      prompt += r.reply_tokens;
      requests.push_back(std::move(r));
      if (random_.unit() * s_.turns < 1.0) return;
      at += least_answer_seconds + random_.exponential(s_.think_seconds);
    }
  }

  synthetic_settings s_;
  random_numbers random_;
  std::vector<family> families_;
  std::uint64_t next_block_ = 0;
  double clock_ = 0;
};

}  // namespace

workload make_synthetic(synthetic_settings const& s) {
  validate(s);
  return chat_maker{s}.make();
}

}  // namespace replay
