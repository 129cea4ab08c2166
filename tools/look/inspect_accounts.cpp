// The views of the accounts of volunteers, which the store writes with every checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/access/standing.hpp"
#include "common/model/run_plan.hpp"
#include "storage/run_store.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
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

// The views of what a store holds: rounds, kept checkpoints, space on the disk.
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

}  // namespace gleaner
