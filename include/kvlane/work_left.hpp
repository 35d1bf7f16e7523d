#pragma once

#include <kvlane/fwd.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

namespace kvlane {

/// How many tokens of replies an engine makes in a millisecond now: those of the last five seconds in which it was at work.
/// A batch that has grown since makes more of them: a step takes little longer for it, so each reply keeps its pace.
///
///     kvlane::decode_pace pace;
///     pace.made(12, 3, now);         // at each step, or less often: three replies have got 12 tokens together
///     pace.tokens_per_ms(now);       // as it was
///     pace.tokens_per_ms(8, now);    // as it is with eight replies
///
/// Thread safety: distinct objects are safe, shared objects are not. Nothing here allocates.
class decode_pace {
 public:
  static constexpr int slots = 10;
  static constexpr duration slot = std::chrono::milliseconds{500};
  /// Less than this says little: in the first moments of a burst prompts are computed and few replies are made.
  static constexpr duration least = std::chrono::seconds{1};

  /// So many tokens have been made since the last report, while so many replies were in the making.
  void made(std::uint64_t tokens, std::uint64_t replies, time_point now) noexcept {
    if (!at_work_) go_on(now);
    move_on(now);
    tokens_[current_] += tokens;
    if (now <= last_) return;
    auto const since_report = std::min(now - last_, now - since_ + slot * full_);
    reply_ms_[current_] += static_cast<double>(replies) * fractional_ms{since_report}.count();
    last_ = now;
  }

  /// Nobody runs: the time until the next report does not count.
  void pause() noexcept { at_work_ = false; }

  /// Absent while it has been at work for less than a second, and when nothing has been reported for longer than it
  /// remembers.
  [[nodiscard]] std::optional<double> tokens_per_ms(time_point now) const noexcept {
    // (A moment before the last report, even the clock's first, is as good as that.)
    if (!ever_ || (now > last_ && now - last_ > slot * slots)) return std::nullopt;
    auto const seen = last_ - since_ + slot * full_;
    if (seen < least) return std::nullopt;
    return static_cast<double>(all_tokens()) / fractional_ms{seen}.count();
  }
  /// The same, had there been `replies` of them all the time.
  [[nodiscard]] std::optional<double> tokens_per_ms(std::uint64_t replies, time_point now) const noexcept {
    if (!tokens_per_ms(now)) return std::nullopt;
    auto const reply_ms = std::accumulate(reply_ms_.begin(), reply_ms_.end(), 0.0);
    if (reply_ms <= 0) return std::nullopt;
    return static_cast<double>(all_tokens()) / reply_ms * static_cast<double>(replies);
  }

 private:
  [[nodiscard]] std::uint64_t all_tokens() const noexcept {
    return std::accumulate(tokens_.begin(), tokens_.end(), std::uint64_t{0});
  }
  /// A pause is cut out: what was seen before it still tells how fast the engine is.
  void go_on(time_point now) noexcept {
    since_ = ever_ ? now - (last_ - since_) : now;
    last_ = now;
    ever_ = at_work_ = true;
  }
  void move_on(time_point now) noexcept {
    if (now - since_ > slot * (slots + 1)) {
      tokens_ = {};
      reply_ms_ = {};
      full_ = 0;
      since_ = now;
    }
    for (; now - since_ >= slot; since_ += slot) {
      current_ = (current_ + 1) % tokens_.size();
      tokens_[current_] = 0;
      reply_ms_[current_] = 0;
      full_ = std::min(full_ + 1, slots - 1);
    }
  }

  std::array<std::uint64_t, std::size_t{slots}> tokens_{};
  std::array<double, std::size_t{slots}> reply_ms_{};  // time, as often as there were replies in it
  std::size_t current_ = 0;
  int full_ = 0;        // slots before the current one that are remembered
  time_point since_{};  // when the current slot began
  time_point last_{};
  bool ever_ = false;
  bool at_work_ = false;
};

/// Replies that lie ahead of a newcomer, as tokens that were reserved for them.
struct replies_ahead {
  std::uint64_t running = 0;  ///< of those who run
  std::uint64_t waiting = 0;  ///< of those who wait and go first
  std::uint32_t runners = 0;  ///< how many run
};

/// The predictor `work_left`: what is still to be made of the replies ahead until the newcomer is admitted, over the pace
/// at which the engine makes them. It needs to be told the progress of those who run (lease::progress), and is the only
/// kind that works while a burst lasts: a predictor fed by completions is blind until the first ones have ended.
///
/// What a reply will need is learned as a share of what was reserved for it: from the replies that ended, and from those
/// that have already outgrown it. At first it is what was reserved.
///
/// Thread safety: distinct objects are safe, shared objects are not.
class work_left {
 public:
  /// What an old reply counts when another has ended.
  static constexpr double memory = 31.0 / 32;
  /// So many replies as long as was reserved are taken for granted at first.
  static constexpr double replies_assumed = 2;

  /// The reply on `lane`, for which `reserved` tokens were reserved, has `made` of them now. Fewer than before is ignored,
  /// and so is what there is no memory to note. Allocates when it has not heard of this lane or a higher one.
  void progressed(lane_id lane, std::uint64_t reserved, std::uint64_t made, time_point now) noexcept {
    if (!make_room(lane)) return;
    auto& r = running_[lane];
    if (made <= r.made) return;
    if (r.made == 0) ++in_the_making_;
    pace_.made(made - r.made, in_the_making_, now);
    auto const expected = static_cast<std::uint64_t>(share() * static_cast<double>(reserved));
    if (reserved != 0 && (r.outgrown || made > expected)) {
      outgrown_reserved_ += reserved - r.reserved;
      outgrown_made_ += made - (r.outgrown ? r.made : 0);
      outgrown_ += r.outgrown ? 0 : 1;
      r.reserved = reserved;
      r.outgrown = true;
    }
    auto const done = std::min(made, expected);
    done_ += done - r.done;  // may fall, modulo 2^64, when less is expected than before
    r.done = done;
    r.made = made;
  }
  /// The lane has been given back. Nobody runs any more if it was the last.
  void released(lane_id lane, bool last) noexcept {
    if (last) pace_.pause();
    if (lane >= running_.size() || running_[lane].made == 0) return;
    auto& r = running_[lane];
    --in_the_making_;
    done_ -= r.done;
    if (r.outgrown) {
      outgrown_reserved_ -= r.reserved;
      outgrown_made_ -= r.made;
      --outgrown_;
    }
    r = {};
  }
  /// A reply for which `reserved` tokens were reserved has ended with `made`.
  void ended(std::uint64_t reserved, std::uint64_t made) noexcept {
    if (reserved == 0 || made == 0) return;
    ended_reserved_ = ended_reserved_ * memory + static_cast<double>(reserved);
    ended_made_ = ended_made_ * memory + static_cast<double>(made);
    ended_ = ended_ * memory + 1;
  }

  /// Whether any progress has been reported yet: until then there is nothing to ask and nothing to tell.
  [[nodiscard]] bool is_told() const noexcept { return !running_.empty(); }

  /// What replies need, as a share of what is reserved for them.
  [[nodiscard]] double share() const noexcept {
    // Whoever has outgrown what was expected is one of the long ones. That is news while few have ended, and later a skew.
    auto const news = 1 / (1 + ended_);
    auto const replies = ended_ + news * static_cast<double>(outgrown_);
    if (replies <= 0) return 1;
    auto const reserved = ended_reserved_ + news * static_cast<double>(outgrown_reserved_);
    auto const made = ended_made_ + news * static_cast<double>(outgrown_made_);
    auto const assumed = reserved / replies * replies_assumed;
    return (made + assumed) / (reserved + assumed);
  }

  /// How long a newcomer has to wait. Absent while the engine's pace is not known.
  ///
  /// Not until all who are ahead have ended: when it is admitted, the other lanes run on, and in the long run half of a reply
  /// is still to be made on each of them.
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(replies_ahead const& ahead, time_point now) const noexcept {
    // While nobody runs, the next batch is taken to be as the last one was.
    auto const pace = ahead.runners == 0 ? pace_.tokens_per_ms(now) : pace_.tokens_per_ms(ahead.runners, now);
    if (!pace || *pace <= 0) return std::nullopt;
    auto const running = static_cast<double>(ahead.running);
    auto const others = ahead.runners == 0 ? 0.0 : 1.0 - 1.0 / ahead.runners;
    auto const to_be_made = running + static_cast<double>(ahead.waiting) - running * others / 2;
    return fractional_ms{std::max(share() * to_be_made - static_cast<double>(done_), 0.0) / *pace};
  }

  [[nodiscard]] decode_pace const& pace() const noexcept { return pace_; }

 private:
  struct reply {
    std::uint64_t made = 0;
    std::uint64_t done = 0;      // of what was expected
    std::uint64_t reserved = 0;  // once outgrown
    bool outgrown = false;
  };

  // Only as it is needed: whoever reports no progress pays nothing for a million lanes.
  [[nodiscard]] bool make_room(lane_id lane) noexcept {
    if (lane < running_.size()) return true;
    try {
      running_.resize(std::size_t{lane} + 1);
    } catch (std::bad_alloc const&) {
      return false;
    }
    return true;
  }

  decode_pace pace_;
  std::vector<reply> running_;
  std::uint64_t in_the_making_ = 0;
  std::uint64_t done_ = 0;  // sum over those who run
  double ended_ = 0;
  double ended_reserved_ = 0;
  double ended_made_ = 0;
  std::uint64_t outgrown_ = 0;
  std::uint64_t outgrown_reserved_ = 0;
  std::uint64_t outgrown_made_ = 0;
};

}  // namespace kvlane
