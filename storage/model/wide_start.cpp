#include "storage/model/wide_start.hpp"

#include <algorithm>
#include <cmath>

#include "common/check.hpp"
#include "common/limits.hpp"
#include "common/model/initial_weights.hpp"
#include "common/natural_log.hpp"

namespace gleaner {

std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples) {
  return std::uint64_t{config.wide_features} * (4 + examples) / 4;
}

WideStart::WideStart(const ModelConfig& config, const PackedDataset& train)
    : config_(config),
      map_(config),
      train_(train),
      offsets_(std::size_t{config.labels} + 1),
      sums_(config.features) {
  rarities_.resize(config.features);
  for (std::uint64_t point = 0; point < train.points(); ++point) {
    const ExampleView example = train.example(point);
    for (const std::uint32_t label : example.labels) ++offsets_[label + 1];
    for (const std::uint32_t feature : example.features) ++rarities_[feature];
  }
  for (double& of_feature : rarities_) {
    of_feature = natural_log(static_cast<double>(train.points() + 1) / (of_feature + 0.5));
  }
  for (std::size_t label = 0; label < config.labels; ++label) {
    offsets_[label + 1] += offsets_[label];
  }
  examples_.resize(offsets_.back());
  std::vector<std::uint64_t> next(offsets_.begin(), offsets_.end() - 1);
  for (std::uint64_t point = 0; point < train.points(); ++point) {
    for (const std::uint32_t label : train.example(point).labels) examples_[next[label]++] = point;
  }
}

void WideStart::sum_up(std::uint32_t label) {
  features_.clear();
  for (std::uint64_t i = offsets_[label]; i < offsets_[label + 1]; ++i) {
    const ExampleView example = train_.example(examples_[i]);
    double squares = 0;
    for (const float value : example.values) squares += double{value} * double{value};
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (std::size_t k = 0; k < example.features.size(); ++k) {
      double& sum = sums_[example.features[k]];
      if (sum == 0) features_.push_back(example.features[k]);
      sum += double{example.values[k]} * scale;
    }
  }
  std::ranges::sort(features_);
  // A sum that went through zero has its feature here twice.
  features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
  double squares = 0;
  double weighted = 0;
  for (const std::uint32_t feature : features_) {
    double& sum = sums_[feature];
    squares += sum * sum;
    weighted += rarities_[feature] * sum * sum;
    sum *= rarities_[feature];
  }
  rarity_ = squares > 0 ? weighted / squares : 0;
  const std::uint64_t kept = wide_features_kept(config_, offsets_[label + 1] - offsets_[label]);
  if (features_.size() <= kept) return;
  const auto end = features_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::nth_element(features_.begin(), end, features_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double left = std::abs(sums_[a]);
    const double right = std::abs(sums_[b]);
    return left > right || (left == right && a < b);
  });
  for (auto rest = end; rest != features_.end(); ++rest) sums_[*rest] = 0;
  features_.erase(end, features_.end());
  std::ranges::sort(features_);
}

void WideStart::append_rows(ShardRows& rows, std::uint32_t neuron, std::uint32_t label) {
  sum_up(label);
  double squares = 0;
  for (const std::uint32_t feature : features_) squares += sums_[feature] * sums_[feature];
  const double scale = squares > 0 ? double{config_.wide_scale} / std::sqrt(squares) : 0;
  const std::uint64_t count = offsets_[label + 1] - offsets_[label];
  // One row at least, since the first has the bias.
  for (std::size_t begin = 0; begin == 0 || begin < features_.size(); begin += kWideWeights) {
    rows.rows.push_back(static_cast<std::uint32_t>(rows.rows.size()));
    rows.states.push_back(begin == 0 ? static_cast<float>(scale * rarity_) : 0.0F);
    rows.codes.push_back(neuron);
    for (std::size_t i = begin; i < begin + kWideWeights; ++i) {
      const bool is_there = i < features_.size();
      rows.codes.push_back(is_there ? features_[i] : config_.features);
      rows.values.push_back(is_there ? static_cast<float>(sums_[features_[i]] * scale) : 0.0F);
    }
    rows.values.push_back(
        begin == 0 ? prior_log_odds(train_.points(), static_cast<std::uint32_t>(count)) : 0.0F);
  }
  for (const std::uint32_t feature : features_) sums_[feature] = 0;
}

ShardRows WideStart::make_rows(ShardId shard) {
  const NeuronRange neurons = map_.neurons(shard);
  ShardRows rows;
  for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
    append_rows(rows, neuron - neurons.begin, map_.label_of_neuron(neuron));
  }
  return rows;
}

std::uint32_t WideStart::rows_max(const std::function<bool()>& is_stopping) {
  std::vector<std::uint64_t> rows(config_.output_shards);
  for (std::uint32_t label = 0; label < config_.labels; ++label) {
    if (is_stopping && label % 1024 == 0 && is_stopping()) return 0;
    sum_up(label);
    for (const std::uint32_t feature : features_) sums_[feature] = 0;
    const std::uint64_t own = (features_.size() + kWideWeights - 1) / kWideWeights;
    rows[raw(map_.shard_of_neuron(map_.neuron_of_label(label)))] += std::max<std::uint64_t>(own, 1);
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(*std::ranges::max_element(rows), kWideRowsMax + 1));
}

InitialRows WideStart::rows(const ModelConfig& config) {
  GLEANER_CHECK(config.wide_rows > 0);
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
