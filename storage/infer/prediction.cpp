#include "storage/infer/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/data/name_table.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/limits.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/keep/open_to_read.hpp"

namespace gleaner {

std::vector<float> probabilities_of(std::span<const ScoredLabel> scored) {
  // Whole vectors of lanes, as the kernels want them.
  const std::size_t padded = (scored.size() + kLanes - 1) / kLanes * kLanes;
  std::vector<float> logits(padded);
  std::vector<float> probabilities(padded);
  std::vector<float> losses(padded);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (std::isfinite(scored[i].logit)) logits[i] = scored[i].logit;
  }
  default_kernels().logistic(logits.data(), probabilities.data(), losses.data(), padded);
  probabilities.resize(scored.size());
  return probabilities;
}

namespace {

constexpr std::size_t kFeaturesInJson = 20;

using Json = nlohmann::ordered_json;

Json name_or_null(const NameTable& names, std::uint64_t id) {
  const std::string_view name = names.name(id);
  return name.empty() ? Json(nullptr) : Json(std::string(name));
}

Json why_json(const std::vector<Contribution>& why, const PredictNames& names) {
  Json json = Json::array();
  for (const Contribution& part : why) {
    json.push_back({{"feature", part.feature},
                    {"name", name_or_null(names.features, part.feature)},
                    {"value", shortest_decimal(part.value)}});
  }
  return json;
}

}  // namespace

double shortest_decimal(float value) {
  const std::string text = fmt::format("{}", value);
  double result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  return error == std::errc() ? result : double{value};
}

std::vector<PredictedLabel> predicted_labels(std::span<const ScoredLabel> best,
                                             std::span<const std::uint32_t> labels) {
  const std::vector<float> probabilities = probabilities_of(best);
  std::vector<PredictedLabel> predicted;
  for (std::size_t i = 0; i < best.size() && std::isfinite(best[i].logit); ++i) {
    predicted.push_back({best[i].label, best[i].logit, probabilities[i],
                         std::ranges::binary_search(labels, best[i].label)});
  }
  return predicted;
}

std::vector<std::uint32_t> missed_labels(const Prediction& prediction) {
  std::vector<std::uint32_t> missed;
  for (const std::uint32_t label : prediction.point.labels) {
    const bool is_predicted =
        std::any_of(prediction.predicted.begin(), prediction.predicted.end(),
                    [label](const PredictedLabel& predicted) { return predicted.label == label; });
    if (!is_predicted) missed.push_back(label);
  }
  return missed;
}

std::vector<std::size_t> strongest_features(const Point& point, std::size_t count) {
  std::vector<std::size_t> order(point.features.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&point](std::size_t a, std::size_t b) {
                      const float left = std::abs(point.values[a]);
                      const float right = std::abs(point.values[b]);
                      return left != right ? left > right : a < b;
                    });
  order.resize(static_cast<std::size_t>(kept));
  return order;
}

std::string prediction_json(const Prediction& prediction, const PredictNames& names) {
  Json json;
  json["point"] = prediction.index;
  json["name"] = name_or_null(names.points, prediction.index);
  if (!prediction.name.empty()) json["name"] = prediction.name;
  json["features"] = Json::array();
  for (const std::size_t at : strongest_features(prediction.point, kFeaturesInJson)) {
    const std::uint32_t feature = prediction.point.features[at];
    json["features"].push_back({{"feature", feature},
                                {"name", name_or_null(names.features, feature)},
                                {"value", shortest_decimal(prediction.point.values[at])}});
  }
  json["predicted"] = Json::array();
  for (const PredictedLabel& predicted : prediction.predicted) {
    json["predicted"].push_back({{"label", predicted.label},
                                 {"name", name_or_null(names.labels, predicted.label)},
                                 {"logit", shortest_decimal(predicted.logit)},
                                 {"probability", shortest_decimal(predicted.probability)},
                                 {"is_true", predicted.is_true}});
    if (!predicted.why.empty()) json["predicted"].back()["why"] = why_json(predicted.why, names);
  }
  json["missed"] = Json::array();
  for (const std::uint32_t label : missed_labels(prediction)) {
    json["missed"].push_back({{"label", label}, {"name", name_or_null(names.labels, label)}});
  }
  // Names come from files and need not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

namespace {

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// kInvalidData, naming their source, where their number is not `count`.
Result<NameTable> of_count(NameTable names, const std::string& source, std::uint64_t count,
                           const char* of_what) {
  if (names.size() == count) return names;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} has {} names for {} {}: it is of another data set than the model",
                           source, names.size(), count, of_what)};
}

// No names where there is no such file.
Result<NameTable> names_of(const std::string& path, std::uint64_t count, const char* of_what) {
  if (!is_file(path)) return NameTable();
  Result<NameTable> names = NameTable::load(path);
  if (!names) return Error{ErrorCode::kInvalidData, names.error().message};
  return of_count(std::move(*names), path, count, of_what);
}

// The names that a model file carries; none where it carries none.
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
  auto features = names_of(in(kFeatureNamesFile), model.features, "features");
  if (!features) return features.error();
  data.names_.features = std::move(*features);
  if (is_file(in(kWordModelFile))) {
    auto words = load_word_model(folder);
    if (!words) return words.error();
    if (words->words.numbered().size() != model.features) {
      return Error{ErrorCode::kInvalidData,
                   fmt::format("{} is of {} words, the model of {} features: it is of another data "
                               "set",
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
