// The views of all rows of a shard and of a layer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "common/console/terminal.hpp"
#include "common/limits.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHeaviestRows = 10;

void add_distribution(ReportTable& table, const char* name, Distribution& values) {
  table.rows.push_back({cell_text(name), cell_count(values.size()), cell_number(values.mean(), 4),
                        cell_number(values.quantile(0), 4), cell_number(values.quantile(0.1), 4),
                        cell_number(values.quantile(0.5), 4), cell_number(values.quantile(0.9), 4),
                        cell_number(values.quantile(1), 4)});
}

ReportTable& add_distributions(Report& report) {
  return report.table("distributions", {{"name", "", true},
                                        {"rows", "rows"},
                                        {"mean", "mean"},
                                        {"min", "least"},
                                        {"p10", "10 %"},
                                        {"median", "median"},
                                        {"p90", "90 %"},
                                        {"max", "most"}});
}

struct HeavyRow {
  double norm = 0;
  std::uint32_t row = 0;
  float bias = 0;
};

// Statistics of the rows of some shards.
struct RowStatistics {
  Distribution norms;
  Distribution biases;
  Distribution states;
  std::uint64_t stored = 0;
  std::uint64_t rows = 0;

  void add(const ShardMap& map, ShardId shard, const ModelRow& row, double row_norm) {
    ++rows;
    stored += row.is_stored ? 1 : 0;
    norms.add(row_norm);
    if (map.is_output(shard)) biases.add(row.values.back());
    if (row.is_stored) states.add(row.state);
  }

  void show(Report& report) {
    Cell cell = cell_count(stored);
    cell.text += fmt::format(" of {}: the others have their initial values", grouped(rows));
    report.fact("rows_stored", "rows trained", std::move(cell));
    ReportTable& table = add_distributions(report);
    add_distribution(table, "norm of weights", norms);
    if (biases.size() > 0) add_distribution(table, "bias", biases);
    add_distribution(table, "optimizer state", states);
  }
};

// The rows of the largest norm, largest first.
class HeaviestRows {
 public:
  void add(const HeavyRow& row) {
    rows_.push_back(row);
    if (rows_.size() == kKept) cut();
  }

  const std::vector<HeavyRow>& sorted() {
    cut();
    return rows_;
  }

 private:
  // Cut back to kHeaviestRows when there are this many, since sorting row by row takes longer.
  static constexpr std::size_t kKept = 4096;

  void cut() {
    const std::size_t count = std::min(rows_.size(), kHeaviestRows);
    std::ranges::partial_sort(rows_, rows_.begin() + static_cast<std::ptrdiff_t>(count),
                              std::greater<>(), &HeavyRow::norm);
    rows_.resize(count);
  }

  std::vector<HeavyRow> rows_;
};

void show_heaviest(Report& report, const RunStore& run, ShardId shard, const NameTable& names,
                   const std::vector<HeavyRow>& heaviest, TextStyle style) {
  const ShardMap& map = run.shard_map();
  if (!map.is_output(shard)) {
    report.section("", "Features of the largest norm");
    ReportTable& table = report.table("heaviest", {{"row", "row"}, {"norm", "norm"}});
    for (const HeavyRow& heavy : heaviest) {
      table.rows.push_back({cell_count(heavy.row), cell_number(heavy.norm, 4)});
    }
    return;
  }
  report.section("", "Rows of the largest norm");
  ReportTable& table = report.table("heaviest", {{"row", "row"},
                                                 {"label", "label"},
                                                 {"name", "name", true},
                                                 {"training_points", "training examples"},
                                                 {"norm", "norm"},
                                                 {"bias", "bias"}});
  const std::uint32_t first = map.neurons(shard).begin;
  const std::vector<std::uint32_t> counts = run.label_counts(shard);
  for (const HeavyRow& heavy : heaviest) {
    const std::uint32_t label = map.label_of_neuron(first + heavy.row);
    table.rows.push_back({cell_count(heavy.row), cell_count(label),
                          cell_fit(names.name(label), 40, style), cell_count(counts[heavy.row]),
                          cell_number(heavy.norm, 4), cell_number(heavy.bias, 4)});
  }
}

}  // namespace

Result<Report> inspect_shard(RunStore& run, const InspectRequest& request) {
  const ShardMap& map = run.shard_map();
  const Result<std::uint32_t> number =
      parse_number("shard", request.which, std::uint64_t{map.shard_count()} - 1);
  if (!number) return number.error();
  const ShardId shard{*number};
  Result<NameTable> names = label_names_of(run.identity(), request.labels);
  if (!names) return names.error();
  RowStatistics statistics;
  HeaviestRows heaviest;
  auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
    const double row_norm = norm(weights_of(map, shard, row));
    statistics.add(map, shard, row, row_norm);
    heaviest.add({row_norm, row.neuron, row.values.back()});
  });
  if (!visited) return visited.error();

  const NeuronRange neurons = map.neurons(shard);
  const bool is_output = map.is_output(shard);
  Report report;
  report.section("", fmt::format("Shard {}", raw(shard)));
  report.fact("layer", "layer", cell_text(is_output ? "output" : "input"));
  report.fact("neuron_begin", "first neuron", cell_count(neurons.begin));
  report.fact("neurons", "neurons", cell_count(neurons.size()));
  const Result<bool> is_staged = run.is_staged(run.checkpoint(), shard);
  if (!is_staged) return is_staged.error();
  report.fact("is_staged", "open round",
              {*is_staged, *is_staged ? "its commit is staged" : "its commit is not here yet"});
  if (is_output) {
    const auto digests = run.shard_digests();
    if (!digests) return digests.error();
    report.fact("digest", "digest", cell_text(fmt::format("{:016x}", (*digests)[raw(shard)].sum)));
  }
  statistics.show(report);
  show_heaviest(report, run, shard, *names, heaviest.sorted(), request.style);
  return report;
}

Result<Report> inspect_layer(RunStore& run, const InspectRequest&) {
  const ShardMap& map = run.shard_map();
  RowStatistics output;
  RowStatistics input;
  // Norms of output rows, by how many training points have the label: 0, 1, 2-3, 4-7, ...
  std::map<unsigned, Distribution> norms_by_frequency;
  std::map<unsigned, std::uint64_t> stored_by_frequency;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::vector<std::uint32_t> counts = run.label_counts(shard);
    auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
      const double row_norm = norm(weights_of(map, shard, row));
      (map.is_output(shard) ? output : input).add(map, shard, row, row_norm);
      if (!map.is_output(shard)) return;
      const auto power = static_cast<unsigned>(std::bit_width(counts[row.neuron]));
      norms_by_frequency[power].add(row_norm);
      stored_by_frequency[power] += row.is_stored ? 1 : 0;
    });
    if (!visited) return visited.error();
  }
  Report report;
  report.section(
      "output",
      map.is_wide()
          ? fmt::format("Output layer: {} neurons of wide rows, stored in rows of {} weights",
                        grouped(run.identity().model.labels), kWideWeights)
          : fmt::format("Output layer: {} neurons of {} weights and a bias",
                        grouped(run.identity().model.labels), map.hidden()));
  output.show(report);
  if (!map.is_wide()) {
    report.section("input", fmt::format("Input layer: {} features to {} hidden units",
                                        grouped(run.identity().model.features), map.hidden()));
    input.show(report);
  }
  report.section("", "Output neurons by how many training examples have their label");
  ReportTable& table = report.table("by_frequency", {{"points_from", "from"},
                                                     {"points_to", "to"},
                                                     {"neurons", "neurons"},
                                                     {"trained", "trained"},
                                                     {"norm_mean", "mean norm"},
                                                     {"norm_max", "largest norm"}});
  for (auto& [power, norms] : norms_by_frequency) {
    const std::uint64_t from = power == 0 ? 0 : std::uint64_t{1} << (power - 1);
    table.rows.push_back({cell_count(from), cell_count((std::uint64_t{1} << power) - 1),
                          cell_count(norms.size()), cell_count(stored_by_frequency[power]),
                          cell_number(norms.mean(), 4), cell_number(norms.quantile(1), 4)});
  }
  return report;
}

}  // namespace gleaner
