#include "command_line.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace {

using server::command;
using server::usage_error;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::variant<command, server::help_text> parse(std::vector<char const*> options) {
  options.insert(options.begin(), "kvlane-server");
  return server::parse_command_line(static_cast<int>(options.size()), options.data());
}
command parsed(std::vector<char const*> options) { return std::get<command>(parse(std::move(options))); }
std::string complaint(std::vector<char const*> options) {
  try {
    static_cast<void>(parse(std::move(options)));
  } catch (usage_error const& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(ServerCommandLine, ServesOnTheLoopbackInterfaceUnlessToldOtherwise) {
  auto const c = parsed({});
  EXPECT_EQ(c.listen.address, "127.0.0.1");
  EXPECT_EQ(c.listen.port, 8080);
  EXPECT_EQ(c.service.limits.max_wait, kvlane::duration{30s});
  EXPECT_EQ(c.service.limits.max_waiting, std::nullopt) << "follows the lanes";
  EXPECT_EQ(c.drain_timeout, 30s);
}

TEST(ServerCommandLine, TheEngineHasTheLanesOfTheQueue) {
  auto const c = parsed({"--lanes", "7"});
  EXPECT_EQ(c.service.limits.lanes, 7U);
  EXPECT_EQ(c.engine.lanes, 7U);
}

TEST(ServerCommandLine, TheContextIsNotAboveTheKvTokensUnlessGiven) {
  EXPECT_EQ(parsed({}).service.context_tokens, 8192U);
  EXPECT_EQ(parsed({"--kv-tokens", "600"}).service.context_tokens, 600U);
  EXPECT_EQ(parsed({"--kv-tokens", "600", "--context", "900"}).service.context_tokens, 900U);
}

TEST(ServerCommandLine, AReplyNeverGrowsByMoreThanTheHeadroomItComesBackWith) {
  EXPECT_EQ(parsed({"--headroom", "16"}).service.growth_step, 16U);
  EXPECT_EQ(parsed({"--headroom", "1000"}).service.growth_step, 64U);
  EXPECT_EQ(parsed({"--headroom", "0"}).service.growth_step, 1U) << "it has to grow by something";
}

TEST(ServerCommandLine, SecondsMayHaveFractions) {
  auto const c = parsed({"--max-wait", "0.25", "--drain-timeout", "0", "--keep-alive", "0"});
  EXPECT_EQ(c.service.limits.max_wait, kvlane::duration{250ms});
  EXPECT_EQ(c.drain_timeout, 0ms);
  EXPECT_EQ(c.service.keep_alive, 1ms) << "a pause, however short";
}

TEST(ServerCommandLine, SaysWhatIsWrongAndWhatIsNeeded) {
  EXPECT_EQ(complaint({"--port", "70000"}), "--port is 70000; ports end at 65535");
  EXPECT_EQ(complaint({"--speed", "0"}), "--speed is 0; a number above 0 is needed");
  EXPECT_EQ(complaint({"--speed", "nan"}), "--speed is nan; a number above 0 is needed");
  EXPECT_EQ(complaint({"--threads", "0"}), "--threads is 0; 1 to 256 are needed");
  EXPECT_EQ(complaint({"--max-wait", "-1"}), "--max-wait is -1; seconds from 0 to 43200 are needed");
  EXPECT_THAT(complaint({"--lanes", "many"}), HasSubstr("--lanes"));
  EXPECT_THAT(complaint({"--nothing"}), HasSubstr("--nothing"));
}

TEST(ServerCommandLine, HelpIsText) {
  EXPECT_THAT(std::get<server::help_text>(parse({"--help"})).text, HasSubstr("--drain-timeout"));
}

}  // namespace
