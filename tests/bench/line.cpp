#include "baselines.hpp"
#include "catalog.hpp"
#include "standing_line.hpp"
#include "table.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kvlane::bench {

namespace {

constexpr std::size_t sizes[] = {1, 16, 256, 4096, 65'536};
constexpr std::size_t all_fit = 1;
constexpr std::size_t half_fit = 2;
constexpr std::size_t few_fit = 64;
constexpr prompt_shape wide_root{.common = 0};

side admissions(crowd const& who) {
  auto const line = std::make_shared<standing_line<>>(who);
  return {.measure = [line](std::size_t rounds) { return line->time_admissions(rounds); }};
}

side whole_cycles(crowd const& who) {
  auto const line = std::make_shared<standing_line<>>(who);
  return {.measure = [line](std::size_t rounds) { return line->time_whole_cycles(rounds); }};
}

goal target_of(crowd const& who) {
  using std::chrono::microseconds;
  if (who.waiting == 4096) return at_most(who.fitting_every == all_fit ? microseconds{1} : microseconds{3});
  if (who.waiting == 65'536 && who.fitting_every == all_fit) return at_most(microseconds{2});
  return stated();
}

std::string waiting_text(crowd const& who) { return text_of(who.waiting) + " waiting"; }

row admission_row(std::string const& what, crowd const& who) {
  return {what + ", " + waiting_text(who), a_mutex_pair, target_of(who),
          [who] { return contest{admissions(who), mutex_pair()}; }};
}

row growth_row(std::string const& what, crowd const& who) {
  return {what + ", 4,096 waiting", "the same, 16 waiting", at_most_times(4), [who] {
            auto large = who;
            auto small = who;
            large.waiting = 4096;
            small.waiting = 16;
            return contest{admissions(large), admissions(small)};
          }};
}

std::vector<row> rows_of(scores scored) {
  std::vector<row> rows;
  auto const add = [&](std::string const& what, std::size_t fitting_every, prompt_shape const& prompts) {
    for (auto const size : sizes)
      if (size != 1 || fitting_every == all_fit)
        rows.push_back(admission_row(what, {size, fitting_every, scored, prompts}));
  };
  add("all fit", all_fit, {});
  rows.push_back(growth_row("all fit", {.scored = scored}));
  add("half fit", half_fit, {});
  add("tight: 1 of 64 fits", few_fit, {});
  if (scored == scores::equal) add("half fit, wide root", half_fit, wide_root);
  return rows;
}

}  // namespace

topic line_of_equals() {
  return {
      "Admission out of the line, equal scores",
      "A burst: everybody has come in one turn and nothing is cached. Measured: a lease is released, the next waiter "
      "is "
      "picked, its callback keeps the new lease. The enqueue of those who take their place is not counted (see below). "
      "Prompts have 512 tokens: 128 that all share, 256 that eight share, 128 of their own; with a wide root the first "
      "128 are the family's too. 4 lanes. With a new crowd its memory has just been written and the caches of the "
      "processor "
      "are cold; where few fit, a crowd serves for few admissions, and that shows.",
      rows_of(scores::equal)};
}

topic spread_line() {
  topic t{"Admission out of the line, spread scores",
          "As above, with a cached prefix of a random length for each waiter, and waiters of many ages. The last row "
          "counts "
          "the whole life: enqueue of the next one, its admission, and the end of its ticket.",
          rows_of(scores::spread)};
  t.rows.push_back({"all fit, 4,096 waiting, with enqueue and the end of the ticket", a_mutex_pair, stated(),
                    [] { return contest{whole_cycles({.waiting = 4096, .scored = scores::spread}), mutex_pair()}; }});
  return t;
}

}  // namespace kvlane::bench
