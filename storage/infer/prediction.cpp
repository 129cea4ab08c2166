#include "storage/infer/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <system_error>

#include "common/limits.hpp"
#include "common/train/kernels.hpp"
#include "storage/keep/initial_wide_rows.hpp"

namespace gleaner {
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

std::string_view PredictNames::title(std::uint32_t label) const {
  const std::string_view line = titles.name(label);
  return line.substr(0, line.find('\t'));
}

std::string_view PredictNames::notation(std::uint32_t label) const {
  const std::string_view line = titles.name(label);
  return line.substr(std::min(title(label).size() + 1, line.size()));
}

std::string PredictNames::label(std::uint32_t label) const {
  const std::string name = labels.name_or("label", label);
  const std::string_view own = title(label);
  return own.empty() || own == name ? name : fmt::format("{} ({})", own, name);
}

std::vector<float> probabilities_of(const ModelConfig& model, const Calibration& calibration,
                                    std::span<const ScoredLabel> scored) {
  // The kernels take whole vectors of lanes.
  const std::size_t padded = (scored.size() + kLanes - 1) / kLanes * kLanes;
  std::vector<float> logits(padded);
  std::vector<float> probabilities(padded);
  std::vector<float> losses(padded);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (std::isfinite(scored[i].logit)) logits[i] = calibration.apply(scored[i].logit);
  }
  loss_kernels(default_kernels(), model)
      .curves(logits.data(), probabilities.data(), losses.data(), padded);
  probabilities.resize(scored.size());
  return probabilities;
}

double shortest_decimal(float value) {
  const std::string text = fmt::format("{}", value);
  double result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  return error == std::errc() ? result : double{value};
}

std::vector<PredictedLabel> predicted_labels(const ModelConfig& model,
                                             const Calibration& calibration,
                                             std::span<const ScoredLabel> best,
                                             std::span<const std::uint32_t> labels) {
  const std::vector<float> probabilities = probabilities_of(model, calibration, best);
  std::vector<PredictedLabel> predicted;
  // Labels that are retired are behind all others.
  for (std::size_t i = 0; i < best.size() && std::isfinite(best[i].logit); ++i) {
    if (best[i].logit <= kRetiredBias) break;
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

std::string prediction_json(const Prediction& prediction, const PredictNames& names,
                            FeaturesShown features) {
  const bool has_truth = !prediction.point.labels.empty();
  Json json;
  json["point"] = prediction.index;
  json["name"] = name_or_null(names.points, prediction.index);
  if (!prediction.name.empty()) json["name"] = prediction.name;
  const bool shows_features = features == FeaturesShown::kStrongest;
  if (shows_features) json["features"] = Json::array();
  for (const std::size_t at :
       strongest_features(prediction.point, shows_features ? kFeaturesInJson : 0)) {
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
                                 {"probability", shortest_decimal(predicted.probability)}});
    if (has_truth) json["predicted"].back()["is_true"] = predicted.is_true;
    if (const auto title = names.title(predicted.label); !title.empty()) {
      json["predicted"].back()["title"] = title;
      json["predicted"].back()["notation"] = names.notation(predicted.label);
    }
    if (!predicted.why.empty()) json["predicted"].back()["why"] = why_json(predicted.why, names);
  }
  if (has_truth) json["missed"] = Json::array();
  for (const std::uint32_t label : missed_labels(prediction)) {
    json["missed"].push_back({{"label", label}, {"name", name_or_null(names.labels, label)}});
  }
  // Names come from files and need not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace gleaner
