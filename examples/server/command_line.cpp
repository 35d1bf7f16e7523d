#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace server {

namespace {

constexpr auto description =
    "An inference server with the OpenAI API in front of a model of a batching engine: kvlane decides who gets a lane "
    "and KV tokens, who waits, and who is told to come back later. The text it generates means nothing.";

/// Options in the units in which they are typed, before they become a command.
struct typed {
  command result;
  std::uint32_t port = 8080;
  std::optional<std::uint64_t> context;
  double max_wait_seconds = 30;
  double drain_seconds = 30;
  double keep_alive_seconds = 5;
};

void add_options(CLI::App& app, typed& t) {
  auto& s = t.result.service;
  auto& l = s.limits;
  auto const add = [&](char const* name, auto& value, char const* text) {
    return app.add_option(name, value, text)->capture_default_str();
  };
  add("--address", t.result.listen.address, "address to listen on");
  add("--port", t.port, "port to listen on; 0: any free one");
  add("--lanes", l.lanes, "requests that run at once");
  add("--kv-tokens", l.kv_capacity, "KV tokens for running requests");
  app.add_option("--max-waiting", l.max_waiting, "places in line")->option_text("N [8 for each lane]");
  add("--max-wait", t.max_wait_seconds,
      "seconds that a request may wait if its client names no timeout; 0: none waits");
  app.add_option("--context", t.context, "tokens of a prompt and its reply together")
      ->option_text("N [8192, or all KV tokens if they are fewer]");
  add("--default-max-tokens", s.default_max_tokens, "tokens of a reply if its client names no limit");
  add("--headroom", l.decode_headroom, "tokens of a reply that are reserved at admission; it grows beyond them");
  add("--growth-reserve", l.growth_reserve, "KV tokens that admissions leave to replies that grow");
  add("--cache-tokens", t.result.engine.cache_tokens, "size of the engine's prefix cache");
  add("--speed", t.result.engine.speed, "the engine works so many times as fast");
  add("--threads", t.result.threads, "threads that serve");
  add("--model", s.model, "name of the model");
  add("--drain-timeout", t.drain_seconds, "seconds that running and waiting requests get at shutdown");
  add("--keep-alive", t.keep_alive_seconds, "seconds between comments in a stream that stands still");
  app.add_flag("--quiet", s.quiet, "no line for each request");
}

std::chrono::milliseconds from_seconds(double seconds, char const* option) {
  constexpr auto most = 12.0 * 3600;
  if (!(seconds >= 0 && seconds <= most))
    throw usage_error{fmt::format("{} is {}; seconds from 0 to {} are needed", option, seconds, most)};
  return std::chrono::milliseconds{std::llround(seconds * 1000)};
}

command to_command(typed t) {
  auto c = std::move(t.result);
  if (t.port > 65'535) throw usage_error{fmt::format("--port is {}; ports end at 65535", t.port)};
  if (c.threads == 0 || c.threads > 256)
    throw usage_error{fmt::format("--threads is {}; 1 to 256 are needed", c.threads)};
  if (c.service.limits.lanes > 65'536)
    throw usage_error{fmt::format("--lanes is {}; the engine has at most 65536", c.service.limits.lanes)};
  if (!(c.engine.speed > 0 && std::isfinite(c.engine.speed)))
    throw usage_error{fmt::format("--speed is {}; a number above 0 is needed", c.engine.speed)};
  c.listen.port = static_cast<std::uint16_t>(t.port);
  c.engine.lanes = c.service.limits.lanes;
  auto& s = c.service;
  s.context_tokens = t.context.value_or(std::min<std::uint64_t>(8192, s.limits.kv_capacity));
  s.limits.max_wait = from_seconds(t.max_wait_seconds, "--max-wait");
  // A reply that cannot have its next step gives way: with a step above the headroom it would come back at once.
  s.growth_step = std::max(1U, std::min(s.growth_step, s.limits.decode_headroom));
  s.keep_alive = std::max(from_seconds(t.keep_alive_seconds, "--keep-alive"), std::chrono::milliseconds{1});
  c.drain_timeout = from_seconds(t.drain_seconds, "--drain-timeout");
  return c;
}

}  // namespace

std::variant<command, help_text> parse_command_line(int argc, char const* const* argv) {
  CLI::App app{description, "kvlane-server"};
  app.get_formatter()->column_width(34);
  typed t;
  t.result.service.limits.lanes = 4;
  t.result.service.limits.kv_capacity = 16'384;
  add_options(app, t);
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const&) {
    return help_text{app.help()};
  } catch (CLI::ParseError const& error) {
    throw usage_error{error.what()};
  }
  return to_command(std::move(t));
}

}  // namespace server
