// The reports of `gleaner inspect`, `history`, `receipts`, `status` and `plot`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/data/name_table.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

// The views of `gleaner inspect`, a function each. Each reads one moment of the run.

struct InspectRequest {
  std::string which;   // the shard, table or label
  std::string labels;  // file of label names
  TextStyle style;
};

Result<Report> inspect_summary(RunStore& run, const InspectRequest& request);
Result<Report> inspect_config(RunStore& run, const InspectRequest& request);
Result<Report> inspect_recipe(RunStore& run, const InspectRequest& request);
Result<Report> inspect_history(RunStore& run, const InspectRequest& request);
Result<Report> inspect_checkpoints(RunStore& run, const InspectRequest& request);
Result<Report> inspect_space(RunStore& run, const InspectRequest& request);
Result<Report> inspect_volunteers(RunStore& run, const InspectRequest& request);
Result<Report> inspect_units(RunStore& run, const InspectRequest& request);
Result<Report> inspect_traffic(RunStore& run, const InspectRequest& request);
Result<Report> inspect_shard(RunStore& run, const InspectRequest& request);
Result<Report> inspect_layer(RunStore& run, const InspectRequest& request);
Result<Report> inspect_neuron(RunStore& run, const InspectRequest& request);
// For a run without a hidden layer. Names of features come from features.txt beside the file of
// label names.
Result<Report> inspect_wide_neuron(RunStore& run, const InspectRequest& request,
                                   std::uint32_t label, const NameTable& names);
Result<Report> inspect_table(RunStore& run, const InspectRequest& request);

// The records as a table, for people at most 100 columns wide.
Report history_report(const std::vector<RoundRecord>& records);

struct RoundReceipts {
  RoundIndex round = 0;
  Receipts receipts;
};

// For people a line per pair of holder and auditor, and a summary; for programs a row per shard and
// round.
Report receipts_report(const std::vector<RoundReceipts>& rounds, ReportForm form);

// "3 of 10".
std::string part_of(std::uint64_t done, std::uint64_t all);

// The state of a run, from the master's answer. Pure.
Report status_report(const RunStatus& status, const std::string& address, TextStyle style);

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascends
};

struct Plot {
  std::string name;  // of the file, without its ending
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<PlotSeries> series;  // none without points
  bool is_from_zero = true;        // the y axis
  bool is_stepped = false;         // steps, as for a number of volunteers
};

// All plots of a history; a figure that was never measured has no series. The lag comes from the
// plan.
std::vector<Plot> plots_of(const std::vector<RoundRecord>& history, const ModelConfig& model);

// The commands for gnuplot. Requires a series.
std::string gnuplot_commands(const Plot& plot, const std::string& subject);

}  // namespace gleaner
