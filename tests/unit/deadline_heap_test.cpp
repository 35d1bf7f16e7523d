#include <kvlane/detail/deadline_heap.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace {

using namespace std::chrono_literals;
using kvlane::time_point;
using kvlane::detail::deadline_heap;
using kvlane::detail::not_in_heap;

class deadline_node {
 public:
  deadline_node(time_point deadline, std::uint64_t arrival) : deadline_{deadline}, arrival_{arrival} {}
  [[nodiscard]] time_point deadline() const noexcept { return deadline_; }
  [[nodiscard]] std::uint64_t arrival() const noexcept { return arrival_; }
  std::size_t heap_index = not_in_heap;

 private:
  time_point deadline_;
  std::uint64_t arrival_;
};

constexpr auto at(int ms) { return time_point{} + std::chrono::milliseconds{ms}; }

void push(deadline_heap<deadline_node>& heap, deadline_node& n) {
  heap.reserve_one();
  heap.push(n);
}

TEST(DeadlineHeap, HasTheEarliestDeadlineOnTop) {
  deadline_node late{at(30), 0};
  deadline_node early{at(10), 1};
  deadline_node middle{at(20), 2};
  deadline_heap<deadline_node> heap;
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.top(), nullptr);
  for (auto* n : {&late, &early, &middle}) push(heap, *n);
  EXPECT_FALSE(heap.empty());
  EXPECT_EQ(heap.top(), &early);
  heap.erase(early);
  EXPECT_EQ(heap.top(), &middle);
  heap.erase(middle);
  EXPECT_EQ(heap.top(), &late);
  heap.erase(late);
  EXPECT_TRUE(heap.empty());
}

TEST(DeadlineHeap, EqualDeadlinesGoByArrival) {
  deadline_node younger{at(10), 7};
  deadline_node older{at(10), 3};
  deadline_heap<deadline_node> heap;
  push(heap, younger);
  push(heap, older);
  EXPECT_EQ(heap.top(), &older);
}

TEST(DeadlineHeap, ErasingWhoIsNotInItDoesNothing) {
  deadline_node in{at(10), 0};
  deadline_node out{at(5), 1};
  deadline_heap<deadline_node> heap;
  push(heap, in);
  heap.erase(out);
  EXPECT_EQ(heap.top(), &in);
  heap.erase(in);
  EXPECT_EQ(in.heap_index, not_in_heap);
  heap.erase(in);
  EXPECT_TRUE(heap.empty());
}

TEST(DeadlineHeap, AgreesWithASortedSetUnderRandomUse) {
  constexpr auto seed = 90125U;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random{seed};
  using key = std::tuple<time_point, std::uint64_t, deadline_node*>;
  deadline_heap<deadline_node> heap;
  std::set<key> sorted;
  std::vector<std::unique_ptr<deadline_node>> nodes;
  for (std::uint64_t step = 0; step != 20'000; ++step) {
    // Grows to some hundreds, shrinks to nothing, and again; few deadlines, so that many are equal.
    auto const growing = step % 2000 < 1000;
    if (random() % 3 != 0 ? growing : !growing) {
      auto& n = *nodes.emplace_back(std::make_unique<deadline_node>(at(static_cast<int>(random() % 50)), step));
      push(heap, n);
      sorted.emplace(n.deadline(), n.arrival(), &n);
    } else if (!sorted.empty()) {
      auto const skip = random() % 2 == 0 ? 0 : random() % sorted.size();
      auto const gone = std::next(sorted.begin(), static_cast<std::ptrdiff_t>(skip));
      auto* const n = std::get<deadline_node*>(*gone);
      heap.erase(*n);
      ASSERT_EQ(n->heap_index, not_in_heap);
      sorted.erase(gone);
    }
    ASSERT_EQ(heap.empty(), sorted.empty()) << "seed " << seed << ", step " << step;
    ASSERT_EQ(heap.top(), sorted.empty() ? nullptr : std::get<deadline_node*>(*sorted.begin()))
        << "seed " << seed << ", step " << step;
  }
}

}  // namespace
