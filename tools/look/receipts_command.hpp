// `gleaner receipts`: who made the shards of each checkpoint, and who checked it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `receipts` to `app`. It runs while `app` parses a command line that names it
// and puts the exit status into `exit_status`, which must outlive the parsing: 0 done, 1 failure of
// the system, 2 usage, 4 no usable store.
void add_receipts_command(CLI::App& app, int& exit_status);

struct RoundReceipts {
  RoundIndex round = 0;
  Receipts receipts;
};

// For people a line for each that a volunteer held and another audited, and a sentence on all; for
// programs a row for each shard of each round.
Report receipts_report(const std::vector<RoundReceipts>& rounds, ReportForm form);

}  // namespace gleaner
