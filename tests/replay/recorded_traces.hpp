#pragma once

#include <cstdlib>
#include <filesystem>

namespace replay::testing {

/// The folder with recorded traces, whether or not it is there: KVLANE_TRACES, else ../shared/traces beside the sources.
inline std::filesystem::path recorded_traces() {
  if (auto const* const named = std::getenv("KVLANE_TRACES"); named != nullptr && *named != '\0') return named;
  auto const sources = std::filesystem::path{__FILE__}.parent_path().parent_path().parent_path();
  return sources.parent_path() / "shared" / "traces";
}

}  // namespace replay::testing
