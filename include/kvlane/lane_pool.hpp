#pragma once

#include <kvlane/fwd.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kvlane {

/// Throws std::invalid_argument when more lanes are asked for than the engine has, naming the option and both numbers.
/// `engine_lanes` 0 means that the engine did not tell.
inline void ensure_lanes_fit(std::uint32_t lanes, std::uint32_t engine_lanes, std::string_view option) {
  if (engine_lanes == 0 || lanes <= engine_lanes) return;
  throw std::invalid_argument(std::string{option} + " is " + std::to_string(lanes) + ", but the engine has " +
                              std::to_string(engine_lanes) + " lanes");
}

/// The lanes of an engine: which are busy, and which is handed out next. Can be resized while lanes are busy.
///
///     kvlane::lane_pool lanes{4};
///     auto const lane = lanes.try_take();   // 0: the lowest free one
///     lanes.give_back(*lane);
///
/// Lowering revokes nothing: `free()` is what remains of the new size after all busy lanes are taken off, also of those
/// whose number is now too high. Thread safety: distinct objects are safe, shared objects are not.
class lane_pool {
 public:
  /// \throws std::bad_alloc
  explicit lane_pool(std::uint32_t lanes) { resize(lanes); }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t busy() const noexcept { return busy_; }
  [[nodiscard]] std::uint32_t free() const noexcept { return busy_ < size_ ? size_ - busy_ : 0; }
  [[nodiscard]] bool is_busy(lane_id lane) const noexcept {
    return lane / bits < words_ && (map_[lane / bits] & bit(lane)) != 0;
  }

  /// Takes `preferred` if it exists and is free, else the lowest free lane; nothing when none is free. Never allocates.
  [[nodiscard]] std::optional<lane_id> try_take(std::optional<lane_id> preferred = {}) noexcept {
    if (free() == 0) return std::nullopt;
    auto const lane = preferred && *preferred < size_ && !is_busy(*preferred) ? *preferred : lowest_free();
    map_[lane / bits] |= bit(lane);
    ++busy_;
    return lane;
  }

  /// Gives back a lane that was taken. Precondition: it is busy.
  void give_back(lane_id lane) noexcept {
    KVLANE_ASSERT(is_busy(lane), "a lane was given back that is not busy");
    map_[lane / bits] &= ~bit(lane);
    --busy_;
    first_gap_ = std::min(first_gap_, lane / bits);
  }

  /// Changes the number of lanes; busy ones stay busy. \throws std::bad_alloc, and then nothing has changed.
  void resize(std::uint32_t lanes) {
    auto const words = static_cast<std::uint32_t>((std::uint64_t{lanes} + bits - 1) / bits);
    if (words > words_) grow_map(words);
    size_ = lanes;
  }

 private:
  static constexpr std::uint32_t bits = 64;
  static constexpr std::uint64_t bit(lane_id lane) noexcept { return std::uint64_t{1} << (lane % bits); }

  struct release_memory {
    void operator()(std::uint64_t* memory) const noexcept { std::free(memory); }
  };

  // calloc and not a vector: pages of a map for billions of lanes ("as many as you like") stay untouched until used.
  void grow_map(std::uint32_t words) {
    std::unique_ptr<std::uint64_t[], release_memory> larger{
        static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t)))};
    if (!larger) throw std::bad_alloc{};
    for (std::uint32_t word = 0; word < words_; ++word)
      if (map_[word] != 0) larger[word] = map_[word];
    map_ = std::move(larger);
    words_ = words;
  }

  // Precondition: a lane below size_ is free. No word below first_gap_ has a free bit.
  lane_id lowest_free() noexcept {
    while (map_[first_gap_] == ~std::uint64_t{0}) ++first_gap_;
    return first_gap_ * bits + static_cast<lane_id>(std::countr_one(map_[first_gap_]));
  }

  std::unique_ptr<std::uint64_t[], release_memory> map_;  // bit set: busy
  std::uint32_t words_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t busy_ = 0;
  std::uint32_t first_gap_ = 0;
};

}  // namespace kvlane
