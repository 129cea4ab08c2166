// How a run stands, as a master says it.
#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/settings/settings.hpp"
#include "common/text.hpp"
#include "master/see/status_words.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHolderWidth = 18;
constexpr std::size_t kPeerWidth = 21;
constexpr std::size_t kShardsWidth = 16;
constexpr std::size_t kReasonWidth = 44;
constexpr std::size_t kRowsShown = 24;

Cell cell_age(std::uint64_t us) {
  return {static_cast<double>(us) / 1e6, age(us)};
}

Cell cell_of(std::uint64_t done, std::uint64_t all) {
  Cell cell{done, part_of(done, all)};
  if (all > 0) {
    cell.text += fmt::format(" ({:.0f} %)", 100 * static_cast<double>(done) / double(all));
  }
  return cell;
}

void add_progress(Report& report, const RunStatus& s) {
  const RunProgress& p = s.progress;
  report.section("progress", "Progress");
  report.fact("stage", "stage", cell_text(stage_name(p.stage)));
  report.fact("round", "rounds", cell_of(p.round, p.rounds));
  report.fact("batch", "batches", cell_of(p.batch, p.batches));
  report.fact("epoch", "epoch", {p.epoch, part_of(std::min(p.epoch + 1, p.epochs), p.epochs)});
  report.fact("examples_per_second", "examples/s", cell_measured(p.examples_per_second, 0));
  report.fact("eta_seconds", "time left", cell_duration(p.eta_seconds));
  report.fact("staleness", "staleness", {p.staleness, counted(p.staleness, "batch")});
  report.fact("loss", "loss", cell_measured(p.loss, 4));
  report.fact("active", "active neurons", cell_measured(p.active, 1));
  report.fact("p_at_1", "P@1", cell_measured_share(p.precision.at_1()));
  report.section("wait", "Wait");
  report.fact("waits_for", "for", s.waits_for.empty() ? cell_none() : cell_text(s.waits_for));
  report.fact("wait_owner", "ended by", cell_text(owner_name(s.wait_owner)));
  report.fact("wait_seconds", "since", cell_age(s.waits_us));
  report.fact("is_held_up", "holds the run up", {s.is_held_up, s.is_held_up ? "yes" : "no"});
  report.section("disk", "Disk");
  report.fact("store_bytes", "store", s.store_bytes == 0 ? cell_none() : cell_bytes(s.store_bytes));
  report.fact("free_bytes", "free", s.free_bytes == 0 ? cell_none() : cell_bytes(s.free_bytes));
}

// Programs read one word, and people of a pause since when and why.
Cell state_cell(const RunStatus& status, std::size_t place) {
  Cell cell = cell_text(volunteer_state(status, place));
  const VolunteerEntry& volunteer = status.volunteers[place];
  if (is_paused(volunteer)) cell.text = printable(volunteer.no_shards);
  return cell;
}

Cell field_cell(const char*, const std::string& text) {
  return text.empty() ? cell_none() : cell_text(text);
}

Cell field_cell(const char*, bool value) {
  return {value, value ? "yes" : "no"};
}

Cell field_cell(const char*, std::unsigned_integral auto count) {
  return cell_count(count);
}

Cell field_cell(const char* name, double value) {
  if (value < 0) return cell_none();
  const bool is_time = std::string_view(name).ends_with("_seconds");
  return is_time ? cell_age(static_cast<std::uint64_t>(value * 1e6 + 0.5)) : cell_number(value, 0);
}

using Row = std::map<std::string_view, Cell>;

// A row for each entry: the columns for people, then every other field of the entries, for
// programs.
template <typename Entry>
void add_entries(Report& report, const char* key, std::vector<Column> columns,
                 const std::vector<Entry>& entries,
                 const std::function<void(std::size_t, Row&)>& fill) {
  visit_fields(Entry(), [&](const char* name, const auto&) {
    if (std::ranges::find(columns, std::string_view(name), &Column::key) != columns.end()) return;
    columns.push_back({name, name, true, false});
  });
  ReportTable& table = report.table(key, std::move(columns));
  table.people_rows_max = kRowsShown;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Row row;
    visit_fields(entries[i],
                 [&](const char* name, const auto& value) { row[name] = field_cell(name, value); });
    fill(i, row);
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Column& column : table.columns) cells.push_back(row.at(column.key));
  }
}

void add_volunteers(Report& report, const RunStatus& status, TextStyle style) {
  report.section("", "Volunteers");
  report.fact("volunteers_here", "here", cell_count(status.progress.volunteers));
  double all = 0;
  for (const VolunteerEntry& v : status.volunteers) all += double{v.speed};
  const std::vector<Column> columns = {
      {"name", "name", true},         {"address", "address", true}, {"threads", "threads"},
      {"shards", "shards", true},     {"speed", "speed"},           {"share", "share"},
      {"round_trip_seconds", "trip"}, {"silent_seconds", "heard"},  {"state", "state", true}};
  add_entries(report, "volunteers", columns, status.volunteers, [&](std::size_t i, Row& row) {
    const VolunteerEntry& v = status.volunteers[i];
    const std::vector<std::uint32_t> shards = shards_of(status, i, false);
    row["name"] = cell_fit(v.name, kHolderWidth, style);
    row["address"] = cell_fit(v.is_local ? "in the master" : v.peer, kPeerWidth, style);
    row["shards"] = {Json(shards),
                     shards.empty() ? "-" : fit(ranges_shown(shards), kShardsWidth, style)};
    row["speed"] =
        v.speed > 0 ? Cell{v.speed, grouped(static_cast<std::uint64_t>(v.speed))} : cell_none();
    row["share"] = v.speed > 0 ? cell_share(double{v.speed} / all, 0) : cell_none();
    if (v.round_trip_us >= 0) {
      row["round_trip_seconds"].text = fmt::format("{:.1f} ms", double(v.round_trip_us) / 1e3);
    }
    row["state"] = state_cell(status, i);
  });
}

void add_shards(Report& report, const RunStatus& status, TextStyle style) {
  report.section("", "Shards");
  const std::vector<Column> columns = {{"shard", "shard"},
                                       {"layer", "layer", true},
                                       {"state", "state", true},
                                       {"holder", "holder", true},
                                       {"since_seconds", "since"},
                                       {"next_batch", "next batch"},
                                       {"committed_rounds", "rounds kept"},
                                       {"loaded", "loaded"},
                                       {"held_before", "before", true},
                                       {"why", "why it left", true, false}};
  add_entries(report, "shards", columns, status.shards, [&](std::size_t i, Row& row) {
    const ShardEntry& s = status.shards[i];
    const bool is_loading = s.state == LeaseState::kLoading && s.chunks > 0;
    row["shard"] = cell_count(i);
    row["layer"] = cell_text(is_input(status, i) ? "input" : "output");
    row["state"] = cell_text(state_name(s.state));
    row["holder"] =
        s.holder ? cell_fit(status.volunteers[*s.holder].name, kHolderWidth, style) : cell_none();
    row["loaded"] =
        is_loading ? cell_share(double(s.chunks_sent) / double(s.chunks), 0) : cell_none();
    if (!s.held_before.empty()) row["held_before"] = cell_fit(s.held_before, kHolderWidth, style);
    // The names that programs knew before the page had others.
    row["committed_rounds"] = row["version"];
    row["why"] = row["moved_why"];
  });
}

}  // namespace

std::string part_of(std::uint64_t done, std::uint64_t all) {
  return fmt::format("{} of {}", grouped(done), grouped(all));
}

Report status_report(const RunStatus& status, const std::string& address, TextStyle style) {
  Report report;
  report.fact("is_running", "master", {true, "running"});
  report.fact("address", "address", cell_text(address));
  report.fact("build", "version", cell_text(status.build));
  report.fact("run", "run", cell_text(status.run));
  add_progress(report, status);
  add_volunteers(report, status, style);
  add_shards(report, status, style);
  if (!status.gone.empty()) report.section("", "Gone");
  if (!status.gone.empty()) {
    ReportTable& table = report.table("gone", {{"name", "name", true},
                                               {"ago_seconds", "ago"},
                                               {"shards", "shards"},
                                               {"reason", "reason", true}});
    for (const DepartureEntry& d : status.gone) {
      table.rows.push_back({cell_fit(d.name, kHolderWidth, style), cell_age(d.ago_us),
                            cell_count(d.shards), cell_fit(d.reason, kReasonWidth, style)});
    }
  }
  return report;
}

}  // namespace gleaner
