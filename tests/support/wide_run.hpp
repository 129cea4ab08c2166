// A small run without a hidden layer, and a master's messages to its volunteers.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "schema/messages.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/sim/workload/planted_data.hpp"

namespace gleaner {

struct WideRun {
  std::unique_ptr<PackedDataset> train = planted_data({}, 7, 0);
  ModelConfig model;
  std::unique_ptr<WideStart> start;
  std::vector<std::uint32_t> label_counts = count_labels(*train);
  WideWeights weights;

  explicit WideRun(std::uint32_t shards = 4) {
    model.points = train->points();
    model.features = train->features();
    model.labels = train->labels();
    model.hidden = 0;
    model.output_shards = shards;
    model.epochs = 2;
    model.batch_examples = 8;
    model.round_batches = 5;
    model.wide_features = 40;
    model.rehash_batches = 3;
    model.output_rate = 0.5F;
    start = WideStart::open(model, *train).value();
    const WideSizes sizes = start->sizes().value();
    model.wide_rows = sizes.rows;
    weights = sizes.weights;
  }

  [[nodiscard]] ShardRows rows(ShardId shard) const {
    return start->rows()(shard, 0, model.wide_rows).value();
  }

  [[nodiscard]] std::vector<std::uint32_t> counts_of(const ShardMap& map, ShardId shard) const {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = map.neurons(shard).begin; n < map.neurons(shard).end; ++n) {
      counts.push_back(label_counts[map.label_of_neuron(n)]);
    }
    return counts;
  }

  // Lends the initial shard, in one chunk.
  [[nodiscard]] LeaseGrant grant(std::uint32_t shard, std::uint64_t epoch = 1) const {
    LeaseGrant grant;
    grant.lease = {ShardId{shard}, LeaseEpoch{epoch}};
    grant.base_chunks = grant.chunks = 1;
    grant.label_counts = counts_of(ShardMap(model), ShardId{shard});
    return grant;
  }

  [[nodiscard]] ShardChunk chunk(const LeaseRef& lease) const {
    return {lease, 0, rows(lease.shard)};
  }

  // A shard-round.
  [[nodiscard]] TrainUnit unit(const LeaseRef& lease, RoundIndex round,
                               std::uint32_t cuts = 0) const {
    const RunPlan plan(model);
    const BatchIndex first = plan.round_begin(round);
    float rate = plan.rates(first).output;
    for (std::uint32_t cut = 0; cut < cuts; ++cut) rate /= 2;
    TrainUnit unit;
    unit.unit = UnitId{round * 1000 + raw(lease.shard)};
    unit.leases = {lease};
    unit.batches.push_back({first, std::make_shared<const Bytes>(), {{0}, {}}, rate});
    return unit;
  }

  [[nodiscard]] EvalUnit evaluation(const LeaseRef& lease, std::uint64_t first,
                                    std::uint32_t count) const {
    EvalUnit unit;
    unit.unit = UnitId{1'000'000 + raw(lease.shard)};
    unit.leases = {lease};
    unit.top_k = 3;
    unit.first = first;
    QuantizedActivations none;
    none.examples = count;
    unit.hidden = std::make_shared<const Bytes>(pack(none));
    return unit;
  }

  // The output neurons of an example's labels, ascending.
  [[nodiscard]] std::vector<std::uint32_t> neurons_of(const ExampleView& example) const {
    const ShardMap map(model);
    std::vector<std::uint32_t> neurons;
    for (const std::uint32_t label : example.labels) neurons.push_back(map.neuron_of_label(label));
    std::ranges::sort(neurons);
    return neurons;
  }

  // The test set is the training set.
  [[nodiscard]] Points points(const PointsRequest& request) const {
    Points points{request.set, request.points, {0}, {}, {}, {{0}, {}}};
    for (const std::uint64_t point : request.points) {
      const ExampleView example = train->example(point);
      points.features.insert(points.features.end(), example.features.begin(),
                             example.features.end());
      points.values.insert(points.values.end(), example.values.begin(), example.values.end());
      points.offsets.push_back(static_cast<std::uint32_t>(points.features.size()));
      if (request.set == PointSet::kTestSet) continue;
      const auto neurons = neurons_of(example);
      points.labels.neurons.insert(points.labels.neurons.end(), neurons.begin(), neurons.end());
      points.labels.offsets.push_back(static_cast<std::uint32_t>(points.labels.neurons.size()));
    }
    return points;
  }

  [[nodiscard]] WideBatch batch(BatchIndex index) const {
    std::vector<std::vector<std::uint32_t>> neurons;
    std::vector<ExampleView> examples;
    for (const std::uint64_t point : RunPlan(model).points_of(index)) {
      examples.push_back(train->example(point));
      examples.back().labels = neurons.emplace_back(neurons_of(examples.back()));
    }
    return prepare_training(model, index, examples);
  }
};

}  // namespace gleaner
