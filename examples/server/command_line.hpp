#pragma once

#include "http_front.hpp"
#include "model_engine.hpp"
#include "serving.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <variant>

namespace server {

/// What the command line asks for.
struct command {
  listen_settings listen;
  service_settings service;
  model_settings engine;
  std::uint32_t threads = 2;
  std::chrono::milliseconds drain_timeout{30'000};
};

/// A command line that makes no sense; the text says what to do instead.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Text that was asked for instead of a server.
struct help_text {
  std::string text;
};

/// Reads a command line. \throws usage_error
[[nodiscard]] std::variant<command, help_text> parse_command_line(int argc, char const* const* argv);

}  // namespace server
