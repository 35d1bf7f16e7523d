#pragma once

#include <kvlane/waiter_base.hpp>

#include <cstdint>

namespace kvlane::test {

/// A waiter with no core around it, for structures that are tested by themselves: the test says what is known of it.
template <class Base>
class bare_waiter final : public Base {
 public:
  explicit bare_waiter(waiter_facts const& facts, prompt_view prompt = {}) {
    this->facts_ = facts;
    this->prompt_ = shared_prompt{prompt};
  }
  void save(std::uint64_t saved_cost) noexcept { this->facts_.saved_cost = saved_cost; }
};

}  // namespace kvlane::test
