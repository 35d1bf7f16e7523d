#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

namespace replay {

/// Lines of a text file without their ends, LF or CRLF, empty ones left out, and without a byte order mark.
class text_lines {
 public:
  explicit text_lines(std::istream& in) : in_{in} {}

  /// Goes to the next line that is not empty; false when there is none.
  bool next() {
    while (std::getline(in_, text_)) {
      ++number_;
      if (text_.ends_with('\r')) text_.pop_back();
      if (number_ == 1 && text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);
      if (text_.find_first_not_of(" \t") != std::string::npos) return true;
    }
    return false;
  }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  std::istream& in_;
  std::string text_;
  std::uint64_t number_ = 0;
};

}  // namespace replay
