#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

struct HistoryFlags {
  std::string folder;
  bool json = false;
  bool csv = false;
};

// Shares are kept as fractions and shown in percent, as the literature has them.
Cell percent(const RoundRecord& record, double share) {
  if (share < 0) return cell_none();
  Cell cell = cell_number(share, 4);
  cell.text = record.evaluated == 0 ? "-" : fmt::format("{:.2f}", 100 * share);
  return cell;
}

std::vector<Cell> row_of(const RoundRecord& r) {
  std::vector<Cell> row = {{r.checkpoint, std::to_string(r.checkpoint)},
                           cell_count(r.batches),
                           {r.epoch, std::to_string(r.epoch)},
                           cell_measured(r.loss, 4),
                           cell_measured(r.active, 1),
                           cell_measured(r.code_length, 3),
                           cell_measured(r.examples_per_second, 0),
                           {r.volunteers, std::to_string(r.volunteers)},
                           cell_measured(r.bytes_down, 0),
                           cell_measured(r.bytes_up, 0),
                           cell_count(r.evaluated),
                           {r.evaluated_all, r.evaluated_all ? "yes" : "no"}};
  visit_precision(r.precision,
                  [&](const char*, double value) { row.push_back(percent(r, value)); });
  row.push_back(percent(r, r.ndcg_at_3));
  row.push_back(percent(r, r.ndcg_at_5));
  row.push_back(r.calibration.is_fitted() ? cell_number(r.calibration.slope, 4) : cell_none());
  row.push_back(r.calibration.is_fitted() ? cell_number(r.calibration.offset, 4) : cell_none());
  row.push_back({r.wall_seconds, ""});
  row.push_back({r.rate_cuts, std::to_string(r.rate_cuts)});
  row.push_back(r.rows_digest == 0 ? cell_none()
                                   : cell_text(fmt::format("{:016x}", r.rows_digest)));
  return row;
}

}  // namespace

Report history_report(const std::vector<RoundRecord>& records) {
  const auto for_programs = [](const char* key) { return Column{key, "", false, false}; };
  Report report;
  ReportTable& table = report.table("history", {{"checkpoint", "round"},
                                                for_programs("batches"),
                                                {"epoch", "epochs"},
                                                {"loss", "loss"},
                                                {"active", "active"},
                                                for_programs("code_length"),
                                                {"examples_per_second", "examples/s"},
                                                {"volunteers", "volun."},
                                                {"bytes_down", "B down"},
                                                {"bytes_up", "B up"},
                                                for_programs("evaluated"),
                                                for_programs("evaluated_all"),
                                                {"p_at_1", "P@1 %"},
                                                {"p_at_3", "P@3 %"},
                                                {"p_at_5", "P@5 %"},
                                                {"psp_at_1", "PSP@1 %"},
                                                for_programs("psp_at_3"),
                                                for_programs("psp_at_5"),
                                                for_programs("p_at_1_halfwidth"),
                                                for_programs("ndcg_at_3"),
                                                for_programs("ndcg_at_5"),
                                                for_programs("calibration_slope"),
                                                for_programs("calibration_offset"),
                                                for_programs("wall_seconds"),
                                                for_programs("rate_cuts"),
                                                for_programs("rows_digest")});
  bool has_sample = false;
  for (const RoundRecord& record : records) {
    table.rows.push_back(row_of(record));
    has_sample |= record.evaluated != 0 && !record.evaluated_all;
  }
  report.text(
      "round: rounds folded; epochs: completed; loss: nats an example; active: neurons an "
      "example;\n"
      "B down, B up: bytes an example and volunteer; -: not measured.\n");
  if (has_sample) {
    report.text(
        "Some precisions are of a sample of the test file: --json says which, and how exact P@1 "
        "is.\n");
  }
  return report;
}

void add_history_command(CLI::App& app, int& exit_status) {
  CLI::App& history =
      *app.add_subcommand("history", "print loss, precision and speed, checkpoint by checkpoint");
  auto flags = std::make_shared<HistoryFlags>();
  add_store(history, flags->folder);
  CLI::Option* const json =
      history.add_flag("--json", flags->json, "one JSON object a line instead of a table");
  history.add_flag("--csv", flags->csv, "the fields of --json as CSV")->excludes(json);
  history.footer(std::string("May be asked for while the master runs. examples/s counts waits, and "
                             "evaluations not. The\n"
                             "fields of --json are listed in tools/JSON.md.\n\n"
                             "Examples:\n"
                             "  gleaner history run1\n"
                             "  gleaner history run1 --json | jq 'select(.p_at_1) | .p_at_1'\n\n") +
                 kStoreExitCodes);
  history.callback([flags, &exit_status] {
    exit_status = run_on_store(flags->folder, [&](RunStore& run) -> Result<void> {
      const Result<std::vector<RoundRecord>> records = run.history();
      if (!records) return records.error();
      const Report report = history_report(*records);
      if (flags->json) return print_out(json_lines(report.for_programs()["history"]));
      return print_report(report, report_form(false, flags->csv), "history", flags->folder);
    });
  });
}

}  // namespace gleaner
