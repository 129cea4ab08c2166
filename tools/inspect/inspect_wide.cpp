// A label's wide row: the features that speak for it and against it, by name where names are known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/model/model_rows.hpp"
#include "tools/inspect/inspect_views.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kFeaturesShown = 20;

struct Weight {
  std::uint32_t feature = 0;
  float weight = 0;
};

// The names beside those of the labels; none where there is no such file of this data set.
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
    Cell name = cell_text(features->name(weight.feature));
    name.text = fit(name.text, 50, request.style);
    table.rows.push_back(
        {cell_count(weight.feature), std::move(name), cell_number(weight.weight, 4)});
  }
  return report;
}

}  // namespace gleaner
