#include "tools/history_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/store_access.hpp"

namespace gleaner {
namespace {

struct HistoryFlags {
  std::string folder;
  bool json = false;
};

std::string number(double value, const char* format) {
  return value < 0 ? "-" : fmt::format(fmt::runtime(format), value);
}

// Shares are kept as fractions and shown in percent, as the literature has them.
std::string percent(const HistoryRecord& record, double share) {
  return record.evaluated == 0 ? "-" : number(share < 0 ? share : 100 * share, "{:.2f}");
}

nlohmann::ordered_json or_null(double value) {
  return value < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
}

nlohmann::ordered_json to_json(const HistoryRecord& record) {
  nlohmann::ordered_json line;
  line["checkpoint"] = record.checkpoint;
  line["batches"] = record.batches;
  line["epoch"] = record.epoch;
  line["loss"] = or_null(record.loss);
  line["active"] = or_null(record.active);
  line["examples_per_second"] = or_null(record.examples_per_second);
  line["volunteers"] = record.volunteers;
  line["bytes_down"] = or_null(record.bytes_down);
  line["bytes_up"] = or_null(record.bytes_up);
  line["evaluated"] = record.evaluated;
  line["evaluated_all"] = record.evaluated_all;
  line["p_at_1"] = or_null(record.p_at_1);
  line["p_at_3"] = or_null(record.p_at_3);
  line["p_at_5"] = or_null(record.p_at_5);
  line["psp_at_1"] = or_null(record.psp_at_1);
  line["psp_at_3"] = or_null(record.psp_at_3);
  line["psp_at_5"] = or_null(record.psp_at_5);
  line["wall_seconds"] = record.wall_seconds;
  return line;
}

constexpr const char* kRowFormat =
    "{:>6} {:>6} {:>10} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>6} {:>7} {:>7}\n";

}  // namespace

std::string history_table(const std::vector<HistoryRecord>& records) {
  std::string text = fmt::format(kRowFormat, "round", "epochs", "examples/s", "loss", "active",
                                 "P@1 %", "P@3 %", "P@5 %", "PSP@1 %", "volun.", "B down", "B up");
  bool has_sample = false;
  for (const HistoryRecord& r : records) {
    has_sample |= r.evaluated != 0 && !r.evaluated_all;
    text += fmt::format(kRowFormat, r.checkpoint, r.epoch, number(r.examples_per_second, "{:.0f}"),
                        number(r.loss, "{:.4f}"), number(r.active, "{:.1f}"), percent(r, r.p_at_1),
                        percent(r, r.p_at_3), percent(r, r.p_at_5), percent(r, r.psp_at_1),
                        r.volunteers, number(r.bytes_down, "{:.0f}"), number(r.bytes_up, "{:.0f}"));
  }
  text +=
      "round: rounds folded; epochs: completed; loss: nats an example; active: neurons an "
      "example;\n"
      "B down, B up: bytes an example and volunteer; -: not measured.\n";
  if (has_sample) text += "Some precisions are of a sample of the test file: --json says which.\n";
  return text;
}

std::string history_json_lines(const std::vector<HistoryRecord>& records) {
  std::string text;
  for (const HistoryRecord& record : records) text += to_json(record).dump() + "\n";
  return text;
}

void add_history_command(CLI::App& app, int& exit_status) {
  CLI::App& history =
      *app.add_subcommand("history", "print loss, precision and speed, checkpoint by checkpoint");
  auto flags = std::make_shared<HistoryFlags>();
  history.add_option("store", flags->folder, "folder that gleaner-master was given as --store")
      ->required();
  history.add_flag("--json", flags->json, "one JSON object a line instead of a table");
  history.footer(std::string("May be asked for while the master runs. The fields of --json are "
                             "listed in tools/README.md.\n\n"
                             "Examples:\n"
                             "  gleaner history run1\n"
                             "  gleaner history run1 --json | jq 'select(.p_at_1) | .p_at_1'\n\n") +
                 kStoreExitCodes);
  history.callback([flags, &exit_status] {
    exit_status = run_on_store(flags->folder, [&](RunStore& run) -> Result<void> {
      const Result<std::vector<HistoryRecord>> records = run.history();
      if (!records) return records.error();
      return print_out(flags->json ? history_json_lines(*records) : history_table(*records));
    });
  });
}

}  // namespace gleaner
