#pragma once

#include "exchange.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace server::test {

/// What a client would see, and a way to leave.
class fake_exchange final : public exchange {
 public:
  void reply(kvlane::http_reply const& r) override {
    EXPECT_FALSE(whole || streaming) << "a second reply";
    whole = r;
  }
  void reply_text(std::string body, std::string const&) override {
    kvlane::http_reply r;
    r.status = 200;
    r.body = std::move(body);
    reply(r);
  }
  void begin_stream() override {
    EXPECT_FALSE(whole || streaming) << "a second reply";
    streaming = true;
  }
  void send(std::string events) override {
    EXPECT_TRUE(streaming && !stream_ended);
    stream += events;
  }
  void end_stream() override {
    EXPECT_TRUE(streaming && !stream_ended);
    stream_ended = true;
  }
  void when_gone(std::function<void()> gone) override { gone_ = std::move(gone); }

  void leave() { std::exchange(gone_, nullptr)(); }
  [[nodiscard]] bool answered() const noexcept { return whole || stream_ended; }
  /// The stream's events, without the empty lines between.
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < stream.size();) {
      auto const end = stream.find("\n\n", at);
      all.push_back(stream.substr(at, end - at));
      at = end + 2;
    }
    return all;
  }

  std::optional<kvlane::http_reply> whole;
  bool streaming = false;
  bool stream_ended = false;
  std::string stream;

 private:
  std::function<void()> gone_;
};

}  // namespace server::test
