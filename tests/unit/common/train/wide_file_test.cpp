// Runs without a hidden layer that begin with a model file.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/limits.hpp"
#include "common/model/shard_map.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/sim/workload/planted_data.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using Words = std::vector<std::uint32_t>;
using Floats = std::vector<float>;

// Two labels: 0 has features 1 and 4, 1 has feature 2.
struct WideFileContent {
  Words offsets = {0, 2, 3};
  Words features = {1, 4, 2};
  Floats weights = {0.5F, -0.25F, 2.0F};
  Floats own = {0.125F, 0.0625F};
  Floats biases = {-3.0F, -4.0F};

  // Writes the file, and says where it is.
  [[nodiscard]] std::string write(const test::TemporaryFolder& folder,
                                  const std::string& labels = {},
                                  const std::string& feature_names = {}) const {
    const std::string path = folder.path() + "/model.safetensors";
    const auto extent = [](const auto& list) { return std::vector<std::uint64_t>{list.size()}; };
    std::vector<TensorSpec> tensors = {{"wide.offsets", TensorType::kUint32, extent(offsets)},
                                       {"wide.features", TensorType::kUint32, extent(features)},
                                       {"wide.weights", TensorType::kFloat32, extent(weights)},
                                       {"wide.own", TensorType::kFloat32, extent(own)},
                                       {"output.bias", TensorType::kFloat32, extent(biases)}};
    if (!labels.empty()) {
      tensors.push_back({kLabelNamesTensor, TensorType::kUint8, extent(labels)});
    }
    if (!feature_names.empty()) {
      tensors.push_back({kFeatureNamesTensor, TensorType::kUint8, extent(feature_names)});
    }
    auto file = ModelFile::create(path, ModelFileForm::kSafetensors, tensors, {});
    REQUIRE(file.ok());
    std::size_t tensor = 0;
    const auto fill = [&](const auto& list) {
      std::memcpy((*file)->data(tensor++).data(), list.data(), list.size() * sizeof(list[0]));
    };
    fill(offsets);
    fill(features);
    fill(weights);
    fill(own);
    fill(biases);
    if (!labels.empty()) fill(labels);
    if (!feature_names.empty()) fill(feature_names);
    REQUIRE((*file)->finish().ok());
    return path;
  }
};

std::string refusal(const WideFileContent& content) {
  const test::TemporaryFolder folder;
  const auto model = InitialModel::open(content.write(folder));
  REQUIRE_FALSE(model.ok());
  REQUIRE(model.error().code == ErrorCode::kInvalidData);
  return model.error().message;
}

// A label's row, put together again from the stored rows of its shard.
WideRow row_of(const ModelConfig& config, const InitialRows& rows, std::uint32_t label) {
  const ShardMap map(config);
  const std::uint32_t neuron = map.neuron_of_label(label);
  const ShardId shard = map.shard_of_neuron(neuron);
  const ShardRows all = rows(shard, 0, map.row_count(shard)).value();
  const std::size_t width = map.row_width(shard);
  const std::size_t codes = map.codes_per_row(shard);
  WideRow row;
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    if (all.codes[i * codes] != neuron - map.neurons(shard).begin) continue;
    const bool is_first = row.features.empty();
    for (std::size_t k = 0; k < kWideWeights; ++k) {
      const std::uint32_t feature = all.codes[i * codes + 1 + k];
      if (feature < config.features) row.add(feature, all.values[i * width + k]);
    }
    if (is_first) row.own = all.states[i];
    if (is_first) row.bias = all.values[i * width + width - 1];
  }
  return row;
}

TEST_CASE("wide model file: a run keeps its rows and begins beside them as any run", "[wide]") {
  const test::TemporaryFolder folder;
  const WideFileContent content;
  const auto file = InitialModel::open(content.write(folder)).value();
  REQUIRE(file->hidden() == 0);
  REQUIRE(file->labels() == 2);
  REQUIRE(file->features() == 5);

  const auto train = planted_data({}, 7, 0);
  ModelConfig config;
  config.points = train->points();
  config.features = train->features();
  config.labels = train->labels();
  config.hidden = 0;
  config.output_shards = 4;
  config.wide_features = 40;
  config.wide_rows = 100;
  REQUIRE(file->check_fits(config).ok());
  const auto plain = WideStart::open(config, *train).value();
  const auto start = WideStart::open(config, *train, file.get()).value();
  REQUIRE(start->sizes().value().rows <= config.wide_rows);

  for (std::uint32_t label = 0; label < 2; ++label) {
    const WideRow without = row_of(config, plain->rows(), label);
    const WideRow row = row_of(config, start->rows(), label);
    REQUIRE(row.bias == content.biases[label]);
    REQUIRE(row.own == content.own[label]);
    REQUIRE(std::ranges::is_sorted(row.features));
    WideRow of_file;
    for (std::size_t i = 0; i < row.features.size(); ++i) {
      if (row.weights[i] != 0) of_file.add(row.features[i], row.weights[i]);
    }
    const auto begin = content.offsets[label];
    const auto end = content.offsets[label + 1];
    REQUIRE(of_file.features ==
            Words(content.features.begin() + begin, content.features.begin() + end));
    REQUIRE(of_file.weights ==
            Floats(content.weights.begin() + begin, content.weights.begin() + end));
    REQUIRE_FALSE(without.features.empty());
    REQUIRE(std::ranges::includes(row.features, without.features));
  }
  for (const std::uint32_t label : {2U, config.labels - 1}) {
    const WideRow without = row_of(config, plain->rows(), label);
    const WideRow row = row_of(config, start->rows(), label);
    REQUIRE(row.features == without.features);
    REQUIRE(row.weights == without.weights);
    REQUIRE(row.bias == without.bias);
    REQUIRE(row.own == without.own);
  }
}

TEST_CASE(
    "wide model file: labels and features are found by name in a data set that has them elsewhere",
    "[wide]") {
  const test::TemporaryFolder folder;
  const WideFileContent content;
  const auto names = [](std::initializer_list<const char*> list) {
    NameTable table;
    for (const char* name : list) table.add(name);
    return table;
  };
  const std::string path = content.write(folder, "apple\npear\n", "a\nb\nc\nd\ne\n");
  const auto file = InitialModel::open(path).value();
  const std::uint64_t by_number = file->fingerprint();
  REQUIRE(file->has_label(1));
  // "plum" is new and before the others; "d" and the file's "b" are gone.
  REQUIRE(file->match(names({"plum", "pear", "apple"}), 3, names({"e", "c", "a", "f"}), 4).ok());
  REQUIRE(file->matched_labels().is_by_name());
  REQUIRE(file->matched_labels().shared() == 2);
  REQUIRE(file->matched_features().shared() == 3);
  REQUIRE(file->fingerprint() != by_number);
  REQUIRE_FALSE(file->has_label(0));
  WideRow row;
  REQUIRE(file->read_wide_row(2, row).ok());  // apple: b and e
  REQUIRE(row.features == Words{0});
  REQUIRE(row.weights == Floats{-0.25F});
  REQUIRE(row.bias == content.biases[0]);
  row.clear();
  REQUIRE(file->read_wide_row(1, row).ok());  // pear: c
  REQUIRE(row.features == Words{1});
  REQUIRE(row.weights == Floats{2.0F});
  // Fewer labels than the file has are allowed by name, and not by number.
  ModelConfig config;
  config.hidden = 0;
  config.features = 4;
  config.labels = 1;
  REQUIRE(file->match(names({"pear"}), 1, names({"e", "c", "a", "f"}), 4).ok());
  REQUIRE(file->check_fits(config).ok());
  REQUIRE(file->match({}, 1, {}, 4).ok());
  REQUIRE_FALSE(file->matched_labels().is_by_name());
  REQUIRE(file->check_fits(config).error().code == ErrorCode::kInvalidArgument);
  // A match that changes no number leaves the fingerprint.
  REQUIRE(file->match(names({"apple", "pear"}), 2, names({"a", "b", "c", "d", "e"}), 5).ok());
  REQUIRE(file->fingerprint() == by_number);

  const auto broken = InitialModel::open(content.write(folder, "apple\n", "")).value();
  REQUIRE_THAT(broken->match(names({"pear"}), 1, {}, 4).error().message,
               Catch::Contains("label_names has 1 names for 2 rows"));
}

TEST_CASE("wide model file: what cannot be rows is refused by name", "[wide]") {
  using Catch::Contains;
  WideFileContent content;
  content.offsets = {0, 4, 3};
  REQUIRE_THAT(refusal(content), Contains("wide.offsets do not ascend at label 0"));
  content = {};
  content.offsets = {0, 2, 2};
  REQUIRE_THAT(refusal(content), Contains("end with the last entry"));
  content = {};
  content.offsets = {0, 3};
  REQUIRE_THAT(refusal(content), Contains("do not make a model"));
  content = {};
  content.features = {4, 4, 2};
  REQUIRE_THAT(refusal(content), Contains("wide.features of label 0"));
  content = {};
  content.features = {1, 4, 0xffffffff};
  REQUIRE_THAT(refusal(content), Contains("wide.features of label 1"));
  content = {};
  content.weights.pop_back();
  REQUIRE_THAT(refusal(content), Contains("do not make a model"));

  content = {};
  content.weights[2] = std::numeric_limits<float>::infinity();
  const test::TemporaryFolder folder;
  const auto file = InitialModel::open(content.write(folder)).value();
  WideRow row;
  REQUIRE(file->read_wide_row(0, row).ok());
  row.clear();
  const auto read = file->read_wide_row(1, row);
  REQUIRE_FALSE(read.ok());
  REQUIRE_THAT(read.error().message, Contains("label 1"));
}

}  // namespace
}  // namespace gleaner
