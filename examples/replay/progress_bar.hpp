#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace replay {

/// Whether somebody watches a run.
enum class progress_display : std::uint8_t { off, on };

/// One line on a terminal that says how far a run has got. It appears when a run takes longer than a second, and goes
/// when the bar is destroyed.
class progress_bar {
 public:
  progress_bar(std::ostream& terminal, progress_display display, std::string label, std::uint64_t total);
  progress_bar(progress_bar const&) = delete;
  progress_bar& operator=(progress_bar const&) = delete;
  ~progress_bar();

  /// `done` of the total are done.
  void show(std::uint64_t done);

 private:
  using clock = std::chrono::steady_clock;

  std::ostream& terminal_;
  progress_display display_;
  std::string label_;
  std::uint64_t total_;
  std::uint64_t calls_ = 0;
  clock::time_point next_drawing_;
  bool drawn_ = false;
};

}  // namespace replay
