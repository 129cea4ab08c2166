#include "tools/predict/write_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "storage/keep/model_rows.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/predict/kept_labels.hpp"

namespace gleaner {
namespace {

// Places in the list of tensors.
enum Tensor : std::size_t {
  kInputWeight,
  kInputBias,
  kOutputWeight,
  kOutputBias,
  kLabelCounts,
  kOutputLabels,  // with --prune
};

// The tensors that rows go to.
struct Weights {
  std::size_t hidden;
  std::span<float> input, input_bias, output, output_bias;
  std::uint8_t* label_counts;
};

// `share` of every output row: logits are sums over the parts.
Result<void> fill_rows(const ModelPart& part, const KeptLabels& rows, float share,
                       const Weights& weights, const std::function<void()>& shard_done) {
  RunStore& run = *part.run;
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const NeuronRange neurons = map.neurons(shard);
    const std::vector<std::uint32_t> label_counts = run.label_counts(shard);
    auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
      if (!map.is_output(shard)) {
        const auto target = row.row == run.identity().model.features
                                ? weights.input_bias
                                : weights.input.subspan(row.row * weights.hidden, weights.hidden);
        std::ranges::copy(row.values, target.begin() + part.first_unit + neurons.begin);
        return;
      }
      const auto place = rows.place(map.label_of_neuron(neurons.begin + row.row));
      if (!place) return;
      const auto target = weights.output.subspan(*place * weights.hidden + part.first_unit);
      std::ranges::transform(row.values.first(row.values.size() - 1), target.begin(),
                             [&](float weight) { return share * weight; });
      weights.output_bias[*place] += share * row.values.back();
      std::memcpy(weights.label_counts + *place * sizeof(std::uint32_t), &label_counts[row.row],
                  sizeof(std::uint32_t));
    });
    if (!visited) return visited;
    shard_done();
  }
  return {};
}

Result<void> fill_file(const std::vector<ModelPart>& parts, const KeptLabels& rows,
                       std::size_t hidden, ModelFile& file, const ShardsDone& shards_done) {
  const Weights weights{hidden,
                        file.floats(kInputWeight),
                        file.floats(kInputBias),
                        file.floats(kOutputWeight),
                        file.floats(kOutputBias),
                        file.data(kLabelCounts).data()};
  std::uint64_t shards = 0;
  for (const ModelPart& part : parts) shards += part.run->shard_map().shard_count();
  std::uint64_t done = 0;
  const float share = 1.0F / static_cast<float>(parts.size());
  for (const ModelPart& part : parts) {
    auto filled = fill_rows(part, rows, share, weights, [&] { shards_done(++done, shards); });
    if (!filled) return name_folder(filled.error(), part.name);
  }
  return {};
}

}  // namespace

Result<ModelFileForm> form_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return ModelFileForm::kSafetensors;
  if (path.ends_with(".npz")) return ModelFileForm::kNpz;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} ends in neither .safetensors nor .npz: the file's ending names the "
                           "form",
                           path)};
}

Result<WrittenModel> write_model(const std::vector<ModelPart>& parts, const ModelTarget& target,
                                 const ShardsDone& shards_done) {
  const Result<ModelFileForm> form = form_of(target.path);
  if (!form) return form.error();
  const bool wide = is_wide(parts.front().run->identity().model);
  if (wide && parts.size() > 1) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the mean of several models needs a hidden layer, and these have none: export each "
        "of them to a file of its own"};
  }
  const Result<RunIdentity> identity = identity_of(parts);
  if (!identity) return identity.error();
  const auto metadata = metadata_of(*identity, parts);
  if (!metadata) return metadata.error();
  const bool prune = target.prune && !wide;  // every label of a wide model has a stored row
  const Result<KeptLabels> rows = KeptLabels::of(parts, prune);
  if (!rows) return rows.error();
  const ModelConfig& model = identity->model;
  const std::uint64_t labels = rows->labels().size();
  RunStore& first = *parts.front().run;
  WideShape shape;
  std::vector<TensorSpec> tensors;
  if (wide) {
    Result<WideShape> read = wide_shape(first);
    if (!read) return name_folder(read.error(), parts.front().name);
    shape = std::move(*read);
    tensors = wide_tensors(shape);
  } else {
    using Type = TensorType;
    tensors = {{"input.weight", Type::kFloat32, {model.features, model.hidden}},
               {"input.bias", Type::kFloat32, {model.hidden}},
               {"output.weight", Type::kFloat32, {labels, model.hidden}},
               {"output.bias", Type::kFloat32, {labels}},
               {"label_counts", Type::kUint32, {labels}}};
    if (prune) tensors.push_back({"output.labels", Type::kUint32, {labels}});
  }
  const ExportTexts texts =
      export_texts(*metadata, *target.data, target.label_names, rows->labels());
  const std::size_t first_text = tensors.size();
  const std::vector<TextTensor> contents = text_tensors(texts);
  for (const TextTensor& content : contents) tensors.push_back(content.spec);
  auto file = ModelFile::create(target.path, *form, std::move(tensors), *metadata);
  if (!file) return file.error();
  for (std::size_t i = 0; i < contents.size(); ++i) {
    std::ranges::copy(contents[i].bytes, (*file)->data(first_text + i).begin());
  }
  if (prune) {
    std::memcpy((*file)->data(kOutputLabels).data(), rows->labels().data(),
                labels * sizeof(std::uint32_t));
  }
  std::uint64_t done = 0;
  const auto one_done = [&] { shards_done(++done, first.shard_map().shard_count()); };
  const auto filled = wide ? fill_wide(first, shape, **file, one_done)
                           : fill_file(parts, *rows, model.hidden, **file, shards_done);
  if (!filled) return name_folder(filled.error(), parts.front().name);
  if (auto finished = (*file)->finish(); !finished) return finished.error();
  return WrittenModel{(*file)->bytes(), rows->left_out(),     model.labels,
                      model.hidden,     !texts.words.empty(), metadata->at("digest")};
}

}  // namespace gleaner
