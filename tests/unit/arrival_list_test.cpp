#include "support/extremes.hpp"

#include <kvlane/detail/arrival_list.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace {

using kvlane::detail::arrival_hook;
using kvlane::test::most;

class arrival_node {
 public:
  explicit arrival_node(std::uint64_t arrival, std::uint64_t demand = 1) : arrival_{arrival}, demand_{demand} {}
  [[nodiscard]] std::uint64_t arrival() const noexcept { return arrival_; }
  [[nodiscard]] std::uint64_t demand() const noexcept { return demand_; }
  arrival_hook<arrival_node> line;

 private:
  std::uint64_t arrival_;
  std::uint64_t demand_;
};

using list = kvlane::detail::arrival_list<arrival_node>;

/// Admits `n` out of `l`: everyone older there has been overtaken once more.
void admit(list& l, arrival_node& n) {
  l.overtake_before(n.arrival());
  l.erase(n);
}

TEST(ArrivalList, IsEmptyAtFirst) {
  list const l;
  EXPECT_TRUE(l.empty());
  EXPECT_EQ(l.oldest(), nullptr);
  EXPECT_EQ(l.youngest(), nullptr);
  EXPECT_EQ(l.most_overtaken(), 0U);
  EXPECT_EQ(l.oldest_readmitted(most), nullptr);
}

TEST(ArrivalList, StandsByArrivalHoweverNodesCome) {
  arrival_node a{10};
  arrival_node b{20};
  arrival_node c{30};
  list l;
  for (auto* n : {&b, &c, &a}) l.insert(*n);
  EXPECT_FALSE(l.empty());
  EXPECT_EQ(l.oldest(), &a);
  EXPECT_EQ(list::next(a), &b);
  EXPECT_EQ(list::next(b), &c);
  EXPECT_EQ(list::next(c), nullptr);
  EXPECT_EQ(l.youngest(), &c);
}

TEST(ArrivalList, AnAdmissionOvertakesAllWhoCameBefore) {
  arrival_node a{1};
  arrival_node b{2};
  arrival_node c{3};
  arrival_node d{4};
  list l;
  for (auto* n : {&a, &b, &c, &d}) l.insert(*n);
  admit(l, c);
  EXPECT_EQ(list::overtaken(a), 1U);
  EXPECT_EQ(list::overtaken(b), 1U);
  EXPECT_EQ(list::overtaken(d), 0U);
  admit(l, b);
  EXPECT_EQ(list::overtaken(a), 2U);
  EXPECT_EQ(list::overtaken(d), 0U);
  EXPECT_EQ(l.most_overtaken(), 2U);
}

TEST(ArrivalList, TheOldestOvertakesNobody) {
  arrival_node a{1};
  arrival_node b{2};
  list l;
  l.insert(a);
  l.insert(b);
  admit(l, a);
  EXPECT_EQ(list::overtaken(b), 0U);
  EXPECT_EQ(l.most_overtaken(), 0U);
}

TEST(ArrivalList, LeavingKeepsEverybodyElsesCount) {
  arrival_node a{1};
  arrival_node b{2};
  arrival_node c{3};
  list l;
  for (auto* n : {&a, &b, &c}) l.insert(*n);
  l.overtake_before(3);
  l.overtake_before(4);
  EXPECT_EQ(list::overtaken(c), 1U);
  l.erase(c);
  EXPECT_EQ(list::overtaken(b), 2U);
  EXPECT_EQ(list::overtaken(a), 2U);
  l.erase(a);
  EXPECT_EQ(list::overtaken(b), 2U);
  EXPECT_EQ(l.most_overtaken(), 2U);
}

TEST(ArrivalList, ThoseWhoJoinHaveNotBeenOvertaken) {
  arrival_node a{1};
  arrival_node b{2};
  list l;
  l.insert(a);
  l.overtake_before(2);
  l.insert(b);
  EXPECT_EQ(list::overtaken(b), 0U);
  EXPECT_EQ(list::overtaken(a), 1U);
}

TEST(ArrivalList, AnOvertakingFromOutsideCountsForThoseWhoCameBeforeIt) {
  arrival_node a{10};
  arrival_node b{20};
  list l;
  l.insert(a);
  l.insert(b);
  l.overtake_before(10);
  EXPECT_EQ(l.most_overtaken(), 0U) << "nobody came before 10";
  l.overtake_before(11);
  EXPECT_EQ(list::overtaken(a), 1U);
  EXPECT_EQ(list::overtaken(b), 0U);
  l.overtake_before(most);
  EXPECT_EQ(list::overtaken(a), 2U);
  EXPECT_EQ(list::overtaken(b), 1U);
}

TEST(ArrivalList, WhoComesBackTakesTheCountOfItsNextYoungerNeighbour) {
  arrival_node a{1};
  arrival_node back{2};
  arrival_node c{3};
  list l;
  l.insert(a);
  l.insert(c);
  l.overtake_before(4);
  l.overtake_before(2);
  l.insert(back);
  EXPECT_EQ(list::overtaken(c), 1U);
  EXPECT_EQ(list::overtaken(back), 1U);
  EXPECT_EQ(list::overtaken(a), 2U);
  l.overtake_before(3);
  EXPECT_EQ(list::overtaken(back), 2U);
  l.erase(back);
  l.erase(c);
  l.insert(back);
  EXPECT_EQ(list::overtaken(back), 0U) << "nobody younger is there";
}

TEST(ArrivalList, FindsTheOldestReadmittedThatFits) {
  arrival_node plain{1, 5};
  arrival_node large{2, 100};
  arrival_node small{3, 10};
  arrival_node lane_only{4, 0};
  for (auto* n : {&large, &small, &lane_only}) n->line.readmitted = true;
  list l;
  for (auto* n : {&plain, &large, &small, &lane_only}) l.insert(*n);
  EXPECT_EQ(l.oldest_readmitted(100), &large);
  EXPECT_EQ(l.oldest_readmitted(99), &small);
  EXPECT_EQ(l.oldest_readmitted(10), &small);
  EXPECT_EQ(l.oldest_readmitted(9), &lane_only) << "the one that joined in the usual way does not count";
  EXPECT_EQ(l.oldest_readmitted(0), &lane_only);
  EXPECT_EQ(l.oldest_readmitted(most), &large);
  l.erase(lane_only);
  EXPECT_EQ(l.oldest_readmitted(9), nullptr);
}

/// The same by the definition: every count by itself.
class naive_list {
 public:
  struct entry {
    std::unique_ptr<arrival_node> waiter;
    std::uint64_t overtaken = 0;
  };

  arrival_node& join(std::uint64_t arrival, std::uint64_t demand, bool readmitted) {
    auto const younger = line_.upper_bound(arrival);
    auto const overtaken = younger == line_.end() ? 0 : younger->second.overtaken;
    auto& e = line_[arrival] = {.waiter = std::make_unique<arrival_node>(arrival, demand), .overtaken = overtaken};
    e.waiter->line.readmitted = readmitted;
    return *e.waiter;
  }
  void overtake_before(std::uint64_t arrival) {
    for (auto& [a, e] : line_)
      if (a < arrival) ++e.overtaken;
  }
  std::unique_ptr<arrival_node> leave(std::uint64_t arrival) {
    return std::move(line_.extract(arrival).mapped().waiter);
  }
  arrival_node* oldest_readmitted(std::uint64_t tokens) const {
    for (auto const& [a, e] : line_)
      if (e.waiter->line.readmitted && e.waiter->demand() <= tokens) return e.waiter.get();
    return nullptr;
  }
  [[nodiscard]] std::map<std::uint64_t, entry> const& all() const { return line_; }
  [[nodiscard]] bool has(std::uint64_t arrival) const { return line_.contains(arrival); }
  [[nodiscard]] arrival_node& at(std::size_t place) const {
    return *std::next(line_.begin(), static_cast<std::ptrdiff_t>(place))->second.waiter;
  }

 private:
  std::map<std::uint64_t, entry> line_;
};

void expect_equal(list const& l, naive_list const& naive, std::mt19937& random) {
  auto const* n = l.oldest();
  auto least = most;
  for (auto const& [arrival, e] : naive.all()) {
    ASSERT_EQ(n, e.waiter.get());
    ASSERT_EQ(list::overtaken(*n), e.overtaken) << "arrival " << arrival;
    ASSERT_LE(e.overtaken, least) << "counts never fall with age";
    least = e.overtaken;
    n = list::next(*n);
  }
  ASSERT_EQ(n, nullptr);
  ASSERT_EQ(l.empty(), naive.all().empty());
  ASSERT_EQ(l.youngest(), naive.all().empty() ? nullptr : naive.all().rbegin()->second.waiter.get());
  ASSERT_EQ(l.most_overtaken(), naive.all().empty() ? 0 : naive.all().begin()->second.overtaken);
  auto const tokens = random() % 60;
  ASSERT_EQ(l.oldest_readmitted(tokens), naive.oldest_readmitted(tokens));
}

TEST(ArrivalList, AgreesWithCountingEveryOvertakingByItself) {
  constexpr auto first_seed = 1000U;
  for (auto seed = first_seed; seed != first_seed + 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random{seed};
    list l;
    naive_list naive;
    std::uint64_t arrivals = 0;
    std::vector<std::uint64_t> running;  // arrivals of those admitted, who may be preempted and come back
    for (int step = 0; step != 400; ++step) {
      auto const someone = [&]() -> arrival_node& { return naive.at(random() % naive.all().size()); };
      switch (naive.all().empty() ? 0 : random() % 7) {
        case 0:
        case 1:
        case 2: l.insert(naive.join(++arrivals, random() % 50, false)); break;
        case 3: {
          auto& n = someone();
          auto const arrival = n.arrival();
          admit(l, n);
          naive.leave(arrival);
          naive.overtake_before(arrival);
          running.push_back(arrival);
          break;
        }
        case 4: {
          auto& n = someone();
          l.erase(n);
          naive.leave(n.arrival());
          break;
        }
        case 5: {  // somebody of a lower priority, or who did not wait, is admitted
          auto const arrival = random() % 2 == 0 ? ++arrivals : random() % (arrivals + 1);
          if (naive.has(arrival)) break;
          l.overtake_before(arrival);
          naive.overtake_before(arrival);
          break;
        }
        default:
          if (running.empty()) break;
          l.insert(naive.join(running.back(), random() % 50, true));
          running.pop_back();
      }
      expect_equal(l, naive, random);
      ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    }
    while (!naive.all().empty()) {
      auto& n = naive.at(0);
      l.erase(n);
      naive.leave(n.arrival());
    }
    EXPECT_TRUE(l.empty());
  }
}

}  // namespace
