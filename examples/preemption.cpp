// KV tokens run out in the middle of a reply: the engine preempts one sequence, so that another can go on. A hold makes
// giving back, growing and deciding one step: without it the tokens would go to the line before the reply gets them.

#include <kvlane/kvlane.hpp>

#include <cstdint>
#include <cstdio>
#include <utility>

using ull = unsigned long long;  // what printf calls a number of 64 bits

struct sequence {
  char name;
  kvlane::lease slot{};
  kvlane::ticket place{};  // given up before the lease goes back

  void start(kvlane::admission outcome) {
    if (!outcome) return static_cast<void>(std::printf("  %c: %s\n", name, outcome.error().message().c_str()));
    slot = std::move(*outcome);
    std::printf("  %c runs on lane %u with %llu tokens\n", name, slot.lane(), static_cast<ull>(slot.tokens()));
  }
  auto starter() {
    return [this](kvlane::admission outcome) { start(std::move(outcome)); };
  }
};

void submit(kvlane::admission_queue& queue, sequence& s, kvlane::request const& r) {
  if (auto now = queue.enqueue(r, s.place, s.starter())) s.start(std::move(*now));
}

/// Gives `s` so many tokens, if need be those of `victim`, which goes on as `rest` when there is room again.
bool grow(kvlane::admission_queue& queue, sequence& s, std::uint64_t tokens, sequence& victim,
          kvlane::request const& rest) {
  if (s.slot.try_grow_to(tokens)) return true;
  std::printf("  %c cannot have %llu tokens: %c gives its own back\n", s.name, static_cast<ull>(tokens), victim.name);
  auto const hold = queue.hold_dispatch();
  // While the hold lives only a refusal comes at once, and then the victim has kept its lease.
  if (auto const refused = queue.readmit(std::move(victim.slot), rest, victim.place, victim.starter())) return false;
  return s.slot.try_grow_to(tokens);
}  // the hold ends, and whoever fits is admitted

void look(kvlane::admission_queue const& queue) {
  auto const now = queue.snapshot();
  std::printf("  %llu of %llu tokens used, in line:", static_cast<ull>(now.kv_tokens_used),
              static_cast<ull>(now.kv_capacity));
  for (auto const& w : queue.waiters()) std::printf(" %c", static_cast<char>(w.tag));
  std::puts("");
}

int main() {
  kvlane::admission_queue queue{{.lanes = 2, .kv_capacity = 1000, .decode_headroom = 100}};
  sequence a{'a'}, b{'b'}, c{'c'}, d{'d'};
  std::puts("a and b run, for of a reply only the headroom is reserved; c and d wait for a lane");
  submit(queue, a, {.prompt_tokens = 400, .max_tokens = 400, .tag = 'a'});
  submit(queue, b, {.prompt_tokens = 400, .max_tokens = 400, .tag = 'b'});
  submit(queue, c, {.prompt_tokens = 300, .tag = 'c'});
  submit(queue, d, {.prompt_tokens = 100, .tag = 'd'});
  look(queue);
  std::puts("both have made 100 tokens, and a has to grow; d fits into what is left");
  if (!grow(queue, a, 800, b, {.prompt_tokens = 500, .max_tokens = 300, .tag = 'b'}))
    std::puts("  no room: the reply of a ends here, with finish_reason \"length\"");
  look(queue);
  std::puts("a ends: b goes on, before c");
  a.slot.release();
  look(queue);
}
