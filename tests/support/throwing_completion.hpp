#pragma once

#include <kvlane/lease.hpp>
#include <kvlane/result.hpp>

#include <memory>
#include <stdexcept>

namespace kvlane::test {

/// A completion that cannot be copied without an exception, and must never run.
class throwing_completion {
 public:
  throwing_completion() = default;
  throwing_completion(throwing_completion const&) { throw std::runtime_error{"this completion does not like copies"}; }
  throwing_completion& operator=(throwing_completion const&) = delete;
  ~throwing_completion() = default;

  void operator()(admission const&) const noexcept { std::terminate(); }
};

/// A completion that does nothing but say, by `witness.expired()`, whether it still exists.
class witnessed_completion {
 public:
  explicit witnessed_completion(std::weak_ptr<int>& witness) { witness = life_; }
  void operator()(admission const&) const noexcept {}

 private:
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace kvlane::test
