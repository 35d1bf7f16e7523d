#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/ordering/policy.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

namespace kvlane::test {

/// What an instrumented policy counts, and what it is told to do wrong.
struct policy_gauges {
  std::uint64_t inserts = 0;
  std::uint64_t erases = 0;
  std::uint64_t rescores = 0;
  std::uint64_t picks = 0;
  std::uint64_t grants = 0;
  std::uint64_t releases = 0;
  bool refuse_inserts = false;  ///< the next inserts throw

  /// Everything that the policy was asked, and forgets it.
  [[nodiscard]] std::uint64_t take_calls() noexcept {
    auto const calls = inserts + erases + rescores + picks;
    inserts = erases = rescores = picks = 0;
    return calls;
  }
};

/// What a policy that was told to throws out of `insert`.
struct insert_failed : std::runtime_error {
  insert_failed() : std::runtime_error{"insert was told to fail"} {}
};

/// A policy that counts what it is asked, and can fail. It leaves its gauges behind when it is moved, so that a test still
/// reads them after the queue has taken the policy.
template <class Base>
class instrumented : public Base {
 public:
  using waiter = typename Base::waiter;

  instrumented() = default;
  explicit instrumented(Base base) : Base{std::move(base)} {}
  instrumented(instrumented&& other) noexcept : Base{std::move(other)}, gauges_{other.gauges_} {}
  instrumented& operator=(instrumented&& other) noexcept {
    Base::operator=(std::move(other));
    gauges_ = other.gauges_;
    return *this;
  }
  ~instrumented() = default;

  [[nodiscard]] policy_gauges& gauges() const noexcept { return *gauges_; }

  void insert(waiter& w) {
    ++gauges_->inserts;
    if (gauges_->refuse_inserts) throw insert_failed{};
    Base::insert(w);
  }
  void erase(waiter& w, departure why) noexcept {
    ++gauges_->erases;
    Base::erase(w, why);
  }
  void rescore(waiter& w) noexcept {
    ++gauges_->rescores;
    Base::rescore(w);
  }
  [[nodiscard]] waiter* pick(pick_query const& q) noexcept {
    ++gauges_->picks;
    return Base::pick(q);
  }
  void on_grant(grant const&) noexcept { ++gauges_->grants; }
  void on_release(grant const&) noexcept { ++gauges_->releases; }

 private:
  std::shared_ptr<policy_gauges> gauges_ = std::make_shared<policy_gauges>();
};

}  // namespace kvlane::test
