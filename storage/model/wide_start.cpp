#include "storage/model/wide_start.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "common/limits.hpp"
#include "common/model/initial_weights.hpp"
#include "common/natural_log.hpp"

namespace gleaner {

std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples) {
  return std::uint64_t{config.wide_features} * (4 + examples) / 4;
}

Result<std::unique_ptr<WideStart>> WideStart::open(const ModelConfig& config,
                                                   const PackedDataset& train) {
  auto examples = LabelExamples::open(train);
  if (!examples) return examples.error();
  return std::unique_ptr<WideStart>(new WideStart(config, train, std::move(*examples)));
}

WideStart::WideStart(const ModelConfig& config, const PackedDataset& train, LabelExamples examples)
    : config_(config),
      map_(config),
      train_(train),
      examples_(std::move(examples)),
      centroid_(config.features),
      rarities_(config.features) {
  for (std::uint64_t point = 0; point < train.points(); ++point) {
    for (const std::uint32_t feature : train.example(point).features) ++rarities_[feature];
  }
  for (double& of_feature : rarities_) {
    of_feature = natural_log(static_cast<double>(train.points() + 1) / (of_feature + 0.5));
  }
}

void WideStart::sum_up(std::uint32_t label) {
  const std::span<const std::uint32_t> own = examples_.of(label);
  for (const std::uint32_t index : own) centroid_.add(train_.example(index));
  weights_.clear();
  centroid_.take([&](std::uint32_t feature, double sum) { weights_.push_back({feature, sum}); });
  std::ranges::sort(weights_, {}, &Weight::feature);
  double squares = 0;
  double weighted = 0;
  for (Weight& weight : weights_) {
    const double rarity = rarities_[weight.feature];
    squares += weight.sum * weight.sum;
    weighted += rarity * weight.sum * weight.sum;
    weight.sum *= rarity;
  }
  rarity_ = squares > 0 ? weighted / squares : 0;
  const std::uint64_t kept = wide_features_kept(config_, own.size());
  if (weights_.size() <= kept) return;
  const auto end = weights_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::nth_element(weights_.begin(), end, weights_.end(), [](const Weight& a, const Weight& b) {
    const double left = std::abs(a.sum);
    const double right = std::abs(b.sum);
    return left > right || (left == right && a.feature < b.feature);
  });
  weights_.erase(end, weights_.end());
  std::ranges::sort(weights_, {}, &Weight::feature);
}

void WideStart::append_rows(ShardRows& rows, std::uint32_t neuron, std::uint32_t label) {
  sum_up(label);
  double squares = 0;
  for (const Weight& weight : weights_) squares += weight.sum * weight.sum;
  const double scale = squares > 0 ? double{config_.wide_scale} / std::sqrt(squares) : 0;
  const auto count = static_cast<std::uint32_t>(examples_.of(label).size());
  // One row at least, since the first has the bias.
  for (std::size_t begin = 0; begin == 0 || begin < weights_.size(); begin += kWideWeights) {
    rows.rows.push_back(static_cast<std::uint32_t>(rows.rows.size()));
    rows.states.push_back(begin == 0 ? static_cast<float>(scale * rarity_) : 0.0F);
    rows.codes.push_back(neuron);
    for (std::size_t i = begin; i < begin + kWideWeights; ++i) {
      const bool is_there = i < weights_.size();
      rows.codes.push_back(is_there ? weights_[i].feature : config_.features);
      rows.values.push_back(is_there ? static_cast<float>(weights_[i].sum * scale) : 0.0F);
    }
    rows.values.push_back(begin == 0 ? prior_log_odds(train_.points(), count) : 0.0F);
  }
}

ShardRows WideStart::make_rows(ShardId shard) {
  const NeuronRange neurons = map_.neurons(shard);
  ShardRows rows;
  for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
    append_rows(rows, neuron - neurons.begin, map_.label_of_neuron(neuron));
  }
  return rows;
}

std::uint32_t WideStart::rows_max() {
  std::vector<std::uint64_t> rows(config_.output_shards);
  for (std::uint32_t label = 0; label < config_.labels; ++label) {
    sum_up(label);
    const std::uint64_t own = (weights_.size() + kWideWeights - 1) / kWideWeights;
    rows[raw(map_.shard_of_neuron(map_.neuron_of_label(label)))] += std::max<std::uint64_t>(own, 1);
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(*std::ranges::max_element(rows), kWideRowsMax + 1));
}

InitialRows WideStart::rows() {
  return [this](ShardId shard, std::uint32_t begin, std::uint32_t end) -> Result<ShardRows> {
    if (made_ != shard) made_rows_ = make_rows(shard);
    made_ = shard;
    const ShardRows& all = made_rows_;
    const auto some = [&](const auto& list) {
      using List = std::remove_cvref_t<decltype(list)>;
      const std::size_t width = all.rows.empty() ? 0 : list.size() / all.rows.size();
      const std::size_t last = std::min<std::size_t>(end, all.rows.size());
      if (begin >= last) return List();
      return List(list.begin() + static_cast<std::ptrdiff_t>(begin * width),
                  list.begin() + static_cast<std::ptrdiff_t>(last * width));
    };
    return ShardRows{some(all.rows), some(all.values), some(all.states), some(all.codes), {}};
  };
}

}  // namespace gleaner
