// The costs on this processor, or on that of a file of `gleaner bench --json`, of one of each thing
// that a plan counts.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/bench/bench_loops.hpp"
#include "tools/plan/plan.hpp"

namespace gleaner {

// Refused when a line is missing.
Result<MachineCosts> costs_of(const std::vector<BenchLine>& lines, std::uint32_t hidden);

// Reads what `gleaner bench --json` printed.
Result<MachineCosts> parse_costs(const std::string& json);
Result<MachineCosts> read_costs(const std::string& file);

// A few calls each, some seconds in all. What is stored is stored in a folder of its own in
// `folder`.
BenchShape quick_shape(std::uint32_t hidden, const std::string& folder);
// Measures here.
Result<MachineCosts> measure_costs(const BenchShape& shape);

}  // namespace gleaner
