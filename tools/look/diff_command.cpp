#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "common/model/model_fields.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

constexpr int kDifferent = 1;  // as of cmp and diff

struct DiffFlags {
  std::string left;
  std::string right;
  bool digest = false;
  bool json = false;
};

struct RowDifferences {
  std::uint64_t compared = 0;  // stored in both
  std::uint64_t changed = 0;
  std::uint64_t only_left = 0;
  std::uint64_t only_right = 0;
  std::uint64_t codes_changed = 0;  // table entries of rows in both
  double largest = 0;               // of any weight
  double moved = 0;                 // sum of the changed rows' distances

  [[nodiscard]] bool any() const { return changed + only_left + only_right + codes_changed != 0; }

  void add(const RowDifferences& other) {
    compared += other.compared;
    changed += other.changed;
    only_left += other.only_left;
    only_right += other.only_right;
    codes_changed += other.codes_changed;
    largest = std::max(largest, other.largest);
    moved += other.moved;
  }
};

void compare_row(std::span<const float> left, std::span<const float> right, bool states_differ,
                 RowDifferences& found) {
  ++found.compared;
  if (std::ranges::equal(left, right) && !states_differ) return;
  ++found.changed;
  double squares = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double difference = std::abs(double{left[i]} - double{right[i]});
    found.largest = std::max(found.largest, difference);
    squares += difference * difference;
  }
  found.moved += std::sqrt(squares);
}

void compare_rows(const ShardRows& left, const ShardRows& right, std::size_t width,
                  std::size_t tables, RowDifferences& found) {
  std::size_t l = 0;
  std::size_t r = 0;
  while (l < left.rows.size() || r < right.rows.size()) {
    const bool is_left =
        l < left.rows.size() && (r == right.rows.size() || left.rows[l] <= right.rows[r]);
    const bool is_right =
        r < right.rows.size() && (l == left.rows.size() || right.rows[r] <= left.rows[l]);
    if (is_left && is_right) {
      compare_row(std::span(left.values).subspan(l * width, width),
                  std::span(right.values).subspan(r * width, width),
                  left.states[l] != right.states[r], found);
      for (std::size_t t = 0; t < tables; ++t) {
        found.codes_changed += left.codes[l * tables + t] != right.codes[r * tables + t] ? 1 : 0;
      }
    } else {
      ++(is_left ? found.only_left : found.only_right);
    }
    l += is_left ? 1 : 0;
    r += is_right ? 1 : 0;
  }
}

Result<RowDifferences> compare_shard(RunStore& left, RunStore& right, ShardId shard) {
  const ShardMap& map = left.shard_map();
  RowDifferences found;
  const std::uint32_t rows = map.row_count(shard);
  for (std::uint32_t begin = 0; begin < rows;
       begin += std::min(RunStore::kRowsPerRead, rows - begin)) {
    const std::uint32_t end = begin + std::min(RunStore::kRowsPerRead, rows - begin);
    const auto from_left = left.read_rows(shard, begin, end, left.checkpoint());
    if (!from_left) return from_left.error();
    const auto from_right = right.read_rows(shard, begin, end, right.checkpoint());
    if (!from_right) return from_right.error();
    compare_rows(*from_left, *from_right, map.row_width(shard), map.codes_per_row(shard), found);
  }
  return found;
}

// Whether rows of the two can be laid side by side.
bool have_same_shape(const ModelConfig& left, const ModelConfig& right) {
  const auto shape = [](const ModelConfig& m) {
    return std::tuple(m.features, m.labels, m.hidden, m.output_shards, m.input_shards,
                      ShardMap(m).codes_per_row(ShardId{0}));
  };
  return shape(left) == shape(right);
}

void add_configuration(Report& report, const RunIdentity& left, const RunIdentity& right,
                       bool& differs) {
  report.section("", "");
  ReportTable table{"configuration",
                    {{"key", "configuration", true}, {"left", "A", true}, {"right", "B", true}},
                    {},
                    SIZE_MAX};
  for (const FieldDifference& field : model_differences(left.model, right.model)) {
    // How long a run is meant to be has no part in what it is by now.
    differs |= field.name != "epochs";
    table.rows.push_back({cell_text(field.name), cell_text(field.left), cell_text(field.right)});
  }
  if (table.rows.empty()) report.text("  same configuration, data and seed\n");
  report.table(table.key, table.columns).rows = std::move(table.rows);
}

Result<void> add_metrics(Report& report, RunStore& left, RunStore& right) {
  report.section("", "");
  ReportTable& table = report.table("metrics", {{"store", "", true},
                                                {"checkpoint", "checkpoint"},
                                                {"loss", "loss"},
                                                {"p_at_1", "P@1"},
                                                {"p_at_5", "P@5"},
                                                {"wall_seconds", "written (UTC)"}});
  for (const auto& [name, run] : {std::pair("A", &left), std::pair("B", &right)}) {
    const auto history = run->history();
    if (!history) return history.error();
    const RoundRecord last = history->empty() ? RoundRecord() : history->back();
    table.rows.push_back({cell_text(name), cell_count(run->checkpoint()),
                          cell_measured(last.loss, 4), cell_measured_share(last.precision.at_1()),
                          cell_measured_share(last.precision.p[2]), cell_time(last.wall_seconds)});
  }
  return {};
}

std::vector<Cell> cells_of(const std::string& name, const RowDifferences& found) {
  return {
      cell_text(name),
      cell_count(found.compared),
      cell_count(found.changed),
      cell_count(found.only_left),
      cell_count(found.only_right),
      cell_count(found.codes_changed),
      cell_number(found.largest, 6),
      cell_number(found.changed == 0 ? 0 : found.moved / static_cast<double>(found.changed), 6)};
}

Result<void> add_rows(Report& report, RunStore& left, RunStore& right, bool& differs) {
  report.section("", "");
  const ShardMap& map = left.shard_map();
  ReportTable& table = report.table("shards", {{"shard", "shard", true},
                                               {"compared", "rows in both"},
                                               {"changed", "changed"},
                                               {"only_left", "only in A"},
                                               {"only_right", "only in B"},
                                               {"codes_changed", "entries changed"},
                                               {"largest", "largest change"},
                                               {"mean_distance", "mean distance"}});
  ProgressLine progress("Comparing");
  RowDifferences all;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    progress.show(s, map.shard_count(), "shards");
    const auto found = compare_shard(left, right, ShardId{s});
    if (!found) return found.error();
    all.add(*found);
    if (found->any()) table.rows.push_back(cells_of(std::to_string(s), *found));
  }
  differs |= all.any();
  table.rows.push_back(cells_of("all", all));
  return {};
}

Result<bool> diff_digests(RunStore& left, RunStore& right, const DiffFlags& flags) {
  const auto one = left.checkpoint_digest();
  if (!one) return one.error();
  const auto two = right.checkpoint_digest();
  if (!two) return two.error();
  Report report;
  report.fact("left", "A", cell_text(*one));
  report.fact("right", "B", cell_text(*two));
  report.fact("is_same", "models", {*one == *two, *one == *two ? "the same" : "different"});
  const auto printed = print_report(report, report_form(flags.json), "diff", flags.left);
  if (!printed) return printed.error();
  return *one != *two;
}

// Without a second store, the first is compared with its latest kept checkpoint.
Result<DiffFlags> with_both(DiffFlags flags) {
  if (!flags.right.empty()) return flags;
  const auto kept = kept_before(flags.left, std::numeric_limits<RoundIndex>::max());
  if (!kept.empty()) {
    flags.right = kept.back();
    return flags;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{0} has no kept checkpoint to be compared with: name a second store, "
                           "or keep one by `gleaner checkpoint keep {0} NAME`",
                           flags.left)};
}

// Whether they differ.
Result<bool> diff(const DiffFlags& given) {
  const auto both = with_both(given);
  if (!both) return both.error();
  const DiffFlags& flags = *both;
  give_way_to_master(flags.left);
  give_way_to_master(flags.right);
  const auto left = open_run_to_read(flags.left);
  if (!left) return left.error();
  const auto right = open_run_to_read(flags.right);
  if (!right) return right.error();
  if (flags.digest) return diff_digests(**left, **right, flags);
  Report report;
  report.fact("left", "A", cell_text(flags.left));
  report.fact("right", "B", cell_text(flags.right));
  bool differs = (*left)->checkpoint() != (*right)->checkpoint();
  add_configuration(report, (*left)->identity(), (*right)->identity(), differs);
  if (auto added = add_metrics(report, **left, **right); !added) return added.error();
  if (!have_same_shape((*left)->identity().model, (*right)->identity().model)) {
    report.text("\n  the models have different shapes: their rows cannot be compared\n");
  } else if (auto added = add_rows(report, **left, **right, differs); !added) {
    return added.error();
  }
  report.section("", "");
  report.fact("is_same", "models", {!differs, differs ? "different" : "the same"});
  const auto printed = print_report(report, report_form(flags.json), "diff", flags.left);
  if (!printed) return printed.error();
  return differs;
}

}  // namespace

void add_diff_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("diff", "compare the checkpoints of two stores");
  auto flags = std::make_shared<DiffFlags>();
  verb.add_option("a", flags->left, "a store")->required();
  verb.add_option("b", flags->right, "another one; unless given, the latest kept checkpoint of a");
  verb.add_flag("--digest", flags->digest, "compare the digests alone");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(
      "Configuration, metrics, and for each shard which rows changed and by how much: the largest "
      "change of a\nweight, and the mean distance that changed rows moved. A row that training "
      "never touched is not stored.\n\n"
      "Examples:\n"
      "  gleaner diff run1 run2\n"
      "  gleaner diff run1\n"
      "  gleaner diff run1 run2 --digest\n\n"
      "Exit status: 0 done: the same, 1 different or failure of the system, 2 usage, 4 no usable "
      "store.");
  verb.callback([flags, &exit_status] {
    const Result<bool> differs = diff(*flags);
    exit_status = !differs ? report_on_store(differs.error()) : *differs ? kDifferent : 0;
  });
}

}  // namespace gleaner
