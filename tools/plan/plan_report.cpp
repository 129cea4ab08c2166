#include "tools/plan/plan_report.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gleaner {
namespace {

Cell cell_whole_bytes(double bytes) {
  return cell_bytes(static_cast<std::uint64_t>(bytes));
}

// Three digits are more than a plan knows.
Cell cell_seconds(double seconds) {
  if (seconds >= 100) return cell_duration(seconds);
  return {seconds, fmt::format("{:.{}f} s", seconds, seconds >= 10 ? 0 : seconds >= 1 ? 1 : 2)};
}

// Infinite where it does not count: null, and a dash.
Cell cell_speed(double examples_per_second) {
  if (!std::isfinite(examples_per_second)) return cell_none();
  return {examples_per_second, cell_count(static_cast<std::uint64_t>(examples_per_second)).text};
}

Cell cell_per_example(double bytes) {
  return {bytes, fmt::format("{:.0f} B", bytes)};
}

std::string machines(const Machines& m, const char* what) {
  const std::string link = m.mbit > 0 ? fmt::format("{:g} Mbit/s", m.mbit) : "no limit of the link";
  return fmt::format("{} of {} core{}, {}", what, m.cores, m.cores == 1 ? "" : "s", link);
}

void add_run(const PlanInput& input, const Plan& plan, Report& report) {
  const ModelConfig& m = input.model;
  const double parameters = (m.labels + static_cast<double>(m.features) + 1) * m.hidden + m.labels;
  report.section("run", "The run");
  report.fact("parameters", "parameters", cell_count(static_cast<std::uint64_t>(parameters)));
  report.fact("shape", "features to labels",
              cell_text(fmt::format("{} -> {} -> {}", cell_count(m.features).text, m.hidden,
                                    cell_count(m.labels).text)));
  report.fact("active", "active neurons", cell_number(plan.active, 0));
  report.fact("batch_examples", "batch", cell_count(m.batch_examples));
  report.fact("round_batches", "batches a round", cell_count(m.round_batches));
  report.fact("staleness", "lag", cell_count(m.staleness));
  report.fact("output_shards", "shards", cell_count(m.output_shards));
  if (input.lends_input) {
    report.fact("input_shards", "input shards lent", cell_count(m.input_shards));
  }
  report.fact("master", "master", cell_text(machines(input.master, "one")));
  report.fact(
      "volunteers", "volunteers",
      cell_text(machines(input.volunteers, std::to_string(input.volunteers.count).c_str())));
  report.fact("round_trip_seconds", "round trip",
              {input.round_trip, fmt::format("{:g} ms", input.round_trip * 1e3)});
  if (input.is_one_machine) {
    report.fact("is_one_machine", "all programs", {true, "share the master's cores"});
  }
}

void add_speed(const PlanInput& input, const Plan& plan, Report& report) {
  report.section("speed", "What to expect");
  report.fact("examples_per_second", "examples/s", cell_speed(plan.examples_per_second));
  report.fact("epoch_seconds", "an epoch", cell_seconds(plan.epoch_seconds));
  report.fact("round_seconds", "a round", cell_seconds(plan.round_seconds));
  report.fact("trip_seconds", "a batch, there and back", cell_seconds(plan.trip_seconds));
  if (input.model.staleness_rise > 0) {
    report.fact("rise_seconds", "longer, once, as the lag rises", cell_seconds(plan.rise_seconds));
  }
  report.fact("limit", "limited by", cell_text(resource_name(plan.limit)));
  report.fact("remedy", "what raises it", cell_text(resource_remedy(plan.limit)));
  ReportTable& table = report.table("bounds", {{"resource", "limit", true},
                                               {"examples_per_second", "alone, examples/s"},
                                               {"doubled", "with twice as much"},
                                               {"remedy", "more of it", true, false}});
  for (const Bound& bound : plan.bounds) {
    table.rows.push_back({cell_text(resource_name(bound.resource)),
                          cell_speed(bound.examples_per_second), cell_speed(bound.doubled),
                          cell_text(resource_remedy(bound.resource))});
  }
}

void add_traffic(const PlanInput& input, const Plan& plan, Report& report) {
  const Traffic& t = plan.traffic;
  report.section("traffic", "Bytes an example, on the wire");
  ReportTable& table = report.table("directions", {{"direction", "", true},
                                                   {"units", "units"},
                                                   {"commits", "commits"},
                                                   {"volunteer", "a volunteer's link"},
                                                   {"master", "the master's link"}});
  table.rows.push_back({cell_text("down"), cell_per_example(t.unit_down + t.input_down),
                        cell_per_example(0), cell_per_example(t.down),
                        cell_per_example(t.master_down)});
  table.rows.push_back({cell_text("up"), cell_per_example(t.unit_up + t.input_up),
                        cell_per_example(t.commit_up), cell_per_example(t.up),
                        cell_per_example(t.master_up)});
  if (input.lends_input) {
    report.fact("points_bytes", "features of examples, once, per example and epoch",
                cell_per_example(t.points_down));
  }
  report.fact("download_bytes", "a volunteer's download", cell_whole_bytes(t.download));
  report.fact(
      "epoch_bytes", "an epoch, the master's link",
      cell_whole_bytes((t.master_down + t.master_up) * static_cast<double>(input.model.points)));
}

void add_sizes(const Plan& plan, Report& report) {
  report.section("sizes", "Memory and disk");
  report.fact("master_memory", "master", cell_whole_bytes(plan.master_memory));
  report.fact("volunteer_memory", "a volunteer", cell_whole_bytes(plan.volunteer_memory));
  report.fact("store_content", "store", cell_whole_bytes(plan.store_content));
  report.fact("store_most", "  until files are merged", cell_whole_bytes(plan.store_most));
}

void add_rounds(const Plan& plan, Report& report) {
  report.section("rounds", "Rounds and deaths");
  report.fact("rows_a_round", "rows committed a round",
              cell_count(static_cast<std::uint64_t>(plan.rows_a_round)));
  report.fact("stage_seconds", "staging them", cell_seconds(plan.stage_seconds));
  report.fact("fold_seconds", "folding them", cell_seconds(plan.fold_seconds));
  report.fact("recover_seconds", "after a volunteer's death",
              cell_seconds(plan.reload_seconds + plan.replay_seconds));
  report.fact("reload_seconds", "  its shards elsewhere", cell_seconds(plan.reload_seconds));
  report.fact("replay_seconds", "  half a round again", cell_seconds(plan.replay_seconds));
  report.fact("silence_seconds", "  if it says nothing, before",
              cell_seconds(plan.silence_seconds));
}

}  // namespace

Report plan_report(const PlanInput& input, const Plan& plan) {
  Report report;
  add_run(input, plan, report);
  add_speed(input, plan, report);
  add_traffic(input, plan, report);
  add_sizes(plan, report);
  add_rounds(plan, report);
  return report;
}

}  // namespace gleaner
