#include "progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace replay {

namespace {

constexpr std::uint64_t width = 40;
constexpr std::uint64_t calls_for_each_look_at_the_clock = 256;

}  // namespace

progress_bar::progress_bar(std::ostream& terminal, progress_display display, std::string label, std::uint64_t total)
    : terminal_{terminal},
      display_{display},
      label_{std::move(label)},
      total_{std::max<std::uint64_t>(total, 1)},
      next_drawing_{clock::now() + std::chrono::seconds{1}} {}

progress_bar::~progress_bar() {
  if (drawn_) terminal_ << "\r\x1b[K" << std::flush;
}

void progress_bar::show(std::uint64_t done) {
  if (display_ == progress_display::off || ++calls_ % calls_for_each_look_at_the_clock != 0) return;
  auto const now = clock::now();
  if (now < next_drawing_) return;
  next_drawing_ = now + std::chrono::milliseconds{100};
  auto const filled = std::min(done, total_) * width / total_;
  terminal_ << fmt::format("\r[{:#<{}}{:.<{}}] {:3} %  {}\x1b[K", "", filled, "", width - filled,
                           std::min(done, total_) * 100 / total_, label_)
            << std::flush;
  drawn_ = true;
}

}  // namespace replay
