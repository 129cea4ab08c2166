#include "tools/predict/predict_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <system_error>

namespace gleaner {
namespace {

constexpr std::size_t kFeaturesShown = 10;
constexpr std::size_t kFeaturesInJson = 20;
constexpr std::size_t kMissedShown = 12;
constexpr std::string_view kIndent = "  ";

using Json = nlohmann::ordered_json;

Json name_or_null(const NameTable& names, std::uint64_t id) {
  const std::string_view name = names.name(id);
  return name.empty() ? Json(nullptr) : Json(std::string(name));
}

// The shortest decimal that reads back as the same float: 8.49 rather than 8.489999771118164.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  return error == std::errc() ? result : double{value};
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ", ";
    text += part;
  }
  return text;
}

// A line of plain text from names, which may hold anything, cut to the width.
std::string plain_line(const std::string& text, const PredictLayout& layout) {
  return fit(printable(text), layout.width, layout.style);
}

std::string features_line(const Prediction& prediction, const PredictNames& names) {
  std::vector<std::string> parts;
  for (const std::size_t at : strongest_features(prediction.point, kFeaturesShown)) {
    parts.push_back(names.features.name_or("feature", prediction.point.features[at]));
  }
  if (parts.empty()) return "no features: the model knows nothing of it";
  return "known by: " + joined(parts);
}

std::string predicted_line(const PredictedLabel& predicted, const PredictNames& names,
                           const PredictLayout& layout) {
  const char* const mark = predicted.is_true ? true_mark(layout.style) : " ";
  const std::string line =
      plain_line(fmt::format("{}{:>6.1f} %  {} {}", kIndent, 100.0F * predicted.probability, mark,
                             names.labels.name_or("label", predicted.label)),
                 layout);
  return coloured(line, predicted.is_true ? Colour::kGreen : Colour::kNone, layout.style);
}

std::string missed_line(const std::vector<std::uint32_t>& missed, const PredictNames& names) {
  std::vector<std::string> parts;
  for (const std::uint32_t label : missed) {
    if (parts.size() == kMissedShown) {
      parts.push_back(fmt::format("and {} more", missed.size() - kMissedShown));
      break;
    }
    parts.push_back(names.labels.name_or("label", label));
  }
  return "missed: " + joined(parts);
}

}  // namespace

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

std::string prediction_text(const Prediction& prediction, const PredictNames& names,
                            const PredictLayout& layout) {
  const auto line = [&layout](const std::string& text) {
    return plain_line(std::string(kIndent) + text, layout);
  };
  const std::string title = plain_line(
      prediction.name.empty() ? names.points.name_or("point", prediction.index) : prediction.name,
      layout);
  std::string text = coloured(title, Colour::kBold, layout.style) + "\n";
  text += coloured(line(features_line(prediction, names)), Colour::kDim, layout.style) + "\n";
  for (const PredictedLabel& predicted : prediction.predicted) {
    text += predicted_line(predicted, names, layout) + "\n";
  }
  const std::vector<std::uint32_t> missed = missed_labels(prediction);
  if (!missed.empty()) text += line(missed_line(missed, names)) + "\n";
  return text + "\n";
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
                                {"value", shortest(prediction.point.values[at])}});
  }
  json["predicted"] = Json::array();
  for (const PredictedLabel& predicted : prediction.predicted) {
    json["predicted"].push_back({{"label", predicted.label},
                                 {"name", name_or_null(names.labels, predicted.label)},
                                 {"logit", shortest(predicted.logit)},
                                 {"probability", shortest(predicted.probability)},
                                 {"is_true", predicted.is_true}});
  }
  json["missed"] = Json::array();
  for (const std::uint32_t label : missed_labels(prediction)) {
    json["missed"].push_back({{"label", label}, {"name", name_or_null(names.labels, label)}});
  }
  // Names come from files and need not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void PredictTally::add(const Prediction& prediction) {
  ++points;
  if (prediction.point.labels.empty()) return;
  ++labelled;
  if (!prediction.predicted.empty() && prediction.predicted.front().is_true) ++first_right;
}

const char* true_mark(TextStyle style) {
  return style.utf8 ? "\u2713" : "*";
}

std::string tally_text(const PredictTally& tally) {
  if (tally.labelled == 0) return {};
  return fmt::format(
      "The first prediction is right for {} of {} points with labels ({:.1f} %).\n",
      grouped(tally.first_right), grouped(tally.labelled),
      100.0 * static_cast<double>(tally.first_right) / static_cast<double>(tally.labelled));
}

}  // namespace gleaner
