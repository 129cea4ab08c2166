#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "common/access/standing.hpp"
#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/run_plan.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/charts.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {

namespace {

// Counts the places of wide rows, a few of which are free at the end of a label's last row.
std::uint64_t parameter_count(const ModelConfig& model) {
  if (is_wide(model)) {
    return std::uint64_t{model.wide_rows} * model.output_shards * kWideWeights + model.labels;
  }
  return (std::uint64_t{model.features} + 1) * model.hidden +
         (std::uint64_t{model.hidden} + 1) * model.labels;
}

std::string sampling_text(const ModelConfig& model) {
  if (model.sampling == Sampling::kAll) return "every neuron";
  if (model.sampling == Sampling::kRandom) {
    return fmt::format("{} random negatives", grouped(model.active_cap));
  }
  if (is_wide(model)) {
    return fmt::format("lists of {} neurons a feature, at most {} neurons an example",
                       grouped(model.feature_list), grouped(model.active_cap));
  }
  return fmt::format("{} tables of 2^{} buckets, at most {} neurons an example", model.tables,
                     model.hash_bits, grouped(model.active_cap));
}

void add_progress(Report& report, const RunStore& run, const std::vector<RoundRecord>& history) {
  const ModelConfig& model = run.identity().model;
  const RunPlan plan(model);
  const RoundIndex checkpoint = run.checkpoint();
  const double share =
      plan.round_count() == 0 ? 0 : static_cast<double>(checkpoint) / double(plan.round_count());
  report.section("progress", "Progress");
  const std::uint64_t batches = plan.round_begin(checkpoint);
  Cell shown = cell_count(checkpoint);
  shown.text = fmt::format("{} of {} ({:.0f} %), epoch {} of {}", grouped(checkpoint),
                           grouped(plan.round_count()), 100 * share,
                           checkpoint == plan.round_count()
                               ? model.epochs
                               : plan.epoch_of(plan.round_begin(checkpoint)) + 1,
                           model.epochs);
  report.fact("checkpoint", "checkpoint", std::move(shown));
  report.fact("batches", "batches", cell_count(batches));
  if (!run.rate_cuts().empty()) {
    Cell cuts = cell_count(run.rate_cuts().size());
    cuts.text += fmt::format(", the last from batch {} on: rounds diverged",
                             grouped(run.rate_cuts().back()));
    report.fact("rate_cuts", "rates halved", std::move(cuts));
  }
  if (history.empty()) return;
  const RoundRecord& last = history.back();
  report.fact("wall_seconds", "written (UTC)", cell_time(last.wall_seconds));
  report.fact("loss", "loss", cell_measured(last.loss, 4));
  report.fact("active", "active neurons", cell_measured(last.active, 1));
  report.fact("examples_per_second", "examples/s", cell_measured(last.examples_per_second, 0));
  report.fact("volunteers", "volunteers", cell_count(last.volunteers));
}

void add_metrics(Report& report, const std::vector<RoundRecord>& history, const RunPlan& plan,
                 TextStyle style) {
  std::vector<Curve> curves = {{'1', Colour::kGreen, "P@1", {}},
                               {'3', Colour::kYellow, "P@3", {}},
                               {'5', Colour::kCyan, "P@5", {}}};
  const RoundRecord* best = nullptr;
  const RoundRecord* last = nullptr;
  for (const RoundRecord& record : history) {
    if (record.evaluated == 0 || !record.precision.is_measured()) continue;
    const double epoch = plan.epochs_in(plan.round_begin(record.checkpoint));
    for (std::size_t d = 0; d < curves.size(); ++d) {
      if (record.precision.p[d] >= 0) curves[d].points.emplace_back(epoch, record.precision.p[d]);
    }
    last = &record;
    if (best == nullptr || record.precision.at_1() > best->precision.at_1()) best = &record;
  }
  report.section("precision", "Precision on test examples");
  if (last == nullptr) {
    report.text("  not evaluated yet\n");
    return;
  }
  auto& table = report.table(
      "evaluations", {{"which", "", true}, {"checkpoint", "checkpoint"}, {"evaluated", "points"}});
  add_precision_columns(table.columns);
  for (const auto& [which, record] : {std::pair("last", last), std::pair("best", best)}) {
    std::vector<Cell>& row = table.rows.emplace_back(std::vector<Cell>{
        cell_text(which), cell_count(record->checkpoint), cell_count(record->evaluated)});
    add_precision_cells(row, record->precision);
  }
  const std::string chart = curve_chart(curves, "epoch", {.style = style});
  if (!chart.empty()) report.text("\n" + chart);
}

}  // namespace

Result<Report> inspect_summary(RunStore& run, const InspectRequest& request) {
  const auto history = run.history();
  if (!history) return history.error();
  const auto digests = run.shard_digests();
  if (!digests) return digests.error();
  const auto space = run.space();
  if (!space) return space.error();
  const ModelConfig& model = run.identity().model;
  Report report;
  report.section("model", "Model");
  Cell shape = cell_text(fmt::format("{} -> {} -> {}", grouped(model.features),
                                     grouped(model.hidden), grouped(model.labels)));
  report.fact("shape", "features to labels", std::move(shape));
  report.fact("parameters", "parameters", cell_count(parameter_count(model)));
  report.fact("output_shards", "output shards", cell_count(model.output_shards));
  report.fact("sampling", "sampling", cell_text(sampling_text(model)));
  std::uint64_t trained = 0;
  // The digests of input shards come after.
  for (std::size_t shard = 0; shard < model.output_shards; ++shard) {
    trained += digests->at(shard).rows;
  }
  Cell rows = cell_count(trained);
  if (is_wide(model)) {
    report.fact("wide_rows", "stored wide rows", std::move(rows));
  } else {
    rows.text += fmt::format(" of {}", grouped(model.labels));
    report.fact("labels_trained", "labels trained", std::move(rows));
  }
  report.section("data", "Data");
  report.fact("points", "training examples", cell_count(model.points));
  report.fact("fingerprint", "fingerprint",
              cell_text(fmt::format("{:016x}", model.data_fingerprint)));
  report.fact("seed", "seed", cell_count(model.seed));
  add_progress(report, run, *history);
  add_metrics(report, *history, RunPlan(model), request.style);
  report.section("space", "");
  std::uint64_t files = 0;
  for (const TableSpace& table : *space) files += table.file_bytes + table.newest_bytes;
  report.fact("bytes", "on disk", cell_bytes(files));
  return report;
}

Result<Report> inspect_config(RunStore& run, const InspectRequest&) {
  Report report;
  report.section("", "Model: what a checkpoint is a function of");
  auto& model = report.table("model", {{"key", "key", true}, {"value", "value", true}});
  for (const auto& [name, text] : model_fields(run.identity().model)) {
    model.rows.push_back({cell_text(name), cell_text(text)});
  }
  report.section("", "Settings of the master");
  auto& settings = report.table("settings", {{"key", "key", true}, {"value", "value", true}});
  for (const auto& [name, text] : run.identity().settings) {
    settings.rows.push_back({cell_text(name), cell_text(text)});
  }
  return report;
}

Result<Report> inspect_history(RunStore& run, const InspectRequest&) {
  const auto history = run.history();
  if (!history) return history.error();
  return history_report(*history);
}

Result<Report> inspect_checkpoints(RunStore& run, const InspectRequest&) {
  const auto history = run.history();
  if (!history) return history.error();
  const RunPlan plan(run.identity().model);
  Report report;
  auto& table = report.table("checkpoints", {{"checkpoint", "checkpoint"},
                                             {"batches", "batches"},
                                             {"epoch", "epochs"},
                                             {"wall_seconds", "written (UTC)"},
                                             {"round_seconds", "took"},
                                             {"p_at_1", "P@1"},
                                             {"is_current", "", true}});
  std::int64_t before = 0;
  for (const RoundRecord& record : *history) {
    const bool is_current = record.checkpoint == run.checkpoint();
    const auto seconds = static_cast<double>(record.wall_seconds - before);
    table.rows.push_back({cell_count(record.checkpoint),
                          cell_count(record.batches),
                          cell_count(record.epoch),
                          cell_time(record.wall_seconds),
                          before == 0 ? cell_none() : cell_duration(seconds),
                          cell_measured_share(record.precision.at_1()),
                          {is_current, is_current ? "in the store" : ""}});
    before = record.wall_seconds;
  }
  report.section("open_round", "Open round");
  std::uint64_t staged = 0;
  const std::uint32_t shards = run.shard_map().shard_count();
  if (run.checkpoint() < plan.round_count()) {
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const Result<bool> is_staged = run.is_staged(run.checkpoint(), ShardId{shard});
      if (!is_staged) return is_staged.error();
      staged += *is_staged ? 1 : 0;
    }
  }
  Cell cell = cell_count(staged);
  cell.text = run.checkpoint() < plan.round_count()
                  ? fmt::format("{} of {} shards have committed", staged, shards)
                  : "none: the run is finished";
  report.fact("staged_shards", "commits", std::move(cell));
  return report;
}

Result<Report> inspect_space(RunStore& run, const InspectRequest&) {
  const auto space = run.space();
  if (!space) return space.error();
  const ModelConfig& model = run.identity().model;
  Report report;
  auto& table = report.table("tables", {{"table", "table", true},
                                        {"records", "records"},
                                        {"file_bytes", "in files"},
                                        {"newest_bytes", "in memory"},
                                        {"bytes_per_neuron", "bytes a neuron"},
                                        {"level_0_files", "files to merge"},
                                        {"levels", "levels", true}});
  std::uint64_t total = 0;
  for (const TableSpace& one : *space) {
    std::uint64_t waiting = 0;
    Json levels = Json::array();
    std::string shown;
    for (const TableSpace::Level& level : one.levels) {
      if (level.level == 0) waiting = level.files;
      levels.push_back({{"level", level.level}, {"files", level.files}, {"bytes", level.bytes}});
      shown += fmt::format("{}{}: {}", shown.empty() ? "" : ", ", level.level, level.files);
    }
    total += one.file_bytes + one.newest_bytes;
    table.rows.push_back({cell_text(table_name(one.table)),
                          cell_count(one.records),
                          cell_bytes(one.file_bytes),
                          cell_bytes(one.newest_bytes),
                          cell_number(static_cast<double>(one.file_bytes) / model.labels, 1),
                          cell_count(waiting),
                          {std::move(levels), shown}});
  }
  report.section("", "");
  report.fact("bytes", "all tables", cell_bytes(total));
  report.text(
      "  records: with those replaced or erased since, until files are merged; levels: level: "
      "files.\n");
  return report;
}

// The accounts of volunteers, as the store has them: written with every checkpoint.

namespace {

// By examples trained, most first.
Result<std::vector<AccountRecord>> sorted_accounts(RunStore& run) {
  auto accounts = run.accounts();
  if (accounts) std::ranges::stable_sort(*accounts, std::greater<>(), &AccountRecord::examples);
  return accounts;
}

Cell identity_cell(const AccountRecord& account) {
  const std::string all = to_text(account.identity);
  // Volunteers in the master's process are numbered.
  return {all, account.identity.high == 0 ? all.substr(all.size() - 8) : all.substr(0, 8)};
}

constexpr std::size_t kNameWidth = 24;

Cell name_cell(const AccountRecord& account, TextStyle style) {
  return cell_fit(account.name, kNameWidth, style);
}

}  // namespace

Result<Report> inspect_volunteers(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  double all = 0;
  for (const AccountRecord& account : *accounts) all += static_cast<double>(account.examples);
  Report report;
  auto& table = report.table("volunteers", {{"identity", "identity", true},
                                            {"name", "name", true},
                                            {"examples", "examples x shards"},
                                            {"share", "share"},
                                            {"bytes_down", "down"},
                                            {"bytes_up", "up"},
                                            {"faults", "faults"},
                                            {"last_seen_wall_seconds", "last seen (UTC)"}});
  for (const AccountRecord& account : *accounts) {
    table.rows.push_back({identity_cell(account), name_cell(account, request.style),
                          cell_count(account.examples),
                          cell_share(static_cast<double>(account.examples) / all, 1),
                          cell_bytes(account.down.all), cell_bytes(account.up.all),
                          cell_count(account.faults), cell_time(account.last_seen_wall_seconds)});
  }
  return report;
}

Result<Report> inspect_units(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  Report report;
  auto& table = report.table("units", {{"identity", "identity", true},
                                       {"name", "name", true},
                                       {"issued", "issued"},
                                       {"answered", "answered"},
                                       {"refused", "refused"},
                                       {"expired", "expired"},
                                       {"out", "out"},
                                       {"commits", "commits"}});
  for (const AccountRecord& a : *accounts) {
    const std::uint64_t ended = a.units + a.units_refused + a.units_expired;
    table.rows.push_back({identity_cell(a), name_cell(a, request.style), cell_count(a.units_issued),
                          cell_count(a.units), cell_count(a.units_refused),
                          cell_count(a.units_expired),
                          ended > a.units_issued ? cell_none() : cell_count(a.units_issued - ended),
                          cell_count(a.commits)});
  }
  return report;
}

Result<Report> inspect_traffic(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  Report report;
  auto& table = report.table("traffic", {{"identity", "identity", true},
                                         {"name", "name", true},
                                         {"direction", "", true},
                                         {"bytes", "all"},
                                         {"units", "units"},
                                         {"evaluation", "evaluation"},
                                         {"commits", "commits"},
                                         {"shards", "shards"},
                                         {"points", "examples"},
                                         {"rest", "rest"}});
  Traffic both;
  const auto add_row = [&](const AccountRecord& account, const char* direction, const Traffic& t) {
    both += t;
    table.rows.push_back({identity_cell(account), name_cell(account, request.style),
                          cell_text(direction), cell_bytes(t.all), cell_bytes(t.units),
                          cell_bytes(t.evaluation), cell_bytes(t.commits), cell_bytes(t.shards),
                          cell_bytes(t.points), cell_bytes(t.rest())});
  };
  for (const AccountRecord& account : *accounts) {
    add_row(account, "down", account.down);
    add_row(account, "up", account.up);
  }
  if (both.all > 0) {
    report.fact("commit_share", "commits' share of all",
                cell_share(static_cast<double>(both.commits) / static_cast<double>(both.all), 1));
  }
  return report;
}

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
