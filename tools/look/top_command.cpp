// `gleaner top`: every run that is trained on this machine, in a line each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "common/text.hpp"
#include "master/see/status_words.hpp"
#include "storage/engine/master_note.hpp"
#include "tools/admit/master_query.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunWidth = 24;
constexpr std::size_t kWaitWidth = 40;

struct TopFlags {
  std::vector<std::string> stores;
  bool json = false;
};

// The stores that processes of this machine have open to write, as far as this user may see.
std::vector<std::string> stores_here() {
  std::set<std::string> stores;
  std::error_code error;  // a process may end, or belong to somebody else
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    fs::directory_iterator files(process.path() / "fd", error);
    if (error) continue;
    for (; files != fs::directory_iterator(); files.increment(error)) {
      const fs::path target = fs::read_symlink(files->path(), error);
      const fs::path folder = target.parent_path();
      if (target.filename() == "LOCK" && fs::exists(folder / "MASTER", error)) {
        stores.insert(folder.string());
      }
    }
  }
  return {stores.begin(), stores.end()};
}

Result<RunStatus> status_of(const std::string& store) {
  const std::optional<RunningMaster> note = read_master_note(store);
  if (!note) return Error{ErrorCode::kNotFound, "no master trains it now"};
  const auto address = owner_address(store, *note);
  if (!address) return address.error();
  auto status = ask_status(*address);
  if (status && status->life != note->life) {
    return Error{ErrorCode::kNotFound, "no master trains it now"};
  }
  return status;
}

std::vector<Cell> line_of(const std::string& store, TextStyle style) {
  const std::string path = fs::path(store).lexically_normal().string();
  const Cell name = cell_fit(fs::path(path).filename().string(), kRunWidth, style);
  const Result<RunStatus> status = status_of(store);
  if (!status) {
    std::vector<Cell> row(11, cell_none());
    row[0] = name;
    row[9] = cell_fit(status.error().message, kWaitWidth, style);
    row[9].value = status.error().message;
    row[10] = cell_text(path);
    return row;
  }
  const RunProgress& p = status->progress;
  const double done = p.batches == 0 ? 0 : static_cast<double>(p.batch) / double(p.batches);
  Cell waits = cell_none();
  if (status->is_held_up) {
    waits = cell_fit(status->waits_for, kWaitWidth, style);
    waits.value = status->waits_for;
  }
  return {name,
          cell_text(stage_name(p.stage)),
          cell_share(done, 0),
          {p.epoch, fmt::format("{}/{}", std::min(p.epoch + 1, p.epochs), p.epochs)},
          cell_measured(p.examples_per_second, 0),
          cell_duration(p.eta_seconds),
          cell_measured_share(p.precision.at_1()),
          cell_count(p.volunteers),
          status->free_bytes == 0 ? cell_none() : cell_bytes(status->free_bytes),
          waits,
          cell_text(path)};
}

Result<void> show_top(const TopFlags& flags) {
  const std::vector<std::string> stores = flags.stores.empty() ? stores_here() : flags.stores;
  Report report;
  ReportTable& table = report.table("runs", {{"run", "run", true},
                                             {"stage", "stage", true},
                                             {"done", "done"},
                                             {"epoch", "epoch"},
                                             {"examples_per_second", "examples/s"},
                                             {"eta_seconds", "time left"},
                                             {"p_at_1", "P@1"},
                                             {"volunteers", "volunteers"},
                                             {"free_bytes", "disk free"},
                                             {"waits_for", "waits for", true},
                                             {"store", "store", true}});
  const TextStyle style = terminal_facts(stdout).style;
  for (const std::string& store : stores) table.rows.push_back(line_of(store, style));
  if (stores.empty()) {
    report.text("No master of this user trains here; root sees the masters of all users.\n");
  }
  return print_report(report, report_form(flags.json), "top", "");
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App& top = *app.add_subcommand("top", "all runs of this machine, in a line each");
  top.add_option("stores", flags->stores, "folders of stores; otherwise those trained here now");
  top.add_flag("--json", flags->json, "one JSON object");
  top.footer(
      "Asks the master of each store that a process of this machine trains, as far as this user "
      "may see.\n\n"
      "Examples:\n"
      "  gleaner top\n"
      "  watch -n 5 gleaner top\n\n"
      "Exit status: 0 done: a run whose master does not answer has its reason in its line; 1 "
      "failure of the system, 2 usage.");
  top.callback([flags, &exit_status] { exit_status = report_on_store(show_top(*flags)); });
}

}  // namespace gleaner
