// `gleaner inspect`: what is in a store, in views that are each read at a glance.
#pragma once

#include <cstdint>
#include <string>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// The views of `gleaner inspect`, a function each. Each reads one moment of the run.

struct InspectRequest {
  std::string which;   // the shard, table or label
  std::string labels;  // file of label names
  TextStyle style;
};

Result<Report> inspect_summary(RunStore& run, const InspectRequest& request);
Result<Report> inspect_config(RunStore& run, const InspectRequest& request);
Result<Report> inspect_history(RunStore& run, const InspectRequest& request);
Result<Report> inspect_checkpoints(RunStore& run, const InspectRequest& request);
Result<Report> inspect_space(RunStore& run, const InspectRequest& request);
Result<Report> inspect_volunteers(RunStore& run, const InspectRequest& request);
Result<Report> inspect_units(RunStore& run, const InspectRequest& request);
Result<Report> inspect_traffic(RunStore& run, const InspectRequest& request);
Result<Report> inspect_shard(RunStore& run, const InspectRequest& request);
Result<Report> inspect_layer(RunStore& run, const InspectRequest& request);
Result<Report> inspect_neuron(RunStore& run, const InspectRequest& request);
// Does it for a run without a hidden layer. Names of features come from features.txt beside the
// file of label names.
Result<Report> inspect_wide_neuron(RunStore& run, const InspectRequest& request,
                                   std::uint32_t label, const NameTable& names);
Result<Report> inspect_table(RunStore& run, const InspectRequest& request);

// Adds the sub-command `inspect` to `app`; see add_history_command.
void add_inspect_command(CLI::App& app, int& exit_status);

// `gleaner diff`: what two stores have in common and what not.

// Adds the sub-command `diff` to `app`; see add_history_command.
void add_diff_command(CLI::App& app, int& exit_status);

}  // namespace gleaner
