#include "tests/bench/sampling_quality.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "common/model/shard_rows.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_layer.hpp"

namespace gleaner {
namespace {

double sigmoid(float logit) {
  return 1.0 / (1.0 + std::exp(-double{logit}));
}

std::vector<OutputShard> shards_of(const ShardContext& context, const CommittedRows& rows,
                                   ThreadPool& pool, std::vector<ShardScratch>& scratch) {
  std::vector<OutputShard> shards;
  for (std::uint32_t s = 0; s < context.map.output_shards(); ++s) {
    OutputShard& shard = shards.emplace_back(context, ShardId{s});
    const NeuronRange range = shard.neurons();
    for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
      shard.load_initial(neuron - range.begin, rows.row(neuron));
    }
    shard.finish_loading({pool, scratch});
  }
  return shards;
}

// One example's logits and which of its neurons are true or chosen.
struct Example {
  std::vector<float> logits;
  std::vector<bool> is_true;
  std::vector<bool> is_chosen;
};

void judge(const Example& example, SamplingQuality& sum) {
  std::vector<std::pair<float, bool>> others;  // logit, chosen
  for (std::size_t n = 0; n < example.logits.size(); ++n) {
    if (!example.is_true[n]) others.emplace_back(example.logits[n], example.is_chosen[n]);
  }
  std::sort(others.begin(), others.end(), std::greater<>());
  const auto count = static_cast<std::size_t>(
      std::count_if(others.begin(), others.end(), [](const auto& other) { return other.second; }));
  const auto recall = [&](std::size_t depth) {
    const std::size_t highest = std::min(depth, others.size());
    double found = 0;
    for (std::size_t i = 0; i < highest; ++i) found += others[i].second ? 1 : 0;
    return highest == 0 ? 1.0 : found / static_cast<double>(highest);
  };
  double whole = 0;
  double chosen = 0;
  double best = 0;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const double mass = sigmoid(others[i].first);
    whole += mass;
    if (others[i].second) chosen += mass;
    if (i < count) best += mass;
  }
  sum.active += static_cast<double>(count);
  sum.recall_10 += recall(10);
  sum.recall_100 += recall(100);
  sum.gradient += whole > 0 ? chosen / whole : 1.0;
  sum.gradient_best += whole > 0 ? best / whole : 1.0;
}

}  // namespace

CommittedRows::CommittedRows(const ModelConfig& config, std::span<const std::uint32_t> label_counts)
    : map_(config), width_(config.hidden + std::size_t{1}), values_(config.labels * width_) {
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    const NeuronRange range = map_.neurons(ShardId{s});
    for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
      initial_row(config, map_, ShardId{s}, neuron - range.begin,
                  label_counts[map_.label_of_neuron(neuron)],
                  std::span(values_).subspan(neuron * width_, width_));
    }
  }
}

void CommittedRows::apply(const ShardCommit& commit) {
  const std::uint32_t begin = map_.neurons(commit.lease.shard).begin;
  const SparseUpdate& update = commit.update;
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    add_row_delta(update, i, std::span(values_).subspan((begin + update.rows[i]) * width_, width_));
  }
}

SamplingQuality sampling_quality(const ModelConfig& config, const CommittedRows& rows,
                                 const QuantizedActivations& codes, const Positives& positives,
                                 ThreadPool& pool) {
  const Kernels& kernels = default_kernels();
  const ShardMap map(config);
  const std::unique_ptr<SimHash> sim_hash =
      config.sampling == Sampling::kLsh ? std::make_unique<SimHash>(config, kernels) : nullptr;
  const ShardContext context{config, map, kernels, sim_hash.get()};
  std::vector<ShardScratch> scratch(pool.threads(), ShardScratch(config));
  std::vector<OutputShard> shards = shards_of(context, rows, pool, scratch);
  QueryBatch batch(config, sim_hash.get());
  batch.prepare(0, codes, pool);

  std::vector<Example> examples(codes.examples);
  for (Example& example : examples) {
    example.logits.resize(config.labels);
    example.is_true.resize(config.labels);
    example.is_chosen.resize(config.labels);
  }
  std::vector<float> hidden(codes.codes.size());
  for (std::size_t e = 0; e < codes.examples; ++e) {
    kernels.dequantise(codes.scales[e], codes.codes.data() + e * config.hidden,
                       hidden.data() + e * config.hidden, config.hidden);
  }
  OutputLayer layer(context, pool, scratch);
  std::vector<OutputShard*> held;
  std::vector<HeldShard> asked;
  for (OutputShard& shard : shards) {
    held.push_back(&shard);
    asked.push_back({shard.id(), shard.neurons(), true});
  }
  layer.hold(held);
  layer.rebuild_tables();
  ActiveSets active;
  ShardCounts counts;
  counts.clear(codes.examples, shards.size());
  scratch[0].chooser.choose(batch, positives, {asked, layer.tables()}, {0, codes.examples}, active,
                            counts);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const OutputShard& shard = shards[s];
    const NeuronRange range = shard.neurons();
    const std::uint32_t begin = layer.tables().begin(s);
    for (std::uint32_t e = 0; e < codes.examples; ++e) {
      Example& example = examples[e];
      for (const std::uint32_t row : active.chosen(e)) {
        if (layer.tables().shard_of(row) == s) example.is_chosen[range.begin + row - begin] = true;
      }
      for (std::uint32_t row = 0; row < range.size(); ++row) {
        example.logits[range.begin + row] =
            kernels.dot(shard.rows().weights(row), &hidden[std::size_t{e} * config.hidden],
                        config.hidden) +
            rows.row(range.begin + row).back();
      }
    }
  }
  SamplingQuality sum;
  for (std::uint32_t e = 0; e < codes.examples; ++e) {
    for (std::uint32_t i = positives.offsets[e]; i < positives.offsets[e + 1]; ++i) {
      examples[e].is_true[positives.neurons[i]] = true;
    }
    judge(examples[e], sum);
  }
  const auto count = static_cast<double>(codes.examples);
  return {sum.active / count, sum.recall_10 / count, sum.recall_100 / count, sum.gradient / count,
          sum.gradient_best / count};
}

}  // namespace gleaner
