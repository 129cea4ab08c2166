// The views of `gleaner inspect`, a function each. Each reads one moment of the run.
#pragma once

#include <cstdint>
#include <string>

#include "common/dataset/name_table.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

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

}  // namespace gleaner
