#include "tools/predict/prediction_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/packed_writer.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kFeaturesShown = 10;
constexpr std::size_t kMissedShown = 12;
constexpr std::string_view kIndent = "  ";

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
  return fmt::format("known by: {}", fmt::join(parts, ", "));
}

std::string predicted_line(const PredictedLabel& predicted, const PredictNames& names,
                           const PredictLayout& layout) {
  const char* const mark = predicted.is_true ? true_mark(layout.style) : " ";
  const std::string line =
      plain_line(fmt::format("{}{:>6.1f} %  {} {}", kIndent, 100.0F * predicted.probability, mark,
                             names.label(predicted.label)),
                 layout);
  return coloured(line, predicted.is_true ? Colour::kGreen : Colour::kNone, layout.style);
}

std::string why_line(const PredictedLabel& predicted, const PredictNames& names,
                     const PredictLayout& layout) {
  std::vector<std::string> parts;
  for (const Contribution& part : predicted.why) {
    parts.push_back(
        fmt::format("{} {:+.1f}", names.features.name_or("feature", part.feature), part.value));
  }
  const std::string line = fmt::format("              because of {}", fmt::join(parts, ", "));
  return coloured(plain_line(line, layout), Colour::kDim, layout.style);
}

std::string missed_line(const std::vector<std::uint32_t>& missed, const PredictNames& names) {
  std::vector<std::string> parts;
  for (const std::uint32_t label : missed) {
    if (parts.size() == kMissedShown) {
      parts.push_back(fmt::format("and {} more", missed.size() - kMissedShown));
      break;
    }
    parts.push_back(names.label(label));
  }
  return fmt::format("missed: {}", fmt::join(parts, ", "));
}

}  // namespace

std::string prediction_text(const Prediction& prediction, const PredictNames& names,
                            const PredictLayout& layout) {
  const auto line = [&layout](const std::string& text) {
    return plain_line(std::string(kIndent) + text, layout);
  };
  const std::string title = plain_line(
      prediction.name.empty() ? names.points.name_or("example", prediction.index) : prediction.name,
      layout);
  std::string text = coloured(title, Colour::kBold, layout.style) + "\n";
  text += coloured(line(features_line(prediction, names)), Colour::kDim, layout.style) + "\n";
  for (const PredictedLabel& predicted : prediction.predicted) {
    text += predicted_line(predicted, names, layout) + "\n";
    if (!predicted.why.empty()) text += why_line(predicted, names, layout) + "\n";
  }
  const std::vector<std::uint32_t> missed = missed_labels(prediction);
  if (!missed.empty()) text += line(missed_line(missed, names)) + "\n";
  return text + "\n";
}

std::string prediction_rows(const Prediction& prediction, const PredictNames& names, RowForm form) {
  const auto field = [form](std::string text) {
    if (form == RowForm::kCsv) return csv_field(text);
    std::ranges::replace_if(
        text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    return text;
  };
  const std::string title =
      prediction.name.empty() ? std::string(names.points.name(prediction.index)) : prediction.name;
  std::string rows;
  for (const PredictedLabel& predicted : prediction.predicted) {
    const std::string truth = prediction.point.labels.empty() ? ""
                              : predicted.is_true             ? "true"
                                                              : "false";
    const std::array<std::string, kPredictionColumns.size()> cells = {
        fmt::format("{}", prediction.index),
        field(title),
        fmt::format("{}", predicted.label),
        field(std::string(names.labels.name(predicted.label))),
        fmt::format("{}", predicted.probability),
        truth};
    rows += fmt::format("{}\n", fmt::join(cells, form == RowForm::kCsv ? "," : "\t"));
  }
  return rows;
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
      "The first prediction is right for {} of {} examples with labels ({:.1f} %).\n",
      grouped(tally.first_right), grouped(tally.labelled),
      100.0 * static_cast<double>(tally.first_right) / static_cast<double>(tally.labelled));
}

}  // namespace gleaner
