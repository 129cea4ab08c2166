// `gleaner bench`: what this machine does in Gleaner's loops, beside what it could do.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench_loops.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `bench` to `app`, as add_history_command does. Exit status: 0 done, 1
// failure of the system, 2 usage.
void add_bench_command(CLI::App& app, int& exit_status);

// A line of the table without its end. The share is the floor in percent of the time taken.
std::string bench_table_line(const BenchLine& line);

// One JSON object: the machine's peaks, the width measured at, and every line.
std::string bench_json(const MachinePeaks& peaks, std::uint32_t hidden,
                       const std::vector<BenchLine>& lines);

}  // namespace gleaner
