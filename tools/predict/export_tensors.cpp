#include "tools/predict/export_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "common/data/word_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {
namespace {

// One name a line, as many as there are output rows.
std::string lines_of(const NameTable& names, const std::vector<std::uint32_t>& labels) {
  std::string text;
  if (names.size() == 0) return text;
  for (const std::uint32_t label : labels) text.append(names.name(label)).append("\n");
  return text;
}

struct TextTensor {
  TensorSpec spec;
  std::span<const char> bytes;
};

std::vector<TextTensor> tensors_of(const ExportTexts& texts) {
  std::vector<TextTensor> tensors;
  const auto add = [&](const char* name, const std::string& text) {
    tensors.push_back({{name, TensorType::kUint8, {text.size()}}, text});
  };
  add("metadata", texts.metadata);
  add(kLabelNamesTensor, texts.label_names);
  if (!texts.feature_names.empty()) add(kFeatureNamesTensor, texts.feature_names);
  if (!texts.words.empty()) add(kWordsTensor, texts.words);
  if (!texts.idf.empty()) {
    tensors.push_back(
        {{kIdfTensor, TensorType::kFloat64, {texts.idf.size()}},
         {reinterpret_cast<const char*>(texts.idf.data()), texts.idf.size() * sizeof(double)}});
  }
  return tensors;
}

}  // namespace

Result<ExportTexts> export_texts(const RunIdentity& identity,
                                 const std::map<std::string, std::string>& metadata,
                                 const std::string& data, const std::string& labels_file,
                                 const std::vector<std::uint32_t>& labels) {
  ExportTexts texts;
  texts.metadata = Json(metadata).dump();
  const Result<NameTable> own_labels = label_names_of(identity, labels_file);
  if (!own_labels) return own_labels.error();
  const auto known =
      data.empty() ? Result<PredictData>(PredictData()) : PredictData::open_names(data, identity);
  if (!known) return known.error();
  texts.label_names = lines_of(labels_file.empty() ? known->names().labels : *own_labels, labels);
  texts.feature_names = known->names().features.lines();
  if (known->words() == nullptr) return texts;
  const WordModel& words = *known->words();
  texts.words = word_model_json(words);
  for (const std::uint32_t occurrences : words.words.occurrences()) {
    texts.idf.push_back(rarity(occurrences, words.points));
  }
  return texts;
}

std::vector<TensorSpec> text_tensors(const ExportTexts& texts) {
  std::vector<TensorSpec> specs;
  for (TextTensor& tensor : tensors_of(texts)) specs.push_back(std::move(tensor.spec));
  return specs;
}

void fill_texts(const ExportTexts& texts, ModelFile& file, std::size_t first) {
  for (const TextTensor& tensor : tensors_of(texts)) {
    if (!tensor.bytes.empty()) {
      std::memcpy(file.data(first).data(), tensor.bytes.data(), tensor.bytes.size());
    }
    ++first;
  }
}

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
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
    const std::uint32_t begin = map.neurons(ShardId{s}).begin;
    const std::vector<std::uint32_t> counts = run.label_counts(ShardId{s});
    for (std::uint32_t i = 0; i < counts.size(); ++i) {
      put(kWideCounts, map.label_of_neuron(begin + i), &counts[i], sizeof(std::uint32_t));
    }
  }
  return {};
}

}  // namespace gleaner
