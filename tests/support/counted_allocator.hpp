#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kvlane::test {

/// What a counted_allocator has given out, and when it shall fail.
struct memory_account {
  int allocated = 0;
  int freed = 0;
  bool empty = false;  ///< there is no memory
  [[nodiscard]] int out() const noexcept { return allocated - freed; }
};

/// Counts what it gives out, and may run out of memory. Copies and rebound copies share the account.
template <class T = void>
class counted_allocator {
 public:
  using value_type = T;

  explicit counted_allocator(memory_account& account) noexcept : account_{&account} {}
  template <class U>
  counted_allocator(counted_allocator<U> const& other) noexcept : account_{&other.says()} {}

  [[nodiscard]] T* allocate(std::size_t n) {
    if (account_->empty) throw std::bad_alloc{};
    ++account_->allocated;
    return std::allocator<T>{}.allocate(n);
  }
  void deallocate(T* p, std::size_t n) noexcept {
    ++account_->freed;
    std::allocator<T>{}.deallocate(p, n);
  }
  [[nodiscard]] memory_account& says() const noexcept { return *account_; }

  template <class U>
  friend bool operator==(counted_allocator const& a, counted_allocator<U> const& b) noexcept {
    return &a.says() == &b.says();
  }

 private:
  memory_account* account_;
};

}  // namespace kvlane::test
