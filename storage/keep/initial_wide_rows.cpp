#include "storage/keep/initial_wide_rows.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/limits.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {
namespace {

class WideRowMaker {
 public:
  WideRowMaker(const ModelConfig& config, WideRowOf row_of)
      : features_(config.features), map_(config), row_of_(std::move(row_of)) {}

  Result<ShardRows> operator()(ShardId shard, std::uint32_t begin, std::uint32_t end) {
    if (made_ != shard) {
      if (auto made = make_rows(shard); !made) return made.error();
      made_ = shard;
    }
    const auto some = [&](const auto& list) {
      using List = std::remove_cvref_t<decltype(list)>;
      const std::size_t width = rows_.rows.empty() ? 0 : list.size() / rows_.rows.size();
      const std::size_t last = std::min<std::size_t>(end, rows_.rows.size());
      if (begin >= last) return List();
      return List(list.begin() + static_cast<std::ptrdiff_t>(begin * width),
                  list.begin() + static_cast<std::ptrdiff_t>(last * width));
    };
    return ShardRows{
        some(rows_.rows), some(rows_.values), some(rows_.states), some(rows_.codes), {}};
  }

 private:
  Result<void> make_rows(ShardId shard) {
    made_ = ShardId{~0U};
    rows_ = {};
    const NeuronRange neurons = map_.neurons(shard);
    for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
      row_.clear();
      if (auto made = row_of_(map_.label_of_neuron(neuron), row_); !made) return made;
      append(neuron - neurons.begin);
    }
    return {};
  }

  void append(std::uint32_t neuron) {
    // At least one row, since the first row has the bias.
    for (std::size_t begin = 0; begin == 0 || begin < row_.features.size(); begin += kWideWeights) {
      rows_.rows.push_back(static_cast<std::uint32_t>(rows_.rows.size()));
      rows_.states.push_back(begin == 0 ? row_.own : 0.0F);
      rows_.codes.push_back(neuron);
      for (std::size_t i = begin; i < begin + kWideWeights; ++i) {
        const bool is_there = i < row_.features.size();
        rows_.codes.push_back(is_there ? row_.features[i] : features_);
        rows_.values.push_back(is_there ? row_.weights[i] : 0.0F);
      }
      rows_.values.push_back(begin == 0 ? row_.bias : 0.0F);
    }
  }

  std::uint32_t features_;
  ShardMap map_;
  WideRowOf row_of_;
  WideRow row_;
  ShardId made_{~0U};  // the shard whose rows are in rows_
  ShardRows rows_;
};

}  // namespace

void WideRow::clear() {
  features.clear();
  weights.clear();
  bias = 0;
  own = 0;
}

void WideRow::add(std::uint32_t feature, float weight) {
  features.push_back(feature);
  weights.push_back(weight);
}

Result<WideSizes> wide_sizes(const ModelConfig& config, const WideRowOf& row_of) {
  const ShardMap map(config);
  std::vector<std::uint64_t> rows(config.output_shards);
  std::vector<std::uint64_t> weights(config.output_shards);
  WideRow row;
  for (std::uint32_t label = 0; label < config.labels; ++label) {
    row.clear();
    if (auto made = row_of(label, row); !made) return made.error();
    const std::uint64_t own = (row.features.size() + kWideWeights - 1) / kWideWeights;
    const std::uint32_t shard = raw(map.shard_of_neuron(map.neuron_of_label(label)));
    rows[shard] += std::max<std::uint64_t>(own, 1);
    weights[shard] += row.features.size();
  }
  WideSizes sizes;
  sizes.rows = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(*std::ranges::max_element(rows), kWideRowsMax + 1));
  auto& [mean, beyond] = sizes.weights;
  for (const std::uint64_t own : weights) mean += own;
  mean = mean / weights.size() + 1;
  for (const std::uint64_t own : weights) beyond += std::max(own, mean) - mean;
  return sizes;
}

InitialRows wide_initial_rows(const ModelConfig& config, WideRowOf row_of) {
  return WideRowMaker(config, std::move(row_of));
}

}  // namespace gleaner
