#pragma once

#include <kvlane/rejection.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace kvlane {

namespace detail {

/// A value or a rejection. Spelt out, and not a std::variant: the destructor of an admission is part of every admission.
template <class T>
class result_storage {
 public:
  result_storage() noexcept : why_{} {}
  explicit result_storage(rejection const& why) noexcept : why_{why} {}
  template <class... Args>
  explicit result_storage(std::in_place_t, Args&&... args) : value_{std::forward<Args>(args)...}, has_value_{true} {}
  result_storage(result_storage&& other) noexcept(std::is_nothrow_move_constructible_v<T>)
      : has_value_{other.has_value_} {
    take(other);
  }
  result_storage& operator=(result_storage&& other) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T>, "a value that is being assigned must not get lost");
    if (this == &other) return *this;
    // The old value dies last: what its destructor causes sees this object in its new state.
    result_storage const old{std::move(*this)};
    reset();
    has_value_ = other.has_value_;
    take(other);
    return *this;
  }
  ~result_storage() { reset(); }

 protected:
  void take(result_storage& other) {
    if (has_value_)
      std::construct_at(&value_, std::move(other.value_));
    else
      std::construct_at(&why_, other.why_);
  }
  void reset() noexcept {
    if (has_value_) std::destroy_at(&value_);
  }

  union {
    rejection why_;
    T value_;
  };
  bool has_value_ = false;
};

template <class T>
  requires std::is_trivially_copyable_v<T>
class result_storage<T> {
 public:
  constexpr result_storage() noexcept : why_{} {}
  constexpr explicit result_storage(rejection const& why) noexcept : why_{why} {}
  template <class... Args>
  constexpr explicit result_storage(std::in_place_t, Args&&... args)
      : value_{std::forward<Args>(args)...}, has_value_{true} {}

 protected:
  union {
    rejection why_;
    T value_;
  };
  bool has_value_ = false;
};

}  // namespace detail

/// A value, or the reason why there is none (what `std::expected` is from C++23 on).
///
///     if (kvlane::admission slot = queue.try_admit(r)) run(slot->lane());
///     else answer(kvlane::to_http(slot.error()));
///
/// Copied where T is trivially copyable, else only moved. Thread safety: distinct objects are safe, shared objects are not.
/// Lifetime: owns its value.
template <class T>
class [[nodiscard]] result : private detail::result_storage<T> {
  using base = detail::result_storage<T>;

 public:
  using value_type = T;

  /// Holds the refusal `invalid_request` of a request that was never made.
  result() noexcept = default;
  result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : base{std::in_place, std::move(value)} {}
  /// Holds a default-constructed value.
  explicit result(std::in_place_t) noexcept(std::is_nothrow_default_constructible_v<T>) : base{std::in_place} {}
  result(rejection const& why) noexcept : base{why} {}

  [[nodiscard]] bool has_value() const noexcept { return this->has_value_; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

  /// The value. Precondition: there is one.
  [[nodiscard]] T& operator*() & noexcept { return *pointer(); }
  [[nodiscard]] T const& operator*() const& noexcept { return *pointer(); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*pointer()); }
  [[nodiscard]] T* operator->() noexcept { return pointer(); }
  [[nodiscard]] T const* operator->() const noexcept { return pointer(); }

  /// The refusal. Precondition: there is no value.
  [[nodiscard]] rejection const& error() const noexcept {
    KVLANE_ASSERT(!has_value(), "error() of a result that holds a value");
    return this->why_;
  }

 private:
  [[nodiscard]] T* pointer() noexcept {
    KVLANE_ASSERT(has_value(), "the value of a result that holds a refusal: look at error()");
    return &this->value_;
  }
  [[nodiscard]] T const* pointer() const noexcept { return const_cast<result*>(this)->pointer(); }
};

}  // namespace kvlane
