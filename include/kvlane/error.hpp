#pragma once

#include <kvlane/config.hpp>

#include <string>
#include <system_error>

namespace kvlane {

/// Why a request has no lease. Zero is never a value, so an `error_code` made of one is always set.
enum class errc {
  invalid_request = 1,  ///< the request contradicts itself
  never_fits,           ///< larger than the whole KV cache (or than the context)
  shutting_down,        ///< the queue drains or is closed
  would_wait,           ///< it does not fit now, and the caller would not wait
  queue_full,           ///< the line has no room
  would_time_out,       ///< the predicted wait is longer than the request may wait
  timed_out,            ///< its deadline came while it waited
  cancelled,            ///< its owner gave it up while it waited
  no_longer_fits,       ///< the KV cache was made smaller than what it asks for
};

namespace detail {

class admission_category_type final : public std::error_category {
 public:
  char const* name() const noexcept override { return "kvlane.admission"; }

  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::invalid_request: return "the request is invalid";
      case errc::never_fits: return "the request can never fit";
      case errc::shutting_down: return "the queue is shutting down";
      case errc::would_wait: return "the request would have to wait";
      case errc::queue_full: return "the waiting line is full";
      case errc::would_time_out: return "the predicted wait is longer than the request may wait";
      case errc::timed_out: return "the request waited until its deadline";
      case errc::cancelled: return "the request was cancelled";
      case errc::no_longer_fits: return "the request no longer fits";
    }
    return "unknown admission error " + std::to_string(value);
  }
};

// Error categories are equal when their addresses are: one object, also across shared libraries.
inline KVLANE_EXPORT admission_category_type const admission_category_object{};

}  // namespace detail

/// The category of every `errc`. Thread-safe; lives as long as the program.
inline std::error_category const& admission_category() noexcept { return detail::admission_category_object; }

inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), admission_category()}; }

}  // namespace kvlane

template <>
struct std::is_error_code_enum<kvlane::errc> : std::true_type {};
