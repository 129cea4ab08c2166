#include <nlohmann/json.hpp>

#include "common/data/word_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/keep/tensor_file.hpp"
#include "tools/predict/export_model.hpp"

namespace gleaner {
namespace {

// One name a line, as many as there are output rows.
std::string lines_of(const NameTable& names, const std::vector<std::uint32_t>& labels) {
  std::string text;
  if (names.size() == 0) return text;
  for (const std::uint32_t label : labels) text.append(names.name(label)).append("\n");
  return text;
}

}  // namespace

ExportTexts export_texts(const std::map<std::string, std::string>& metadata,
                         const PredictData& known, const NameTable* label_names,
                         const std::vector<std::uint32_t>& labels) {
  ExportTexts texts;
  texts.metadata = nlohmann::ordered_json(metadata).dump();
  texts.label_names =
      lines_of(label_names == nullptr ? known.names().labels : *label_names, labels);
  texts.label_titles = lines_of(known.names().titles, labels);
  texts.feature_names = known.names().features.lines();
  if (known.words() == nullptr) return texts;
  const WordModel& words = *known.words();
  texts.words = word_model_json(words);
  for (const std::uint32_t occurrences : words.words.occurrences()) {
    texts.idf.push_back(rarity(occurrences, words.points));
  }
  return texts;
}

std::vector<TextTensor> text_tensors(const ExportTexts& texts) {
  std::vector<TextTensor> tensors;
  const auto add = [&](const char* name, const std::string& text) {
    tensors.push_back({{name, TensorType::kUint8, {text.size()}}, text});
  };
  add("metadata", texts.metadata);
  add(kLabelNamesTensor, texts.label_names);
  if (!texts.label_titles.empty()) add(kLabelTitlesTensor, texts.label_titles);
  if (!texts.feature_names.empty()) add(kFeatureNamesTensor, texts.feature_names);
  if (!texts.words.empty()) add(kWordsTensor, texts.words);
  if (!texts.idf.empty()) {
    tensors.push_back(
        {{kIdfTensor, TensorType::kFloat64, {texts.idf.size()}},
         {reinterpret_cast<const char*>(texts.idf.data()), texts.idf.size() * sizeof(double)}});
  }
  return tensors;
}

}  // namespace gleaner
