#include "storage/infer/predict_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "common/data/name_table.hpp"
#include "common/data/open_or_pack.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/open_to_read.hpp"
#include "storage/keep/tensor_file.hpp"

namespace gleaner {
namespace {

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// kInvalidData, with the name of `source`, unless there are `count` names.
Result<NameTable> of_count(NameTable names, const std::string& source, std::uint64_t count,
                           const char* of_what) {
  if (names.size() == count) return names;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} has {} names for {} {}: it is of another data set than the model",
                           source, names.size(), count, of_what)};
}

// No names without such a file.
Result<NameTable> names_of(const std::string& path, std::uint64_t count, const char* of_what) {
  if (!is_file(path)) return NameTable();
  Result<NameTable> names = NameTable::load(path);
  if (!names) return Error{ErrorCode::kInvalidData, names.error().message};
  return of_count(std::move(*names), path, count, of_what);
}

// The names that a model file carries, if any.
Result<NameTable> carried_names(const TensorFile& file, const char* tensor, std::uint64_t count) {
  const Result<std::string_view> text = file.text(tensor);
  if (!text) return text.error();
  if (text->empty()) return NameTable();
  return of_count(NameTable::of_lines(*text), fmt::format("{} in {}", tensor, file.path()), count,
                  "numbers");
}

std::string_view short_name(std::string_view name) {
  return name.substr(0, name.find(": "));
}

}  // namespace

Result<PredictData> PredictData::open_carried(const std::string& path, const RunIdentity& run) {
  const auto file = TensorFile::open(path);
  if (!file) return file.error();
  PredictData data;
  auto labels = carried_names(**file, kLabelNamesTensor, run.model.labels);
  if (!labels) return labels.error();
  data.names_.labels = std::move(*labels);
  auto titles = carried_names(**file, kLabelTitlesTensor, run.model.labels);
  if (!titles) return titles.error();
  data.names_.titles = std::move(*titles);
  auto features = carried_names(**file, kFeatureNamesTensor, run.model.features);
  if (!features) return features.error();
  data.names_.features = std::move(*features);
  const Result<std::string_view> words = (*file)->text(kWordsTensor);
  if (!words) return words.error();
  if (words->empty()) return data;
  std::vector<std::string> names;
  for (std::uint32_t id = 0; id < data.names_.features.size(); ++id) {
    names.emplace_back(data.names_.features.name(id));
  }
  auto model =
      word_model_of({*words, fmt::format("{} in {}", kWordsTensor, path)},
                    {std::move(names), fmt::format("{} in {}", kFeatureNamesTensor, path)});
  if (!model) return model.error();
  data.words_ = std::move(*model);
  return data;
}

Result<PredictData> PredictData::open_names(const std::string& folder, const RunIdentity& run) {
  if (is_model_file(folder)) return open_carried(folder, run);
  const ModelConfig& model = run.model;
  const auto in = [&](const char* file) { return (std::filesystem::path(folder) / file).string(); };
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return Error{ErrorCode::kInvalidData,
                 folder + " is not a folder that 'gleaner dataset' made: give one as --data"};
  }
  if (auto its = check_name_files(run.settings, folder); !its) return its.error();
  PredictData data;
  auto labels = names_of(in(kLabelNamesFile), model.labels, "labels");
  if (!labels) return labels.error();
  data.names_.labels = std::move(*labels);
  auto titles = names_of(in(kLabelTitlesFile), model.labels, "labels");
  if (!titles) return titles.error();
  data.names_.titles = std::move(*titles);
  auto features = names_of(in(kFeatureNamesFile), model.features, "features");
  if (!features) return features.error();
  data.names_.features = std::move(*features);
  if (is_file(in(kWordModelFile))) {
    auto words = load_word_model(folder);
    if (!words) return words.error();
    if (words->words.numbered().size() != model.features) {
      return Error{
          ErrorCode::kInvalidData,
          fmt::format("{} has {} words, but the model has {} features: it belongs to another "
                      "data set",
                      in(kWordModelFile), words->words.numbered().size(), model.features)};
    }
    data.words_ = std::move(*words);
  }
  return data;
}

Result<PredictData> PredictData::open(const std::string& folder, const RunIdentity& run) {
  Result<PredictData> opened = open_names(folder, run);
  if (!opened) return opened;
  PredictData data = std::move(*opened);
  const ModelConfig& model = run.model;
  const auto in = [&](const char* file) { return (std::filesystem::path(folder) / file).string(); };
  if (is_model_file(folder) || !is_file(in("test.txt"))) return data;
  PackOptions options;
  const Result<bool> is_normalised = trained_on_normalised_points(run);
  if (!is_normalised) return is_normalised.error();
  options.normalize = *is_normalised;
  options.text.limits = Dimensions{model.features, model.labels};
  auto examples = open_or_pack(in("test.txt"), options);
  if (!examples) return Error{ErrorCode::kInvalidData, examples.error().message};
  data.examples_ = std::move(*examples);
  auto points = names_of(in("test.points.txt"), data.examples_->points(), "test examples");
  if (!points) return points.error();
  data.names_.points = std::move(*points);
  data.by_name_.resize(data.names_.points.size());
  std::iota(data.by_name_.begin(), data.by_name_.end(), 0U);
  std::ranges::stable_sort(data.by_name_, {}, [&](std::uint32_t example) {
    return short_name(data.names_.points.name(example));
  });
  return data;
}

std::optional<std::uint64_t> PredictData::example_named(std::string_view name) const {
  const auto name_of = [&](std::uint32_t example) {
    return short_name(names_.points.name(example));
  };
  for (auto found = std::ranges::lower_bound(by_name_, short_name(name), {}, name_of);
       found != by_name_.end() && name_of(*found) == short_name(name); ++found) {
    const std::string_view whole = names_.points.name(*found);
    if (whole == name || short_name(whole) == name) return *found;
  }
  return std::nullopt;
}

}  // namespace gleaner
