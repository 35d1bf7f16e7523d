// kvlane_memory: what a waiter costs in bytes, and how often the queue allocates and reads its clock. Prints a Markdown
// table. A program of its own, for it replaces operator new.

#include "prompts.hpp"
#include "table.hpp"

#include <kvlane/kvlane.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

struct heap_use {
  std::uint64_t allocations = 0;
  std::int64_t live_bytes = 0;  // as they were asked for
};
heap_use heap;

// The size stands before each block. Nothing here needs more than the usual alignment.
constexpr std::size_t header = alignof(std::max_align_t);

}  // namespace

// Not inlined, or GCC takes the pair of malloc and an operator for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  auto* const block = static_cast<std::byte*>(std::malloc(size + header));
  if (block == nullptr) throw std::bad_alloc{};
  ::new (block) std::size_t{size};
  ++heap.allocations;
  heap.live_bytes += static_cast<std::int64_t>(size);
  return block + header;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  auto* const block = static_cast<std::byte*>(memory) - header;
  heap.live_bytes -= static_cast<std::int64_t>(*std::launder(reinterpret_cast<std::size_t*>(block)));
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }

namespace kvlane::bench {

namespace {

struct counting_clock {
  static inline std::uint64_t reads = 0;
  time_point operator()() const noexcept {
    ++reads;
    return std::chrono::steady_clock::now();
  }
};

using counted_queue = basic_admission_queue<cache_aware, null_observer, std::mutex, counting_clock>;

constexpr std::uint32_t no_limit = 1'000'000;

struct completion {
  void operator()(admission const&) const noexcept {}
  void* owner;
  std::uint64_t tag;
};

void write_row(std::string const& what, double value, double bound) {
  std::cout << "| " << what << " | " << text_of(value) << " | ";
  if (bound < 0)
    std::cout << "stated | |\n";
  else
    std::cout << "<= " << text_of(bound) << " | " << (bound == 0 && value > 0 ? "missed" : compare(value, bound))
              << " |\n";
}

/// Bytes for each of `waiting` waiters, less those of their prompts and completions.
double bytes_each(std::size_t waiting, prompt_shape const& shape, duration max_wait) {
  counted_queue queue{{.lanes = 0, .kv_capacity = no_limit, .max_waiting = no_limit}};
  prompt_source prompts{shape};
  std::vector<ticket> places(waiting);
  auto const before = heap.live_bytes;
  for (auto& place : places) {
    auto const prompt = shape.length == 0 ? std::span<token_id const>{} : prompts.next();
    std::ignore =
        queue.enqueue({.prompt = prompt, .prompt_tokens = 512, .max_wait = max_wait}, place, completion{&queue, 1});
  }
  auto const all = static_cast<double>(heap.live_bytes - before) / static_cast<double>(waiting);
  return all - static_cast<double>(shape.length * sizeof(token_id) + sizeof(completion));
}

void count_fast_path() {
  counted_queue queue{{.lanes = 8, .kv_capacity = no_limit}};
  std::ignore = queue.try_admit({.prompt_tokens = 900});
  auto const before = heap.allocations;
  counting_clock::reads = 0;
  for (int i = 0; i != 1000; ++i) std::ignore = queue.try_admit({.prompt_tokens = 900, .max_tokens = 256});
  write_row("allocations in 1,000 times try_admit + release, nobody waiting",
            static_cast<double>(heap.allocations - before), 0);
  write_row("clock reads in the same", static_cast<double>(counting_clock::reads), 0);
}

void count_in_line() {
  counted_queue queue{{.lanes = 1, .kv_capacity = no_limit, .max_waiting = no_limit}};
  auto held = queue.try_admit({.prompt_tokens = 900});
  prompt_source prompts{{}};
  std::vector<ticket> places(1024);
  auto before = heap.allocations;
  for (auto& place : places) std::ignore = queue.enqueue({.prompt = prompts.next()}, place, completion{&queue, 1});
  write_row("allocations in an enqueue that joins, average of 1,024",
            static_cast<double>(heap.allocations - before) / 1024, -1);
  before = heap.allocations;
  counting_clock::reads = 0;
  held->release();
  write_row("allocations in 1,024 admissions out of the line, one after the other",
            static_cast<double>(heap.allocations - before), 0);
  write_row("clock reads in each of them", static_cast<double>(counting_clock::reads) / 1024, -1);
}

}  // namespace

void report() {
  std::thread{[] {}}.join();
  constexpr prompt_shape none{.length = 0, .common = 0, .own = 0};
  std::cout << "| what | measured | target | result |\n|---|--:|--:|---|\n";
  count_fast_path();
  count_in_line();
  write_row("bytes for a waiter besides prompt and completion, 4,096 waiting", bytes_each(4096, {}, forever), 384);
  write_row("the same, 65,536 waiting", bytes_each(65'536, {}, forever), 384);
  write_row("the same, 4,096 waiting, each with a deadline", bytes_each(4096, {}, std::chrono::seconds{60}), 384);
  write_row("the same, 4,096 waiting, no prompts given", bytes_each(4096, none, forever), 384);
  write_row("of these, the size of the waiter object with a completion of 16 bytes",
            static_cast<double>(sizeof(detail::place_with<cache_aware, completion>) - sizeof(completion)), -1);
  std::cout << "\n";
}

}  // namespace kvlane::bench

int main() { kvlane::bench::report(); }
