// The views of what a store holds: rounds, kept checkpoints, space on the disk.
#include <fmt/format.h>

#include <string>

#include "common/model/run_plan.hpp"
#include "storage/run_store.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {

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

}  // namespace gleaner
