#include <kvlane/kvlane.hpp>
#if __has_include(<kvlane/http.hpp>)
#include <kvlane/http.hpp>
#endif

auto refused_in_b() -> kvlane::admission;

// Uses the library from two translation units: refused in one, asked why in the other.
int main() {
  kvlane::admission_queue queue{{.lanes = 1, .kv_capacity = 1024}};
  auto const slot = queue.try_admit({.prompt_tokens = 100, .max_tokens = 16});
  auto const refused = refused_in_b();
  if (!slot || refused || refused.error().code() != kvlane::errc::never_fits) return 1;
#if __has_include(<kvlane/http.hpp>)
  if (kvlane::to_http(refused.error()).status != 400) return 1;
#endif
  return 0;
}
