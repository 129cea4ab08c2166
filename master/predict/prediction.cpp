#include "master/predict/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

namespace gleaner {
namespace {

constexpr std::size_t kFeaturesInJson = 20;

// As nlohmann writes a float that is a double: the shortest decimal that reads back as the float.
void add_number(std::string& json, float value) {
  const std::size_t begin = json.size();
  if (!std::isfinite(value)) {
    json += "null";
    return;
  }
  fmt::format_to(std::back_inserter(json), "{}", value);
  if (json.find_first_not_of("-0123456789", begin) == std::string::npos) json += ".0";
}

bool is_plain(char character) {
  return character >= ' ' && character <= '~' && character != '"' && character != '\\';
}

void add_name(std::string& json, std::string_view name) {
  if (name.empty()) {
    json += "null";
  } else if (std::ranges::all_of(name, is_plain)) {
    json.append("\"").append(name).append("\"");
  } else {
    // Names come from files and need not be UTF-8.
    json += nlohmann::json(std::string(name))
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

// `,{"kind":id,"name":NAME`, without the comma at the begin of a list.
void begin_entry(std::string& json, const char* kind, std::uint32_t id, const NameTable& names) {
  if (json.back() != '[') json += ',';
  fmt::format_to(std::back_inserter(json), "{{\"{}\":{},\"name\":", kind, id);
  add_name(json, names.name(id));
}

}  // namespace

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

// Written by hand, since a tree of JSON values takes longer than finding the labels through tables.
std::string prediction_json(const Prediction& prediction, const PredictNames& names) {
  std::string json = fmt::format("{{\"point\":{},\"name\":", prediction.index);
  add_name(json, prediction.name.empty() ? names.points.name(prediction.index) : prediction.name);
  json += ",\"features\":[";
  for (const std::size_t at : strongest_features(prediction.point, kFeaturesInJson)) {
    begin_entry(json, "feature", prediction.point.features[at], names.features);
    json += ",\"value\":";
    add_number(json, prediction.point.values[at]);
    json += '}';
  }
  json += "],\"predicted\":[";
  for (const PredictedLabel& predicted : prediction.predicted) {
    begin_entry(json, "label", predicted.label, names.labels);
    json += ",\"logit\":";
    add_number(json, predicted.logit);
    json += ",\"probability\":";
    add_number(json, predicted.probability);
    json += predicted.is_true ? ",\"is_true\":true}" : ",\"is_true\":false}";
  }
  json += "],\"missed\":[";
  for (const std::uint32_t label : missed_labels(prediction)) {
    begin_entry(json, "label", label, names.labels);
    json += '}';
  }
  return json + "]}\n";
}

}  // namespace gleaner
