// The views of one label: its neuron, or its wide row.

#include <algorithm>
#include <cmath>

#include "common/console/terminal.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kNearestNeurons = 10;

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

}  // namespace gleaner
