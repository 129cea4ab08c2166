#include "common/data/word_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/keep/tensor_file.hpp"
#include "tools/cli/report.hpp"
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

Result<ExportTexts> export_texts(const RunIdentity& identity,
                                 const std::map<std::string, std::string>& metadata,
                                 const std::string& data, const std::string& labels_file,
                                 const std::vector<std::uint32_t>& labels) {
  ExportTexts texts;
  texts.metadata = Json(metadata).dump();
  const Result<NameTable> own_labels = label_names_of(identity, labels_file);
  if (!own_labels) return own_labels.error();
  const auto known =
      data.empty() ? Result<PredictData>(PredictData()) : PredictData::open_names(data, identity);
  if (!known) return known.error();
  texts.label_names = lines_of(labels_file.empty() ? known->names().labels : *own_labels, labels);
  texts.feature_names = known->names().features.lines();
  if (known->words() == nullptr) return texts;
  const WordModel& words = *known->words();
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
