#include "tools/predict/export_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "common/data/word_model.hpp"
#include "common/model/model_fields.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {

namespace {

Error refuse(const ModelPart& part, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", part.name, why)};
}

bool is_of_same_examples(const ModelConfig& a, const ModelConfig& b) {
  return a.data_fingerprint == b.data_fingerprint && a.points == b.points &&
         a.features == b.features && a.labels == b.labels;
}

}  // namespace

Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts) {
  const ModelPart& first = parts.front();
  RunIdentity joined = first.run->identity();
  if (parts.size() == 1) return joined;
  const Result<bool> is_normalised = trained_on_normalised_points(joined);
  if (!is_normalised) return refuse(first, is_normalised.error().message);
  joined.model.hidden = 0;
  joined.model.input_shards = 1;
  // The units of all share one scale.
  joined.model.activation_bits = ModelConfig().activation_bits;
  for (const ModelPart& part : parts) {
    const RunIdentity& identity = part.run->identity();
    if (!is_of_same_examples(identity.model, joined.model)) {
      return refuse(part, fmt::format("it was trained on other examples than {}, so their labels "
                                      "need not be the same",
                                      first.name));
    }
    const Result<bool> own = trained_on_normalised_points(identity);
    if (!own) return refuse(part, own.error().message);
    if (*own != *is_normalised) {
      return refuse(part,
                    fmt::format("its examples were {}scaled to length one, the examples of {} were "
                                "{}",
                                *own ? "" : "not ", first.name, *own ? "not" : "so"));
    }
    if (identity.model.hidden_units != joined.model.hidden_units) {
      return refuse(part,
                    fmt::format("its hidden units are of another kind than the hidden units of {} "
                                "(model.hidden_units)",
                                first.name));
    }
    joined.model.hidden += identity.model.hidden;
  }
  if (auto valid = validate(joined.model); !valid) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} models together make a network that is refused: {}", parts.size(),
                             valid.error().message)};
  }
  return joined;
}

namespace {

constexpr const char* kExportFormat = "gleaner model 1";

// "all" where every shard of every round is the work of the master or of trusted volunteers, or was
// confirmed by an auditor; "adaptive 0.25" where that is so of a quarter of what strangers did, and
// "off" of nothing; "unknown" without receipts.
Result<std::string> audited_of(RunStore& run) {
  std::map<WorkVerdict, std::uint64_t> shards;
  bool is_all = true;
  for (RoundIndex round = 0; round < run.checkpoint(); ++round) {
    const auto receipts = run.receipts(round);
    if (!receipts) return receipts.error();
    if (receipts->shards.empty()) return std::string("unknown");
    for (const Receipt& receipt : receipts->shards) ++shards[receipt.verdict];
    is_all = is_all && receipts->unaudited.empty();
  }
  const std::uint64_t confirmed = shards[WorkVerdict::kConfirmed];
  const std::uint64_t unaudited = shards[WorkVerdict::kUnaudited];
  if (is_all && unaudited == 0) return std::string("all");
  if (confirmed == 0) return std::string("off");
  return fmt::format("adaptive {:.2f}",
                     static_cast<double>(confirmed) / static_cast<double>(confirmed + unaudited));
}

}  // namespace

Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores) {
  std::vector<ModelPart> parts;
  std::uint32_t first_unit = 0;
  for (const std::string& store : stores) {
    auto run = open_run_to_read(store);
    if (!run) return run.error();
    if ((*run)->checkpoint() == 0 && !begins_with_rows((*run)->identity().model)) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: the run has no checkpoint yet: wait until "
                               "the master has finished the first round",
                               store)};
    }
    Result<std::string> digest = (*run)->checkpoint_digest();
    if (!digest) return name_folder(digest.error(), store);
    parts.push_back({store, std::move(*run), first_unit, std::move(*digest)});
    first_unit += parts.back().run->identity().model.hidden;
  }
  return parts;
}

Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts) {
  std::map<std::string, std::string> metadata = identity.settings;
  // Settings repeat fields of the first model, also those that the whole does not use.
  for_each_model_field(
      [&](const auto& field) { metadata.erase("model." + std::string(field.name)); });
  for (const auto& [name, text] : model_fields(identity.model)) metadata["model." + name] = text;
  std::vector<std::uint64_t> checkpoints;
  std::vector<std::string> digests, audits;
  for (const ModelPart& part : parts) {
    checkpoints.push_back(part.run->checkpoint());
    digests.push_back(part.digest);
    auto audited = audited_of(*part.run);
    if (!audited) return audited.error();
    audits.push_back(std::move(*audited));
  }
  metadata["format"] = kExportFormat;
  if (parts.size() > 1) metadata["models"] = std::to_string(parts.size());
  metadata["checkpoint"] = fmt::format("{}", fmt::join(checkpoints, " "));
  metadata["digest"] = fmt::format("{}", fmt::join(digests, " "));
  metadata["audited"] = fmt::format("{}", fmt::join(audits, " "));
  return metadata;
}

namespace {

// One name a line, as many as there are output rows.
std::string lines_of(const NameTable& names, const std::vector<std::uint32_t>& labels) {
  std::string text;
  if (names.size() == 0) return text;
  for (const std::uint32_t label : labels) text.append(names.name(label)).append("\n");
  return text;
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

std::vector<TextTensor> text_tensors(const ExportTexts& texts) {
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
