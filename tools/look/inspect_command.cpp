// `gleaner inspect`: chooses a view and prints it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "storage/run_store.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

struct View {
  const char* name;
  const char* which;  // what must follow it; null for nothing
  bool reads_rows;
  Result<Report> (*show)(RunStore& run, const InspectRequest& request);
};

constexpr View kViews[] = {
    {"summary", nullptr, false, inspect_summary},
    {"shard", "a shard's number", true, inspect_shard},
    {"neuron", "a label's number or name", true, inspect_neuron},
    {"table", "a table's number", true, inspect_table},
    {"layer", nullptr, true, inspect_layer},
    {"history", nullptr, false, inspect_history},
    {"config", nullptr, false, inspect_config},
    {"recipe", nullptr, false, inspect_recipe},
    {"checkpoints", nullptr, false, inspect_checkpoints},
    {"space", nullptr, false, inspect_space},
    {"volunteers", nullptr, false, inspect_volunteers},
    {"units", nullptr, false, inspect_units},
    {"traffic", nullptr, false, inspect_traffic},
};

struct InspectFlags {
  std::string store;
  std::string view = "summary";
  InspectRequest request;
  bool json = false;
  bool csv = false;
};

Result<void> inspect(RunStore& run, const InspectFlags& flags, const View& view) {
  const Result<Report> report = view.show(run, flags.request);
  if (!report) return report.error();
  const ReportForm form = report_form(flags.json, flags.csv);
  return print_report(*report, form, "inspect " + flags.view, flags.store);
}

Result<const View*> find_view(const InspectFlags& flags) {
  for (const View& view : kViews) {
    if (flags.view != view.name) continue;
    if (view.which != nullptr && flags.request.which.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the view '{}' needs {} after it", view.name, view.which)};
    }
    if (view.which == nullptr && !flags.request.which.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the view '{}' takes nothing after it, but '{}' is there", view.name,
                               printable(flags.request.which))};
    }
    return &view;
  }
  return Error{ErrorCode::kInvalidArgument, "there is no such view"};  // the parser refused it
}

constexpr const char* kFooter =
    "Views:\n"
    "  summary         what is trained on what, how far it is, how good (without a view)\n"
    "  shard N         a shard: its neurons, norms, heaviest rows\n"
    "  neuron LABEL    an output neuron: norm, state, nearest neurons, buckets\n"
    "  table T         a hash table over all shards: occupancy, largest buckets, collisions\n"
    "  layer           norms and states of both layers, by how frequent labels are\n"
    "  history         metrics, checkpoint by checkpoint\n"
    "  config          the model and the master's settings\n"
    "  checkpoints     when each was written, and the open round\n"
    "  space           what each table takes on the disk\n"
    "  volunteers      who trained how much, and when they were last seen\n"
    "  units           what became of the work sent to each volunteer\n"
    "  traffic         what each volunteer's bytes were spent on\n\n"
    "May be asked for while the master runs: no lock is taken, nothing is written. --json is one "
    "object,\n--csv the view's tables; tools/JSON.md lists the fields.\n\n"
    "Examples:\n"
    "  gleaner inspect run1\n"
    "  gleaner inspect run1 neuron 17\n"
    "  gleaner inspect run1 history --csv > history.csv\n\n";

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("inspect", "look into a store");
  auto flags = std::make_shared<InspectFlags>();
  add_store(verb, flags->store);
  std::vector<std::string> names;
  for (const View& view : kViews) names.emplace_back(view.name);
  verb.add_option("view", flags->view, "what to show")
      ->check(CLI::IsMember(names))
      ->option_text("VIEW");
  verb.add_option("which", flags->request.which, "which shard, label or table");
  verb.add_option("--labels", flags->request.labels, "file with a label's name a line");
  CLI::Option* const json = verb.add_flag("--json", flags->json, "one JSON object");
  verb.add_flag("--csv", flags->csv, "the tables as CSV")->excludes(json);
  verb.footer(std::string(kFooter) + kStoreExitCodes);
  verb.callback([flags, &exit_status] {
    const Result<const View*> view = find_view(*flags);
    if (!view) {
      exit_status = report_on_store(view.error());
      return;
    }
    if ((*view)->reads_rows) give_way_to_master(flags->store);
    flags->request.style = terminal_facts(stdout).style;
    exit_status =
        run_on_store(flags->store, [&](RunStore& run) { return inspect(run, *flags, **view); });
  });
}

}  // namespace gleaner
