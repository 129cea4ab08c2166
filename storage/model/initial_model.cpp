#include "storage/model/initial_model.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/dataset/checksum.hpp"
#include "common/limits.hpp"
#include "common/model/row_checks.hpp"
#include "common/model/shard_map.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kHeaderBytesMax = std::uint64_t{16} << 20;
constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kZipMagic = "PK\3\4";

struct Tensor {
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // Whether it has `bytes` bytes, all of them there.
  [[nodiscard]] bool is_of(std::uint64_t bytes, std::uint64_t data_bytes) const {
    return begin <= end && end <= data_bytes && end - begin == bytes;
  }
};

// Nullopt for anything but a tensor of the type with place and shape.
std::optional<Tensor> read_tensor(const nlohmann::json& entry, const char* wanted_type) {
  if (!entry.is_object()) return std::nullopt;
  const auto type = entry.find("dtype");
  if (type == entry.end() || *type != wanted_type) return std::nullopt;
  const auto shape = entry.find("shape");
  const auto place = entry.find("data_offsets");
  const auto is_numbers = [&](auto list) {
    return list != entry.end() && list->is_array() &&
           std::ranges::all_of(*list, [](const auto& n) { return n.is_number_unsigned(); });
  };
  if (!is_numbers(shape) || !is_numbers(place) || place->size() != 2) return std::nullopt;
  Tensor tensor;
  for (const auto& n : *shape) tensor.shape.push_back(n.template get<std::uint64_t>());
  tensor.begin = (*place)[0].get<std::uint64_t>();
  tensor.end = (*place)[1].get<std::uint64_t>();
  return tensor;
}

}  // namespace

InitialModel::~InitialModel() {
  if (map_ != nullptr) ::munmap(const_cast<std::uint8_t*>(map_), size_);
}

Result<std::unique_ptr<InitialModel>> InitialModel::open(const std::string& path) {
  std::unique_ptr<InitialModel> model(new InitialModel());
  model->path_ = path;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return model->refuse(std::generic_category().message(errno));

  struct stat facts {};

  const bool has_size = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  model->size_ = has_size ? static_cast<std::uint64_t>(facts.st_size) : 0;
  if (model->size_ >= kLengthBytes) {
    void* const map = ::mmap(nullptr, model->size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (map != MAP_FAILED) model->map_ = static_cast<const std::uint8_t*>(map);
  }
  ::close(file);
  if (model->map_ == nullptr) return model->refuse("it is no safetensors file");
  if (auto read = model->read_header(); !read) return read.error();
  model->take_fingerprint();
  return model;
}

// The file's tensors, and where they are.
struct InitialModel::Header {
  nlohmann::json json;
  const std::uint8_t* data = nullptr;
  std::uint64_t data_bytes = 0;
};

Error InitialModel::refuse(const std::string& what) const {
  return {ErrorCode::kInvalidData, fmt::format("{}: {}", path_, what)};
}

Result<void> InitialModel::read_header() {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, map_, kLengthBytes);
  if (std::memcmp(map_, kZipMagic.data(), kZipMagic.size()) == 0) {
    return refuse("it is an npz file: export the model as NAME.safetensors to begin with it");
  }
  if (header_bytes > std::min(kHeaderBytesMax, size_ - kLengthBytes)) {
    return refuse("it is no safetensors file");
  }
  const char* const text = reinterpret_cast<const char*>(map_) + kLengthBytes;
  Header header;
  header.json = nlohmann::json::parse(text, text + header_bytes, nullptr, false);
  if (!header.json.is_object()) return refuse("its header is no JSON object");
  header.data_bytes = size_ - kLengthBytes - header_bytes;
  header.data = map_ + kLengthBytes + header_bytes;

  for (const auto& [name, entry] : header.json.items()) {
    if (!entry.is_object() || !entry.contains("data_offsets")) continue;
    const auto& place = entry["data_offsets"];
    const bool is_there = place.is_array() && place.size() == 2 && place[1].is_number_unsigned() &&
                          place[1].get<std::uint64_t>() <= header.data_bytes;
    if (!is_there) return refuse("it is cut short: not all of its tensors are there");
  }
  // Its rows are then not those of labels 0, 1, 2, ...
  if (header.json.contains("output.labels")) {
    return refuse("labels are left out of it: export the model without --prune");
  }
  if (auto read = read_layers(header); !read) return read;
  if (auto read = read_label_counts(header); !read) return read;
  if (const auto said = header.json.find("__metadata__"); said != header.json.end()) {
    for (const auto& [key, value] : said->items()) {
      if (value.is_string()) metadata_[key] = value.get<std::string>();
    }
  }
  return {};
}

Result<void> InitialModel::read_layers(const Header& header) {
  struct Wanted {
    const char* name;
    const std::uint8_t** place;
    std::vector<std::uint64_t> shape;
  };

  std::array<Wanted, 4> all = {{{"input.weight", &input_weight_, {}},
                                {"input.bias", &input_bias_, {}},
                                {"output.weight", &output_weight_, {}},
                                {"output.bias", &output_bias_, {}}}};
  for (Wanted& wanted : all) {
    const auto entry = header.json.find(wanted.name);
    if (entry == header.json.end()) return refuse(fmt::format("it has no tensor {}", wanted.name));
    const auto tensor = read_tensor(*entry, "F32");
    if (!tensor) return refuse(fmt::format("{} is no tensor of type F32", wanted.name));
    std::uint64_t bytes = sizeof(float);
    for (const std::uint64_t n : tensor->shape) {
      if (n == 0 || n > kFeaturesMax || bytes > header.data_bytes / n) {
        return refuse(fmt::format("{} has an impossible shape", wanted.name));
      }
      bytes *= n;
    }
    if (!tensor->is_of(bytes, header.data_bytes)) {
      return refuse(fmt::format("{} does not have the bytes that its shape takes", wanted.name));
    }
    *wanted.place = header.data + tensor->begin;
    wanted.shape = tensor->shape;
  }
  if (all[0].shape.size() != 2 || all[2].shape.size() != 2 || all[1].shape.size() != 1 ||
      all[3].shape.size() != 1 || all[0].shape[1] != all[2].shape[1] ||
      all[1].shape[0] != all[0].shape[1] || all[3].shape[0] != all[2].shape[0] ||
      all[0].shape[1] > kHiddenMax || all[2].shape[0] > kLabelsMax) {
    return refuse("the shapes of its tensors do not make a model");
  }
  features_ = static_cast<std::uint32_t>(all[0].shape[0]);
  hidden_ = static_cast<std::uint32_t>(all[0].shape[1]);
  labels_ = static_cast<std::uint32_t>(all[2].shape[0]);
  return {};
}

Result<void> InitialModel::read_label_counts(const Header& header) {
  const auto entry = header.json.find("label_counts");
  if (entry == header.json.end()) return {};
  const auto counts = read_tensor(*entry, "U32");
  const std::uint64_t bytes = labels_ * sizeof(std::uint32_t);
  if (!counts || !counts->is_of(bytes, header.data_bytes)) {
    return refuse("label_counts is not a number of type U32 a label");
  }
  label_counts_.resize(labels_);
  std::memcpy(label_counts_.data(), header.data + counts->begin, bytes);
  return {};
}

HiddenUnits InitialModel::hidden_units() const {
  const auto kind = metadata_.find("model.hidden_units");
  const bool is_linear = kind != metadata_.end() && kind->second == "linear";
  return is_linear ? HiddenUnits::kLinear : HiddenUnits::kRelu;
}

void InitialModel::take_fingerprint() {
  ChecksumStream stream;
  const std::array<std::uint32_t, 3> shape = {features_, hidden_, labels_};
  stream.add(shape.data(), sizeof(shape));
  const std::size_t row = std::size_t{hidden_} * sizeof(float);
  stream.add(input_weight_, features_ * row);
  stream.add(input_bias_, row);
  stream.add(output_weight_, labels_ * row);
  stream.add(output_bias_, std::size_t{labels_} * sizeof(float));
  fingerprint_ = std::max<std::uint64_t>(1, stream.value());
}

Result<void> InitialModel::check_fits(const ModelConfig& model) const {
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", path_, what)};
  };
  if (model.hidden != hidden_) {
    return refuse(fmt::format("it has {} hidden units and the run {}: give --hidden {}", hidden_,
                              model.hidden, hidden_));
  }
  if (model.hidden_units != hidden_units()) {
    const char* const kind = hidden_units() == HiddenUnits::kLinear ? "linear" : "relu";
    return refuse(
        fmt::format("its hidden units are {}, and those of the run are not: give "
                    "--hidden-units {}",
                    kind, kind));
  }
  if (model.features < features_ || model.labels < labels_) {
    return refuse(
        fmt::format("it has {} features and {} labels, more than the {} and {} of the "
                    "training file",
                    features_, labels_, model.features, model.labels));
  }
  return {};
}

class InitialModel::RowMaker {
 public:
  RowMaker(const InitialModel& file, const ModelConfig& config)
      : file_(file), config_(config), map_(config) {}

  Result<ShardRows> operator()(ShardId shard, std::uint32_t begin, std::uint32_t end) const;

 private:
  // A row's values; false when the file does not have it.
  [[nodiscard]] bool read(ShardId shard, std::uint32_t row, std::span<float> values) const;

  const InitialModel& file_;
  ModelConfig config_;
  ShardMap map_;
};

bool InitialModel::RowMaker::read(ShardId shard, std::uint32_t row, std::span<float> values) const {
  const NeuronRange neurons = map_.neurons(shard);
  const std::size_t row_bytes = std::size_t{file_.hidden_} * sizeof(float);
  if (map_.is_output(shard)) {
    const std::size_t label = map_.label_of_neuron(neurons.begin + row);
    if (label >= file_.labels_) return false;
    std::memcpy(values.data(), file_.output_weight_ + label * row_bytes, row_bytes);
    std::memcpy(&values.back(), file_.output_bias_ + label * sizeof(float), sizeof(float));
    return true;
  }
  const bool is_bias = row == config_.features;
  if (!is_bias && row >= file_.features_) return false;
  const std::uint8_t* const from =
      is_bias ? file_.input_bias_ : file_.input_weight_ + row * row_bytes;
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
      return Error{
          ErrorCode::kInvalidData,
          fmt::format("{}: row {} of {} has a value that training cannot have", file_.path_,
                      is_output ? map_.label_of_neuron(map_.neurons(shard).begin + row) : row,
                      is_output ? "output.weight" : "input.weight")};
    }
    rows.rows.push_back(row);
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.states.push_back(0.0F);
  }
  return rows;
}

InitialRows InitialModel::rows(const ModelConfig& model) const {
  return RowMaker(*this, model);
}

}  // namespace gleaner
