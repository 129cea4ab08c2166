#include "storage/keep/initial_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <unordered_map>

#include "common/data/packed_format.hpp"
#include "common/limits.hpp"
#include "common/model/row_checks.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kEntriesMax = ~std::uint32_t{0};

}  // namespace

NameMatch::NameMatch(std::uint32_t in_file, std::uint32_t in_data)
    : is_by_name_(false), to_data_(in_file, kNone), to_file_(in_data, kNone) {
  for (std::uint32_t number = 0; number < std::min(in_file, in_data); ++number) {
    pair(number, number);
  }
}

NameMatch::NameMatch(const NameTable& in_file, const NameTable& in_data)
    : is_by_name_(true), to_data_(in_file.size(), kNone), to_file_(in_data.size(), kNone) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (std::uint32_t number = 0; number < in_data.size(); ++number) {
    if (!in_data.name(number).empty()) known.try_emplace(in_data.name(number), number);
  }
  for (std::uint32_t number = 0; number < in_file.size(); ++number) {
    const auto found = known.find(in_file.name(number));
    if (found != known.end() && to_file_[found->second] == kNone) pair(number, found->second);
  }
}

void NameMatch::pair(std::uint32_t in_file, std::uint32_t in_data) {
  to_data_[in_file] = in_data;
  to_file_[in_data] = in_file;
  ++shared_;
}

bool NameMatch::is_identity() const {
  for (std::uint32_t number = 0; number < to_data_.size(); ++number) {
    if (to_data_[number] != number) return false;
  }
  return true;
}

InitialModel::InitialModel(std::unique_ptr<TensorFile> file) : file_(std::move(file)) {}

Result<std::unique_ptr<InitialModel>> InitialModel::open(const std::string& path) {
  auto file = TensorFile::open(path);
  if (!file) return file.error();
  std::unique_ptr<InitialModel> model(new InitialModel(std::move(*file)));
  if (auto read = model->read(); !read) return read.error();
  return model;
}

Result<void> InitialModel::read() {
  // The rows would not belong to labels 0, 1, 2, ...
  if (file_->has("output.labels")) {
    return file_->refuse("labels are left out of it: export the model without --prune");
  }
  auto read = file_->has("wide.offsets") ? read_wide() : read_layers();
  if (!read) return read;
  if (auto counts = read_label_counts(); !counts) return counts;
  return match({}, labels_, {}, features_);
}

Result<void> InitialModel::match(const NameTable& labels, std::uint32_t label_count,
                                 const NameTable& features, std::uint32_t feature_count) {
  const auto matched = [this](const char* tensor, const NameTable& names, std::uint32_t in_file,
                              std::uint32_t in_data, bool is_exact) -> Result<NameMatch> {
    const Result<std::string_view> text = file_->text(tensor);
    if (!text) return text.error();
    if (text->empty() || names.size() == 0) return NameMatch(in_file, in_data);
    const NameTable own = NameTable::of_lines(*text);
    if (own.size() == in_file || (own.size() > in_file && !is_exact)) return NameMatch(own, names);
    return file_->refuse(fmt::format("{} has {} names for {} rows", tensor, own.size(), in_file));
  };
  auto of_labels = matched(kLabelNamesTensor, labels, labels_, label_count, true);
  if (!of_labels) return of_labels.error();
  // With wide rows, features_ ends at the last feature that a label has.
  auto of_features = matched(kFeatureNamesTensor, features, features_, feature_count, hidden_ != 0);
  if (!of_features) return of_features.error();
  label_match_ = std::move(*of_labels);
  feature_match_ = std::move(*of_features);
  take_fingerprint();
  return {};
}

Result<void> InitialModel::read_layers() {
  struct Wanted {
    const char* name;
    Tensor* tensor;
    std::size_t dimensions;
  };

  const std::array<Wanted, 4> all = {{{"input.weight", &input_weight_, 2},
                                      {"input.bias", &input_bias_, 1},
                                      {"output.weight", &output_weight_, 2},
                                      {"output.bias", &output_bias_, 1}}};
  for (const Wanted& wanted : all) {
    auto tensor = file_->tensor(wanted.name, "F32", wanted.dimensions, kFeaturesMax);
    if (!tensor) return tensor.error();
    *wanted.tensor = std::move(*tensor);
  }
  const std::uint64_t hidden = input_weight_.shape[1];
  if (output_weight_.shape[1] != hidden || input_bias_.shape[0] != hidden ||
      output_bias_.shape[0] != output_weight_.shape[0] || hidden > kHiddenMax ||
      output_weight_.shape[0] > kLabelsMax) {
    return file_->refuse("the shapes of its tensors do not make a model");
  }
  features_ = static_cast<std::uint32_t>(input_weight_.shape[0]);
  hidden_ = static_cast<std::uint32_t>(hidden);
  labels_ = static_cast<std::uint32_t>(output_weight_.shape[0]);
  return {};
}

Result<void> InitialModel::read_wide() {
  struct Wanted {
    const char* name;
    const char* type;
    Tensor* tensor;
    std::uint64_t extent_max;
  };

  const std::array<Wanted, 5> all = {
      {{"wide.offsets", "U32", &wide_offsets_, std::uint64_t{kLabelsMax} + 1},
       {"wide.features", "U32", &wide_features_, kEntriesMax},
       {"wide.weights", "F32", &wide_weights_, kEntriesMax},
       {"wide.own", "F32", &wide_own_, kLabelsMax},
       {"output.bias", "F32", &output_bias_, kLabelsMax}}};
  for (const Wanted& wanted : all) {
    auto tensor = file_->tensor(wanted.name, wanted.type, 1, wanted.extent_max);
    if (!tensor) return tensor.error();
    *wanted.tensor = std::move(*tensor);
  }
  if (wide_offsets_.count() != output_bias_.count() + 1 ||
      wide_own_.count() != output_bias_.count() ||
      wide_features_.count() != wide_weights_.count()) {
    return file_->refuse("the shapes of its tensors do not make a model");
  }
  labels_ = static_cast<std::uint32_t>(output_bias_.count());
  return check_offsets();
}

// Checks that rows are consecutive and cover all entries, and that their features ascend.
Result<void> InitialModel::check_offsets() {
  const auto offset = [this](std::uint32_t label) {
    return wide_offsets_.at<std::uint32_t>(label);
  };
  if (offset(0) != 0 || offset(labels_) != wide_features_.count()) {
    return file_->refuse("wide.offsets do not begin at 0 and end with the last entry");
  }
  for (std::uint32_t label = 0; label < labels_; ++label) {
    if (offset(label) > offset(label + 1) || offset(label + 1) > wide_features_.count()) {
      return file_->refuse(fmt::format("wide.offsets do not ascend at label {}", label));
    }
    std::uint32_t least = 0;
    for (std::uint64_t i = offset(label); i < offset(label + 1); ++i) {
      const auto feature = wide_features_.at<std::uint32_t>(i);
      if (feature < least || feature >= kFeaturesMax) {
        return file_->refuse(
            fmt::format("wide.features of label {} do not ascend, or are too large", label));
      }
      least = feature + 1;
    }
    features_ = std::max(features_, least);
  }
  return {};
}

Result<void> InitialModel::read_label_counts() {
  if (!file_->has("label_counts")) return {};
  const auto counts = file_->tensor("label_counts", "U32", 1, kLabelsMax);
  if (!counts || counts->count() != labels_) {
    return file_->refuse("label_counts does not have one U32 number per label");
  }
  label_counts_.resize(labels_);
  std::memcpy(label_counts_.data(), counts->data, counts->bytes());
  return {};
}

HiddenUnits InitialModel::hidden_units() const {
  const auto kind = metadata().find("model.hidden_units");
  const bool is_linear = kind != metadata().end() && kind->second == "linear";
  return is_linear ? HiddenUnits::kLinear : HiddenUnits::kRelu;
}

std::uint64_t InitialModel::parameters() const {
  return input_weight_.count() + input_bias_.count() + output_weight_.count() +
         output_bias_.count() + wide_weights_.count();
}

void InitialModel::take_fingerprint() {
  ChecksumStream stream;
  const std::array<std::uint32_t, 3> shape = {features_, hidden_, labels_};
  stream.add(shape.data(), sizeof(shape));
  for (const Tensor* tensor : {&input_weight_, &input_bias_, &output_weight_, &output_bias_,
                               &wide_offsets_, &wide_features_, &wide_weights_, &wide_own_}) {
    if (tensor->data != nullptr) stream.add(tensor->data, tensor->bytes());
  }
  for (const NameMatch* match : {&label_match_, &feature_match_}) {
    if (match->is_identity()) continue;
    const std::vector<std::uint32_t>& numbers = match->all_to_data();
    stream.add(numbers.data(), numbers.size() * sizeof(numbers[0]));
  }
  fingerprint_ = std::max<std::uint64_t>(1, stream.value());
}

Result<void> InitialModel::check_fits(const ModelConfig& model) const {
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", file_->path(), what)};
  };
  if (model.hidden != hidden_) {
    return refuse(fmt::format("it has {} hidden units and the run {}: give --hidden {}", hidden_,
                              model.hidden, hidden_));
  }
  if (hidden_ != 0 && model.hidden_units != hidden_units()) {
    const char* const kind = hidden_units() == HiddenUnits::kLinear ? "linear" : "relu";
    return refuse(
        fmt::format("its hidden units are {}, and the run's are not: give "
                    "--hidden-units {}",
                    kind, kind));
  }
  if ((!feature_match_.is_by_name() && model.features < features_) ||
      (!label_match_.is_by_name() && model.labels < labels_)) {
    return refuse(
        fmt::format("it has {} features and {} labels, more than the {} and {} of the "
                    "training file",
                    features_, labels_, model.features, model.labels));
  }
  return {};
}

bool InitialModel::has_label(std::uint32_t in_data) const {
  const std::uint32_t label = label_match_.to_file(in_data);
  return label != NameMatch::kNone && output_bias_.at<float>(label) > kRetiredBias;
}

Result<void> InitialModel::read_wide_row(std::uint32_t in_data, WideRow& row) const {
  const std::uint32_t label = label_match_.to_file(in_data);
  const auto begin = wide_offsets_.at<std::uint32_t>(label);
  const auto end = wide_offsets_.at<std::uint32_t>(label + 1);
  std::vector<std::pair<std::uint32_t, float>> weights;
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint32_t feature = feature_match_.to_data(wide_features_.at<std::uint32_t>(i));
    if (feature != NameMatch::kNone) weights.emplace_back(feature, wide_weights_.at<float>(i));
  }
  std::ranges::sort(weights, {}, &std::pair<std::uint32_t, float>::first);
  for (const auto& [feature, weight] : weights) row.add(feature, weight);
  row.bias = output_bias_.at<float>(label);
  row.own = wide_own_.at<float>(label);
  if (are_sound_weights(row.weights) && are_sound_weights({&row.bias, 1}) &&
      is_sound_state(row.own)) {
    return {};
  }
  return file_->refuse(
      fmt::format("the wide row of label {} has a value that training cannot have", label));
}

class InitialModel::RowMaker {
 public:
  RowMaker(const InitialModel& file, const ModelConfig& config)
      : file_(file), config_(config), map_(config) {}

  Result<ShardRows> operator()(ShardId shard, std::uint32_t begin, std::uint32_t end) const;

 private:
  // Reads a row's values; returns false when the file does not have the row.
  [[nodiscard]] bool read(ShardId shard, std::uint32_t row, std::span<float> values) const;

  const InitialModel& file_;
  ModelConfig config_;
  ShardMap map_;
};

bool InitialModel::RowMaker::read(ShardId shard, std::uint32_t row, std::span<float> values) const {
  const NeuronRange neurons = map_.neurons(shard);
  const std::size_t row_bytes = std::size_t{file_.hidden_} * sizeof(float);
  if (map_.is_output(shard)) {
    const std::size_t label = file_.label_match_.to_file(map_.label_of_neuron(neurons.begin + row));
    if (label == NameMatch::kNone) return false;
    std::memcpy(values.data(), file_.output_weight_.data + label * row_bytes, row_bytes);
    std::memcpy(&values.back(), file_.output_bias_.data + label * sizeof(float), sizeof(float));
    return true;
  }
  const bool is_bias = row == config_.features;
  const std::size_t feature = is_bias ? 0 : file_.feature_match_.to_file(row);
  if (feature == NameMatch::kNone) return false;
  const std::uint8_t* const from =
      is_bias ? file_.input_bias_.data : file_.input_weight_.data + feature * row_bytes;
  std::memcpy(values.data(), from + neurons.begin * sizeof(float), values.size_bytes());
  return true;
}

Result<ShardRows> InitialModel::RowMaker::operator()(ShardId shard, std::uint32_t begin,
                                                     std::uint32_t end) const {
  const std::size_t width = map_.row_width(shard);
  std::vector<float> values(width);
  ShardRows rows;
  for (std::uint32_t row = begin; row < end; ++row) {
    if (!read(shard, row, values)) continue;
    if (!are_sound_weights(values)) {
      const bool is_output = map_.is_output(shard);
      return file_.file_->refuse(
          fmt::format("row {} of {} has a value that training cannot have",
                      is_output ? map_.label_of_neuron(map_.neurons(shard).begin + row) : row,
                      is_output ? "output.weight" : "input.weight"));
    }
    rows.rows.push_back(row);
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.states.push_back(0.0F);
  }
  return rows;
}

InitialRows InitialModel::rows(const ModelConfig& model) const {
  if (hidden_ == 0) {
    return wide_initial_rows(
        model, [this](std::uint32_t label, WideRow& row) { return read_wide_row(label, row); });
  }
  return RowMaker(*this, model);
}

}  // namespace gleaner
