#pragma once

#include "report.hpp"
#include "simulation.hpp"

#include <gtest/gtest.h>

namespace replay::testing {

/// Expects that the order kept in an index and the order by sorting give one report, byte for byte, as table and as JSON.
/// Returns the result.
inline run_result expect_same_reports(workload const& w, simulation_settings const& s) {
  auto const of = [&](policy p) {
    // Both under one name.
    return comparison{.title = w.title, .skipped_lines = {}, .columns = {{policy::cache_aware, simulate(w, p, s)}}};
  };
  auto const index = of(policy::cache_aware);
  auto const scan = of(policy::cache_aware_scan);
  EXPECT_EQ(table_of(index), table_of(scan));
  EXPECT_EQ(json_of(s, {index}).dump(2), json_of(s, {scan}).dump(2));
  EXPECT_EQ(index.columns.front().result.core.decisions, scan.columns.front().result.core.decisions);
  return index.columns.front().result;
}

}  // namespace replay::testing
