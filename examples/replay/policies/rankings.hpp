#pragma once

#include "policies/ranked_scan.hpp"
#include "workload.hpp"

#include <kvlane/waiter_base.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace replay {

/// Most cached tokens first: SGLang's "lpm" without its fallback.
struct longest_prefix_first {
  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return a.saved_cost() > b.saved_cost();
  }
};

/// Most cached tokens first, but first come, first served while more than 128 wait, as SGLang does it.
struct lpm_fcfs_128 {
  static constexpr std::size_t longest_sorted_line = 128;

  std::uint64_t operator()(kvlane::waiter_base const& w, line_view const& line) const noexcept {
    return line.waiting > longest_sorted_line ? 0 : ~w.saved_cost();
  }
};

/// Tokens that a waiter will need to be computed, as far as a server knows: of its prompt what is not cached, of its reply
/// what was reserved.
struct uncached_work {
  std::uint64_t cost_per_token = 1;  ///< what a cached token counts in saved_cost; 0: nothing is known to be cached

  std::uint64_t operator()(kvlane::waiter_base const& w) const noexcept {
    auto const cached = cost_per_token == 0 ? 0 : w.saved_cost() / cost_per_token;
    return std::max<std::uint64_t>(w.demand() - std::min(cached, w.demand()), 1);
  }
};

/// Highest response ratio next: (waited + work) / work, the work in uncached tokens. How many tokens a second counts for
/// the ratio, but not for the order: it is that of waited / work.
struct hrrn {
  uncached_work work;

  double operator()(kvlane::waiter_base const& w, line_view const& line) const noexcept {
    return -static_cast<double>((line.now - w.joined()).count()) / static_cast<double>(work(w));
  }
};

/// Least uncached work first.
struct shortest_uncached_first {
  uncached_work work;

  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return work(a) < work(b);
  }
};

/// Least uncached work first, by somebody who knows how long replies will be: no server can, so this is a yardstick. The
/// tag of a waiter is its place in `requests`, which must live as long.
struct clairvoyant_sjf {
  uncached_work work;
  std::span<trace_request const> requests;
  std::uint32_t max_tokens = ~0U;  ///< longer replies end there
  std::uint32_t headroom = 0;      ///< what of a reply counts in the demand

  bool operator()(kvlane::waiter_base const& a, kvlane::waiter_base const& b) const noexcept {
    return true_work(a) < true_work(b);
  }

 private:
  [[nodiscard]] std::uint64_t true_work(kvlane::waiter_base const& w) const noexcept {
    return work(w) + std::min(requests[w.tag()].reply_tokens, max_tokens) - std::min(headroom, max_tokens);
  }
};

}  // namespace replay
