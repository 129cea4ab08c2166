// The views that read rows: a shard, the layers, one neuron.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "common/console/terminal.hpp"
#include "common/limits.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {

namespace {

constexpr std::size_t kHeaviestRows = 10;
constexpr std::size_t kNearestNeurons = 10;

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// Weights without an output row's bias.
std::span<const float> weights_of(const ShardMap& map, ShardId shard, const ModelRow& row) {
  return map.is_output(shard) ? row.values.first(row.values.size() - 1) : row.values;
}

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

namespace {

struct Neuron {
  ShardId shard{};
  std::uint32_t row = 0;
  std::vector<float> values;
  std::vector<std::uint32_t> codes;
  float state = 0;
  bool is_stored = false;
  std::uint32_t training_points = 0;
};

Result<Neuron> read_neuron(RunStore& run, std::uint32_t label) {
  const ShardMap& map = run.shard_map();
  const std::uint32_t number = map.neuron_of_label(label);
  Neuron neuron;
  neuron.shard = map.shard_of_neuron(number);
  neuron.row = number - map.neurons(neuron.shard).begin;
  neuron.training_points = run.label_counts(neuron.shard)[neuron.row];
  auto visited = visit_model_rows(run, neuron.shard, [&](const ModelRow& row) {
    if (row.row != neuron.row) return;
    neuron.values.assign(row.values.begin(), row.values.end());
    neuron.codes.assign(row.codes.begin(), row.codes.end());
    neuron.state = row.state;
    neuron.is_stored = row.is_stored;
  });
  if (!visited) return visited.error();
  return neuron;
}

struct Near {
  double cosine = 0;
  std::uint32_t neuron = 0;
  std::uint32_t shared_tables = 0;
};

// Rows of each of the neuron's buckets, itself included, and the neurons of the nearest direction.
struct Neighbourhood {
  std::vector<std::uint64_t> bucket_rows;
  std::vector<Near> nearest;
};

Result<Neighbourhood> look_around(RunStore& run, const Neuron& neuron, std::uint32_t number) {
  const ShardMap& map = run.shard_map();
  const std::span<const float> own = std::span(neuron.values).first(neuron.values.size() - 1);
  const double own_norm = norm(own);
  Neighbourhood around;
  around.bucket_rows.resize(neuron.codes.size());
  for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
    const ShardId shard{s};
    auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
      Near near{0, map.neurons(shard).begin + row.row, 0};
      for (std::size_t t = 0; t < row.codes.size() && t < neuron.codes.size(); ++t) {
        if (row.codes[t] != neuron.codes[t]) continue;
        ++around.bucket_rows[t];
        ++near.shared_tables;
      }
      // A row that training never touched points anywhere.
      if (near.neuron == number || !row.is_stored) return;
      const std::span<const float> weights = weights_of(map, shard, row);
      double product = 0;
      for (std::size_t i = 0; i < own.size(); ++i) product += double{own[i]} * double{weights[i]};
      near.cosine = product / (own_norm * norm(weights));
      if (!std::isfinite(near.cosine)) return;
      around.nearest.push_back(near);
      if (around.nearest.size() < 4096) return;
      std::ranges::partial_sort(around.nearest, around.nearest.begin() + kNearestNeurons,
                                std::greater<>(), &Near::cosine);
      around.nearest.resize(kNearestNeurons);
    });
    if (!visited) return visited.error();
  }
  std::ranges::sort(around.nearest, std::greater<>(), &Near::cosine);
  around.nearest.resize(std::min(around.nearest.size(), kNearestNeurons));
  return around;
}

}  // namespace

Result<Report> inspect_neuron(RunStore& run, const InspectRequest& request) {
  const ShardMap& map = run.shard_map();
  Result<NameTable> names = label_names_of(run.identity(), request.labels);
  if (!names) return names.error();
  const auto label = find_label(*names, run.identity().model.labels, request.which);
  if (!label) return label.error();
  if (map.is_wide()) return inspect_wide_neuron(run, request, *label, *names);
  const std::uint32_t number = map.neuron_of_label(*label);
  const Result<Neuron> neuron = read_neuron(run, *label);
  if (!neuron) return neuron.error();
  const Result<Neighbourhood> around = look_around(run, *neuron, number);
  if (!around) return around.error();

  Report report;
  report.section("", printable(names->name_or("Label", *label)));
  report.fact("label", "label", cell_count(*label));
  report.fact("name", "name", cell_text(names->name(*label)));
  report.fact("training_points", "training examples", cell_count(neuron->training_points));
  report.fact("shard", "shard", cell_count(raw(neuron->shard)));
  report.fact("row", "row", cell_count(neuron->row));
  report.fact("is_stored", "trained", {neuron->is_stored, neuron->is_stored ? "yes" : "no"});
  report.fact("norm", "norm",
              cell_number(norm(std::span(neuron->values).first(neuron->values.size() - 1)), 4));
  report.fact("bias", "bias", cell_number(neuron->values.back(), 4));
  report.fact("state", "optimizer state", cell_number(neuron->state, 8));
  report.section("", "Nearest neurons, by the cosine of their weights");
  ReportTable& nearest = report.table("nearest", {{"label", "label"},
                                                  {"name", "name", true},
                                                  {"cosine", "cosine"},
                                                  {"shared_tables", "buckets shared"}});
  for (const Near& near : around->nearest) {
    const std::uint32_t other = map.label_of_neuron(near.neuron);
    nearest.rows.push_back({cell_count(other), cell_fit(names->name(other), 50, request.style),
                            cell_number(near.cosine, 4), cell_count(near.shared_tables)});
  }
  if (neuron->codes.empty()) return report;
  report.section("", "Its buckets, over all shards");
  ReportTable& buckets =
      report.table("buckets", {{"table", "table"}, {"code", "bucket"}, {"neurons", "neurons"}});
  buckets.people_rows_max = 10;
  for (std::size_t t = 0; t < neuron->codes.size(); ++t) {
    buckets.rows.push_back(
        {cell_count(t), cell_count(neuron->codes[t]), cell_count(around->bucket_rows[t])});
  }
  return report;
}

// A label's wide row: the features that speak for it and against it, by name where names are known.

namespace {

constexpr std::size_t kFeaturesShown = 20;

struct Weight {
  std::uint32_t feature = 0;
  float weight = 0;
};

// The features' names, from the file beside the labels'; none without such a file of this data set.
Result<NameTable> feature_names_beside(const std::string& labels, const RunIdentity& identity) {
  const std::string path = labels.empty() ? labels : companion_path(labels, kFeatureNamesFile);
  if (path.empty()) return NameTable();
  auto its = check_name_file(identity.settings, path, kFeatureNamesFile);
  if (!its) return its.error();
  Result<NameTable> names = NameTable::load(path);
  if (!names || names->size() == identity.model.features) return names;
  return NameTable();
}

}  // namespace

Result<Report> inspect_wide_neuron(RunStore& run, const InspectRequest& request,
                                   std::uint32_t label, const NameTable& names) {
  const Result<NameTable> features = feature_names_beside(request.labels, run.identity());
  if (!features) return features.error();
  const ShardMap& map = run.shard_map();
  const std::uint32_t number = map.neuron_of_label(label);
  const ShardId shard = map.shard_of_neuron(number);
  const std::uint32_t neuron = number - map.neurons(shard).begin;
  std::vector<Weight> weights;
  std::uint64_t rows = 0;
  float bias = 0;
  auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
    if (row.neuron != neuron) return;
    if (rows++ == 0) bias = row.values.back();
    for (std::size_t i = 1; i < row.codes.size() && row.codes[i] != map.features(); ++i) {
      weights.push_back({row.codes[i], row.values[i - 1]});
    }
  });
  if (!visited) return visited.error();
  double squares = 0;
  for (const Weight& weight : weights) squares += double{weight.weight} * double{weight.weight};

  Report report;
  report.section("", printable(names.name_or("Label", label)));
  report.fact("label", "label", cell_count(label));
  report.fact("name", "name", cell_text(names.name(label)));
  report.fact("training_points", "training examples", cell_count(run.label_counts(shard)[neuron]));
  report.fact("shard", "shard", cell_count(raw(shard)));
  report.fact("features", "features", cell_count(weights.size()));
  report.fact("rows", "stored rows", cell_count(rows));
  report.fact("norm", "norm", cell_number(std::sqrt(squares), 4));
  report.fact("bias", "bias", cell_number(bias, 4));
  report.section("", "Its strongest features");
  ReportTable& table = report.table(
      "strongest", {{"feature", "feature"}, {"name", "name", true}, {"weight", "weight"}});
  const std::size_t shown = std::min(weights.size(), kFeaturesShown);
  std::ranges::partial_sort(weights, weights.begin() + static_cast<std::ptrdiff_t>(shown),
                            [](const Weight& a, const Weight& b) {
                              const float left = std::abs(a.weight);
                              const float right = std::abs(b.weight);
                              return left > right || (left == right && a.feature < b.feature);
                            });
  for (const Weight& weight : std::span(weights).first(shown)) {
    table.rows.push_back({cell_count(weight.feature),
                          cell_fit(features->name(weight.feature), 50, request.style),
                          cell_number(weight.weight, 4)});
  }
  return report;
}

// One hash table over all shards: how the neurons lie in its buckets.

namespace {

constexpr std::size_t kLargestBuckets = 10;
constexpr std::size_t kBarWidth = 40;

struct Occupancy {
  std::vector<std::uint64_t> buckets;  // neurons in each
  std::uint64_t neurons = 0;
};

Result<Occupancy> read_occupancy(RunStore& run, std::uint32_t table) {
  const ModelConfig& model = run.identity().model;
  Occupancy occupancy;
  occupancy.buckets.resize(std::size_t{1} << model.hash_bits);
  bool is_sound = true;
  for (std::uint32_t s = 0; s < model.output_shards; ++s) {
    auto visited = visit_model_rows(run, ShardId{s}, [&](const ModelRow& row) {
      if (row.codes.empty()) return;
      const std::uint32_t code = row.codes[table];
      if (code >= occupancy.buckets.size()) {
        is_sound = false;
        return;
      }
      ++occupancy.buckets[code];
      ++occupancy.neurons;
    });
    if (!visited) return visited.error();
  }
  if (is_sound) return occupancy;
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("table {} has entries beyond its buckets: gleaner verify names them", table)};
}

}  // namespace

Result<Report> inspect_table(RunStore& run, const InspectRequest& request) {
  const ModelConfig& model = run.identity().model;
  if (run.shard_map().tables() == 0) {
    return Error{ErrorCode::kInvalidArgument, "the run samples without hash tables: it has none"};
  }
  const auto table = parse_number("table", request.which, std::uint64_t{model.tables} - 1);
  if (!table) return table.error();
  const Result<Occupancy> occupancy = read_occupancy(run, *table);
  if (!occupancy) return occupancy.error();
  const auto& buckets = occupancy->buckets;
  const auto n = static_cast<double>(occupancy->neurons);
  const auto size = static_cast<double>(buckets.size());
  double pairs = 0;
  for (const std::uint64_t count : buckets) {
    pairs += static_cast<double>(count) * (static_cast<double>(count) - 1);
  }
  const auto empty = static_cast<double>(std::ranges::count(buckets, 0U));

  Report report;
  report.section("", fmt::format("Table {} of {}, over all shards", *table, model.tables));
  report.fact("neurons", "neurons in it", cell_count(occupancy->neurons));
  report.fact("buckets", "buckets", cell_count(buckets.size()));
  report.fact("empty_share", "empty buckets", cell_share(empty / size));
  report.fact("empty_share_expected", "  if at random", cell_share(std::pow(1 - 1 / size, n)));
  report.fact("collision_rate", "pairs that collide", cell_share(pairs / (n * (n - 1)), 4));
  report.fact("collision_rate_expected", "  if at random", cell_share(1 / size, 4));

  std::map<unsigned, std::uint64_t> histogram;  // by the width of the count in bits
  std::uint64_t most = 1;
  for (const std::uint64_t count : buckets) {
    most = std::max(most, ++histogram[static_cast<unsigned>(std::bit_width(count))]);
  }
  report.section("", "Buckets by how many neurons they hold");
  ReportTable& shown = report.table(
      "occupancy", {{"from", "from"}, {"to", "to"}, {"buckets", "buckets"}, {"share", "", true}});
  for (const auto& [power, count] : histogram) {
    const double share = static_cast<double>(count) / static_cast<double>(most);
    shown.rows.push_back(
        {cell_count(power == 0 ? 0 : std::uint64_t{1} << (power - 1)),
         cell_count((std::uint64_t{1} << power) - 1),
         cell_count(count),
         {static_cast<double>(count) / size, bar(share, kBarWidth, request.style)}});
  }
  std::vector<std::uint32_t> order(buckets.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](auto a, auto b) { return buckets[a] > buckets[b]; });
  order.resize(std::min(order.size(), kLargestBuckets));
  report.section("", "Largest buckets");
  ReportTable& largest =
      report.table("largest", {{"code", "bucket"}, {"neurons", "neurons"}, {"share", "of all"}});
  for (const std::uint32_t code : order) {
    largest.rows.push_back({cell_count(code), cell_count(buckets[code]),
                            cell_share(static_cast<double>(buckets[code]) / n)});
  }
  return report;
}

}  // namespace gleaner
