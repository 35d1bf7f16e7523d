#pragma once

#include <cstdint>
#include <string_view>

namespace server {

/// FNV-1a over bytes: the same on every machine, unlike std::hash.
[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (auto const c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// Spreads the bits of a number evenly (the finalizer of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The hash of a sequence that `h` stands for, and one more element.
[[nodiscard]] constexpr std::uint64_t extended(std::uint64_t h, std::uint64_t element) noexcept {
  return mixed(h * 0x9e3779b97f4a7c15 + element + 1);
}

}  // namespace server
