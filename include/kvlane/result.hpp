#pragma once

#include <kvlane/rejection.hpp>

#include <type_traits>
#include <utility>
#include <variant>

namespace kvlane {

/// A value, or the reason why there is none (what `std::expected` is from C++23 on).
///
///     if (kvlane::admission slot = queue.try_admit(r)) run(slot->lane());
///     else answer(kvlane::to_http(slot.error()));
///
/// Thread safety: distinct objects are safe, shared objects are not. Lifetime: owns its value.
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  /// Holds the refusal `invalid_request` of a request that was never made.
  result() noexcept = default;
  result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
      : state_{std::in_place_index<1>, std::move(value)} {}
  /// Holds a default-constructed value.
  explicit result(std::in_place_t) noexcept(std::is_nothrow_default_constructible_v<T>)
      : state_{std::in_place_index<1>} {}
  result(rejection const& why) noexcept : state_{std::in_place_index<0>, why} {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 1; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

  /// The value. Precondition: there is one.
  [[nodiscard]] T& operator*() & noexcept { return *pointer(); }
  [[nodiscard]] T const& operator*() const& noexcept { return *pointer(); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*pointer()); }
  [[nodiscard]] T* operator->() noexcept { return pointer(); }
  [[nodiscard]] T const* operator->() const noexcept { return pointer(); }

  /// The refusal. Precondition: there is no value.
  [[nodiscard]] rejection const& error() const noexcept {
    auto const* why = std::get_if<0>(&state_);
    KVLANE_ASSERT(why != nullptr, "error() of a result that holds a value");
    return *why;
  }

 private:
  [[nodiscard]] T* pointer() noexcept {
    auto* value = std::get_if<1>(&state_);
    KVLANE_ASSERT(value != nullptr, "the value of a result that holds a refusal: look at error()");
    return value;
  }
  [[nodiscard]] T const* pointer() const noexcept { return const_cast<result*>(this)->pointer(); }

  std::variant<rejection, T> state_;
};

}  // namespace kvlane
