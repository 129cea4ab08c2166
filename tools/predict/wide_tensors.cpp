#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "common/data/word_model.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/predict/export_model.hpp"

namespace gleaner {
namespace {

enum WideTensor : std::size_t {
  kWideOffsets,
  kWideFeatures,
  kWideValues,
  kWideOwn,
  kWideBias,
  kWideCounts
};

// Calls visit(label, row, its features) for every wide row.
template <typename Visit>
Result<void> visit_wide_rows(RunStore& run, const Visit& visit,
                             const std::function<void()>& shard_done) {
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
    const std::uint32_t begin = map.neurons(ShardId{s}).begin;
    auto visited = visit_model_rows(run, ShardId{s}, [&](const ModelRow& row) {
      const std::span<const std::uint32_t> features = row.codes.subspan(1);
      const auto end = std::ranges::find(features, map.features());
      visit(map.label_of_neuron(begin + row.neuron), row,
            features.first(static_cast<std::size_t>(end - features.begin())));
    });
    if (!visited) return visited;
    shard_done();
  }
  return {};
}

}  // namespace

Result<WideShape> wide_shape(RunStore& run) {
  std::vector<std::uint64_t> counts(run.identity().model.labels);
  auto visited = visit_wide_rows(
      run,
      [&](std::uint32_t label, const ModelRow&, std::span<const std::uint32_t> features) {
        counts[label] += features.size();
      },
      [] {});
  if (!visited) return visited.error();
  WideShape shape;
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) {
    shape.offsets.push_back(static_cast<std::uint32_t>(sum));
    sum += count;
  }
  if (sum > std::numeric_limits<std::uint32_t>::max()) {
    return Error{
        ErrorCode::kResources,
        fmt::format("the model has {} weights, more than a file's offsets can count", sum)};
  }
  shape.offsets.push_back(static_cast<std::uint32_t>(sum));
  return shape;
}

std::vector<TensorSpec> wide_tensors(const WideShape& shape) {
  const std::uint64_t labels = shape.offsets.size() - 1;
  return {{"wide.offsets", TensorType::kUint32, {labels + 1}},
          {"wide.features", TensorType::kUint32, {shape.entries()}},
          {"wide.weights", TensorType::kFloat32, {shape.entries()}},
          {"wide.own", TensorType::kFloat32, {labels}},
          {"output.bias", TensorType::kFloat32, {labels}},
          {"label_counts", TensorType::kUint32, {labels}}};
}

Result<void> fill_wide(RunStore& run, const WideShape& shape, ModelFile& file,
                       const std::function<void()>& shard_done) {
  const auto put = [&file](WideTensor tensor, std::uint64_t at, const void* values,
                           std::size_t bytes) {
    std::memcpy(file.data(tensor).data() + at * sizeof(std::uint32_t), values, bytes);
  };
  put(kWideOffsets, 0, shape.offsets.data(), shape.offsets.size() * sizeof(std::uint32_t));
  std::vector<std::uint32_t> next(shape.offsets.begin(), shape.offsets.end() - 1);
  std::vector<std::uint8_t> has_bias(next.size());
  auto visited = visit_wide_rows(
      run,
      [&](std::uint32_t label, const ModelRow& row, std::span<const std::uint32_t> features) {
        put(kWideFeatures, next[label], features.data(), features.size_bytes());
        put(kWideValues, next[label], row.values.data(), features.size() * sizeof(float));
        next[label] += static_cast<std::uint32_t>(features.size());
        // The first of a label's rows has its bias and its own part.
        if (has_bias[label] != 0) return;
        has_bias[label] = 1;
        put(kWideBias, label, &row.values.back(), sizeof(float));
        put(kWideOwn, label, &row.state, sizeof(float));
      },
      shard_done);
  if (!visited) return visited;
  const std::vector<std::uint32_t>& counts = run.label_counts();
  put(kWideCounts, 0, counts.data(), counts.size() * sizeof(std::uint32_t));
  return {};
}

}  // namespace gleaner
