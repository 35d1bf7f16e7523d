// The example of the README, with all that it leaves out: a chat waits for a lane and KV tokens, is generated, and gives them
// back; one that can never fit is told so the way an HTTP client wants to hear it.

#include <kvlane/admission_queue.hpp>
#include <kvlane/asio.hpp>
#include <kvlane/http.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

struct chat {
  std::vector<kvlane::token_id> tokens;
  std::uint32_t max_tokens;
};

struct reply {
  int status = 200;
  std::string body;
};

asio::awaitable<reply> generate(chat const& c, kvlane::lane_id lane) {
  co_await asio::post(asio::use_awaitable);  // where an engine would work
  co_return reply{.body = std::to_string(c.tokens.size()) + " tokens answered on lane " + std::to_string(lane)};
}

reply refuse(kvlane::http_reply refusal) { return {refusal.status, std::move(refusal.body)}; }

// clang-format off: as in the README
kvlane::admission_queue queue{{.lanes = 8, .kv_capacity = 131'072}};

asio::awaitable<reply> on_chat(chat const& c) {
  auto slot = co_await kvlane::async_admit(
      queue, {.prompt = c.tokens, .max_tokens = c.max_tokens, .max_wait = 30s}, asio::use_awaitable);
  if (!slot) co_return refuse(kvlane::to_http(slot.error()));   // 429, Retry-After, JSON body
  co_return co_await generate(c, slot->lane());
}                                                               // lane and KV tokens go back here
// clang-format on

int main() {
  chat const chats[] = {{.tokens = {1, 2, 3}, .max_tokens = 256},
                        {.tokens = std::vector<kvlane::token_id>(200'000), .max_tokens = 256}};
  asio::io_context context;
  for (auto const& c : chats)
    asio::co_spawn(context, on_chat(c), [](std::exception_ptr const& fault, reply const& r) {
      if (fault) std::rethrow_exception(fault);
      std::printf("%d %s\n", r.status, r.body.c_str());
    });
  context.run();
}
