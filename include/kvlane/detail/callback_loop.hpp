#pragma once

#include <kvlane/config.hpp>

#include <utility>

namespace kvlane::detail {

/// Something that runs once on the thread that caused it, after all locks are released.
class deferred_call {
 public:
  deferred_call() noexcept = default;
  deferred_call(deferred_call const&) = delete;
  deferred_call& operator=(deferred_call const&) = delete;

  /// Runs user code. May destroy the object.
  virtual void run() noexcept = 0;

  deferred_call* next_call = nullptr;  // the loop's own; a friend instead would let GCC warn of the destructor

 protected:
  ~deferred_call() = default;
};

/// The callbacks that this thread still has to run. A callback that causes others does not run them: they wait until it
/// has returned. So callbacks never nest, and a chain of them needs no stack.
class callback_loop {
 public:
  static callback_loop& of_this_thread() noexcept {
    thread_local callback_loop loop;
    return loop;
  }

  void push(deferred_call& call) noexcept {
    call.next_call = nullptr;
    (last_ == nullptr ? first_ : last_->next_call) = &call;
    last_ = &call;
  }

  /// For as long as it lives, callbacks of this thread wait: for calls that change a queue in several steps and must not
  /// be overtaken by what the first step causes (which may even destroy the queue).
  class deferral {
   public:
    deferral() noexcept : loop_{of_this_thread()}, outermost_{!std::exchange(loop_.running_, true)} {}
    deferral(deferral const&) = delete;
    deferral& operator=(deferral const&) = delete;
    ~deferral() {
      if (!outermost_) return;
      loop_.running_ = false;
      loop_.run();
    }

   private:
    callback_loop& loop_;
    bool outermost_;
  };

  /// Runs everything, unless a callback of this thread is running: then its loop goes on with it.
  void run() noexcept {
    if (running_ || first_ == nullptr) return;
    running_ = true;
    while (auto* const call = first_) {
      first_ = call->next_call;
      if (first_ == nullptr) last_ = nullptr;
      call->run();
    }
    running_ = false;
  }

 private:
  deferred_call* first_ = nullptr;
  deferred_call* last_ = nullptr;
  bool running_ = false;
};

}  // namespace kvlane::detail
