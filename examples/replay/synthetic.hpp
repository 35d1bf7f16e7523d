#pragma once

#include "workload.hpp"

#include <cstdint>

namespace replay {

/// A made-up stream of chats. Each chat belongs to a family, whose system prompt it begins with, and has several turns; the
/// prompt of a turn is the prompt of the one before, the reply to it, and new words of the user. So prompts of a family
/// share their beginning, and those of a chat grow. Arrivals do not depend on how fast they are served.
struct synthetic_settings {
  std::uint32_t chats = 600;
  std::uint32_t families = 200;
  std::uint32_t turns =
      4;  ///< of a chat, about: each turn is the last with probability 1 / turns, the one at 3 * turns surely
  std::uint32_t system_tokens = 8000;  ///< of a family's system prompt: evenly from half of it to one and a half
  std::uint32_t user_tokens = 400;     ///< new in each turn, on average (exponential, at most 8 times that)
  std::uint32_t reply_tokens = 250;    ///< on average (exponential, at most 8 times that)
  double chats_per_second = 1;         ///< new chats between bursts; their arrivals are random (Poisson)
  double burst = 3;                    ///< in the first 15 seconds of each minute, so many times as many; 1: no bursts
  double think_seconds = 20;           ///< from one turn of a chat to the next, on average (exponential), after 5 s
  std::uint64_t seed = 1;
};

/// Makes the stream; equal settings give equal streams.
/// \throws std::invalid_argument for settings that make no sense, naming them
[[nodiscard]] workload make_synthetic(synthetic_settings const& s);

}  // namespace replay
