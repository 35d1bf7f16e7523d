#include "trial_predictors.hpp"

#include "statistics.hpp"

#include <kvlane/detail/drain_pace.hpp>
#include <kvlane/detail/work_ledger.hpp>
#include <kvlane/service_rates.hpp>
#include <kvlane/work_left.hpp>

#include <algorithm>
#include <set>

namespace replay {

namespace {

using kvlane::fractional_ms;
using kvlane::time_point;

/// Told everything, and what it has no use for is dropped.
class onlooker : public trial_predictor {
 public:
  void queued(request_number, time_point) override {}
  void admitted(request_number, time_point) override {}
  void progressed(request_number, std::uint64_t, time_point) override {}
  void ended(request_number, time_point) override {}
};

class by_last_wait final : public onlooker {
 public:
  explicit by_last_wait(std::span<measured_request const> requests) : requests_{requests} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "last wait"; }
  [[nodiscard]] std::string_view source() const noexcept override { return "how long the last one admitted waited"; }
  void admitted(request_number who, time_point) override { last_ = requests_[who].wait(); }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point) const override { return last_; }

 private:
  std::span<measured_request const> requests_;
  std::optional<fractional_ms> last_;
};

class by_past_waits final : public onlooker {
 public:
  explicit by_past_waits(std::span<measured_request const> requests) : requests_{requests} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "p95 of waits"; }
  [[nodiscard]] std::string_view source() const noexcept override { return "how long the last 64 admitted waited"; }
  void admitted(request_number who, time_point) override {
    waits_.push_back(requests_[who].wait());
    if (waits_.size() > kvlane::phase_rate::window) waits_.erase(waits_.begin());
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point) const override {
    if (waits_.empty()) return std::nullopt;
    return summarise(waits_).p95;
  }

 private:
  std::span<measured_request const> requests_;
  std::vector<kvlane::duration> waits_;
};

/// What Retry-After falls back on, see drain_pace.
class by_admission_gaps final : public onlooker {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "admission gaps"; }
  [[nodiscard]] std::string_view source() const noexcept override { return "gaps between admissions, how many wait"; }
  void queued(request_number, time_point) override { ++waiting_; }
  void admitted(request_number, time_point now) override {
    pace_.admitted(now, true);
    if (--waiting_ == 0) pace_.line_emptied();
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point) const override {
    if (!pace_.average()) return std::nullopt;
    return *pace_.average() * static_cast<double>(waiting_ + 1);
  }

 private:
  kvlane::detail::drain_pace pace_;
  std::uint64_t waiting_ = 0;
};

/// Keeps the work that lies ahead, as admission_core does.
class by_work_ahead : public onlooker {
 public:
  explicit by_work_ahead(std::span<measured_request const> requests) : requests_{requests} {}

  void queued(request_number who, time_point) override { ledger_.queue(0, expected(who)); }
  void admitted(request_number who, time_point) override {
    ledger_.unqueue(0, expected(who));
    ledger_.start(expected(who));
    ++running_;
  }
  void ended(request_number who, time_point) override {
    ledger_.finish(expected(who));
    --running_;
  }

 protected:
  [[nodiscard]] kvlane::work expected(request_number who) const {
    return {.prompt_tokens = requests_[who].prompt_tokens, .decode_tokens = reserved(who)};
  }
  [[nodiscard]] virtual std::uint64_t reserved(request_number who) const = 0;
  [[nodiscard]] measured_request const& request(request_number who) const { return requests_[who]; }
  [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }
  [[nodiscard]] kvlane::detail::work_ledger const& ledger() const noexcept { return ledger_; }
  [[nodiscard]] kvlane::work ahead() const noexcept { return ledger_.ahead_of(0); }
  [[nodiscard]] std::uint32_t running() const noexcept { return running_; }

 private:
  std::span<measured_request const> requests_;
  kvlane::detail::work_ledger ledger_;
  std::uint32_t running_ = 0;
};

class by_rates final : public by_work_ahead {
 public:
  by_rates(std::span<measured_request const> requests, kvlane::limits const& l) : by_work_ahead{requests}, limits_{l} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "ewma_p95"; }
  [[nodiscard]] std::string_view source() const noexcept override { return "what completed requests took"; }
  void ended(request_number who, time_point now) override {
    auto const& r = request(who);
    by_work_ahead::ended(who, now);
    (void)rates_.observe({.prompt_tokens = r.prompt_tokens,
                          .decode_tokens = r.reply_tokens - std::min(r.reply_tokens, 1U),
                          .prefill = r.first_token - r.admitted,
                          .decode = r.last_token - r.first_token});
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point) const override {
    return rates_.predicted_wait(ahead(), limits_.lanes);
  }

 private:
  [[nodiscard]] std::uint64_t reserved(request_number) const override { return limits_.decode_headroom; }

  kvlane::limits limits_;
  kvlane::service_rates rates_;
};

struct title {
  std::string_view name;
  std::string_view source;
};

/// The library's class, driven as admission_core drives it.
class by_work_left : public by_work_ahead {
 public:
  by_work_left(std::span<measured_request const> requests, kvlane::limits const& l, title const& about)
      : by_work_ahead{requests}, about_{about}, headroom_{l.decode_headroom} {}

  [[nodiscard]] std::string_view name() const noexcept override { return about_.name; }
  [[nodiscard]] std::string_view source() const noexcept override { return about_.source; }
  void progressed(request_number who, std::uint64_t made, time_point now) override {
    left_.progressed(static_cast<kvlane::lane_id>(who), reserved(who), made, now);
  }
  void ended(request_number who, time_point now) override {
    by_work_ahead::ended(who, now);
    learn(who);
    left_.released(static_cast<kvlane::lane_id>(who), running() == 0);
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point now) const override {
    auto const reserved_by_runners = ledger().running().decode_tokens;
    return left_.predicted_wait(
        {.running = reserved_by_runners, .waiting = ahead().decode_tokens - reserved_by_runners, .runners = running()},
        now);
  }

 protected:
  [[nodiscard]] std::uint64_t reserved(request_number) const override { return headroom_; }
  virtual void learn(request_number who) { left_.ended(reserved(who), request(who).reply_tokens); }

 private:
  title about_;
  std::uint64_t headroom_;
  kvlane::work_left left_;
};

/// The same formula, with replies reserved as long as they will be: there is nothing to learn.
class clairvoyant final : public by_work_left {
 public:
  clairvoyant(std::span<measured_request const> requests, kvlane::limits const& l)
      : by_work_left{requests, l, {.name = "clairvoyant", .source = "as work_left, and how long each reply WILL be"}} {}

 private:
  [[nodiscard]] std::uint64_t reserved(request_number who) const override { return request(who).reply_tokens; }
  void learn(request_number) override {}
};

/// What is left, if every reply becomes as long as those that have ended were on average.
class by_mean_reply final : public by_work_ahead {
 public:
  by_mean_reply(std::span<measured_request const> requests, kvlane::limits const& l)
      : by_work_ahead{requests}, headroom_{l.decode_headroom}, made_(requests.size()) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "mean reply"; }
  [[nodiscard]] std::string_view source() const noexcept override { return "progress, and the mean of past replies"; }
  void queued(request_number, time_point) override { ++waiting_; }
  void admitted(request_number who, time_point) override {
    --waiting_;
    running_.insert(who);
  }
  void progressed(request_number who, std::uint64_t made, time_point now) override {
    pace_.made(made - made_[who], running_.size(), now);
    made_[who] = made;
  }
  void ended(request_number who, time_point) override {
    running_.erase(who);
    if (running_.empty()) pace_.pause();
    tokens_ += request(who).reply_tokens;
    ++ended_;
  }
  [[nodiscard]] std::optional<fractional_ms> predicted_wait(time_point now) const override {
    auto const pace = pace_.tokens_per_ms(now);
    if (!pace || *pace <= 0) return std::nullopt;
    auto const mean = ended_ == 0 ? static_cast<double>(headroom_) : static_cast<double>(tokens_) / ended_;
    auto left = static_cast<double>(waiting_) * mean;
    for (auto const who : running_) left += std::max(0.0, mean - static_cast<double>(made_[who]));
    return fractional_ms{left / *pace};
  }

 private:
  [[nodiscard]] std::uint64_t reserved(request_number) const override { return headroom_; }

  std::uint64_t headroom_;
  kvlane::decode_pace pace_;
  std::vector<std::uint64_t> made_;
  std::set<request_number> running_;
  std::uint64_t waiting_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint32_t ended_ = 0;
};

std::uint32_t mean_reply(std::span<measured_request const> requests) {
  std::uint64_t tokens = 0;
  for (auto const& r : requests) tokens += r.reply_tokens;
  return static_cast<std::uint32_t>(tokens / std::max<std::size_t>(requests.size(), 1));
}

}  // namespace

std::uint64_t measured_request::made(time_point now) const noexcept {
  if (now < first_token || reply_tokens == 0) return 0;
  if (now >= last_token) return reply_tokens;
  auto const part =
      static_cast<double>((now - first_token).count()) / static_cast<double>((last_token - first_token).count());
  return 1 + static_cast<std::uint64_t>(part * (reply_tokens - 1));
}

std::vector<std::unique_ptr<trial_predictor>> predictors_on_trial(std::span<measured_request const> requests,
                                                                  kvlane::limits const& l) {
  std::vector<std::unique_ptr<trial_predictor>> all;
  all.push_back(std::make_unique<by_rates>(requests, l));
  all.push_back(std::make_unique<by_last_wait>(requests));
  all.push_back(std::make_unique<by_past_waits>(requests));
  all.push_back(std::make_unique<by_admission_gaps>());
  all.push_back(std::make_unique<by_mean_reply>(requests, l));
  all.push_back(std::make_unique<by_work_left>(
      requests, l, title{.name = "work_left", .source = "progress, and lengths of past replies"}));
  auto mean_known = l;
  mean_known.decode_headroom = mean_reply(requests);
  all.push_back(std::make_unique<by_work_left>(
      requests, mean_known,
      title{.name = "mean known", .source = "as work_left, and the mean of all replies, FUTURE ones too"}));
  all.push_back(std::make_unique<clairvoyant>(requests, l));
  return all;
}

}  // namespace replay
