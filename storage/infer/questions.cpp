#include "storage/infer/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {
namespace {

using Asked = nlohmann::json;

constexpr std::size_t kFieldShownBytes = 64;

// A field's name for an error message: it can hold any bytes.
std::string shown(const std::string& key) {
  return Asked(key.substr(0, kFieldShownBytes))
      .dump(-1, ' ', true, Asked::error_handler_t::replace);
}

class QuestionReader {
 public:
  QuestionReader(const PredictData& data, const ModelConfig& model, bool has_tables)
      : data_(data), model_(model), has_tables_(has_tables) {}

  // Reads all fields except the inputs.
  [[nodiscard]] Result<Questions> options(const Asked& json) const;
  // The input that `field` names in errors.
  [[nodiscard]] Result<Prediction> question(const Asked& input, const std::string& field) const;

 private:
  [[nodiscard]] Result<Prediction> example(const Asked& value, const std::string& field) const;
  [[nodiscard]] Result<Prediction> features(const Asked& input, const std::string& field) const;

  const PredictData& data_;
  const ModelConfig& model_;
  const bool has_tables_;
};

}  // namespace

Error wrong_field(std::string_view field, std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", field, what)};
}

Result<Prediction> QuestionReader::example(const Asked& value, const std::string& field) const {
  const PackedDataset* const examples = data_.examples();
  if (examples == nullptr) return wrong_field(field, "there are no test examples here");
  std::uint64_t index = examples->points();
  if (value.is_string()) {
    const auto found = data_.example_named(value.get_ref<const std::string&>());
    if (!found) return wrong_field(field, "no test example has this name");
    index = *found;
  } else if (value.is_number_unsigned()) {
    index = value.get<std::uint64_t>();
  } else {
    return wrong_field(field, "it must be the number or the name of a test example");
  }
  if (index >= examples->points()) {
    return wrong_field(field, fmt::format("the test examples have the numbers 0 to {}",
                                          static_cast<std::int64_t>(examples->points()) - 1));
  }
  if (auto intact = examples->verify({&index, 1}); !intact) return intact.error();
  const ExampleView view = examples->example(index);
  Prediction question;
  question.is_scaled = examples->summary().is_normalized;
  question.index = index;
  question.point.labels.assign(view.labels.begin(), view.labels.end());
  question.point.features.assign(view.features.begin(), view.features.end());
  question.point.values.assign(view.values.begin(), view.values.end());
  return question;
}

Result<Prediction> QuestionReader::features(const Asked& input, const std::string& field) const {
  const Asked& list = input["features"];
  const auto values = input.find("values");
  const std::string features_field = field + ".features";
  const std::string values_field = field + ".values";
  if (!list.is_array()) return wrong_field(features_field, "it must be a list of numbers");
  if (values != input.end() && (!values->is_array() || values->size() != list.size())) {
    return wrong_field(values_field, "it must be a list of numbers, one for each feature");
  }
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number_unsigned() || list[i].get<std::uint64_t>() >= model_.features) {
      return wrong_field(fmt::format("{}[{}]", features_field, i),
                         fmt::format("it must be a number from 0 to {}", model_.features - 1));
    }
    float number = 1;
    if (values != input.end()) {
      const Asked& value = (*values)[i];
      const double given = value.is_number() ? value.get<double>() : std::nan("");
      if (!(std::abs(given) <= double{std::numeric_limits<float>::max()})) {
        return wrong_field(fmt::format("{}[{}]", values_field, i), "it must be a number");
      }
      number = static_cast<float>(given);
    }
    pairs.emplace_back(list[i].get<std::uint32_t>(), number);
  }
  std::ranges::sort(pairs, {}, &std::pair<std::uint32_t, float>::first);
  Prediction question;
  for (const auto& [feature, value] : pairs) {
    if (!question.point.features.empty() && question.point.features.back() == feature) {
      return wrong_field(features_field, fmt::format("feature {} is there twice", feature));
    }
    question.point.features.push_back(feature);
    question.point.values.push_back(value);
  }
  return question;
}

Result<Prediction> QuestionReader::question(const Asked& input, const std::string& field) const {
  if (!input.is_object()) {
    return wrong_field(field, "it must be an object with text, example or features");
  }
  for (const auto& [key, value] : input.items()) {
    if (key != "text" && key != "example" && key != "features" && key != "values") {
      return wrong_field(field, fmt::format("it has an unknown field {}", shown(key)));
    }
  }
  if (input.count("text") + input.count("example") + input.count("features") != 1 ||
      (input.contains("values") && !input.contains("features"))) {
    return wrong_field(field,
                       "it must have one of text, example and features; values go with features");
  }
  if (input.contains("text")) {
    const std::string text_field = field + ".text";
    if (!input["text"].is_string()) return wrong_field(text_field, "it must be a string");
    return text_question(input["text"].get<std::string>(), text_field, data_);
  }
  if (input.contains("example")) {
    return example(input["example"], field + ".example");
  }
  return features(input, field);
}

Result<Questions> QuestionReader::options(const Asked& json) const {
  Questions questions;
  questions.through_tables = has_tables_;
  if (!json.is_object()) return wrong_field("body", "it must be a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key != "inputs" && key != "top" && key != "exact" && key != "threshold") {
      return wrong_field("body", fmt::format("it has an unknown field {}", shown(key)));
    }
  }
  if (const auto top = json.find("top"); top != json.end()) {
    if (!top->is_number_unsigned() || *top < 1U || *top > kTopKMax) {
      return wrong_field("top", fmt::format("it must be a number from 1 to {}", kTopKMax));
    }
    questions.top_k = top->get<std::uint32_t>();
  }
  if (const auto least = json.find("threshold"); least != json.end()) {
    if (!least->is_number() || !(*least >= 0.0 && *least <= 1.0)) {
      return wrong_field("threshold", "it must be a number from 0 to 1");
    }
    questions.threshold = least->get<float>();
  }
  if (const auto exact = json.find("exact"); exact != json.end()) {
    if (!exact->is_boolean()) return wrong_field("exact", "it must be true or false");
    if (!exact->get<bool>() && !has_tables_) {
      return wrong_field("exact",
                         "only exact answers are given here; gleaner serve has --tables N");
    }
    questions.through_tables = !exact->get<bool>();
  }
  return questions;
}

Result<Prediction> text_question(std::string text, const std::string& field,
                                 const PredictData& data) {
  if (data.words() == nullptr) {
    return wrong_field(
        field,
        "texts cannot be read here: they need a data set that 'gleaner dataset convert "
        "--text' made, with its words.json");
  }
  Prediction question;
  question.name = std::move(text);
  question.point = data.words()->point_of(question.name);
  return question;
}

Result<Questions> read_questions(std::string_view body, const PredictData& data,
                                 const ModelConfig& model, bool has_tables) {
  const Asked json = Asked::parse(body, nullptr, false);
  if (json.is_discarded()) return wrong_field("body", "it is not JSON");
  const QuestionReader reader(data, model, has_tables);
  Result<Questions> questions = reader.options(json);
  if (!questions) return questions;
  const auto inputs = json.find("inputs");
  const std::size_t most =
      std::min(kQuestionInputsMax, kQuestionLabelsMax / std::size_t{questions->top_k});
  if (inputs == json.end() || !inputs->is_array() || inputs->empty() || inputs->size() > most) {
    return wrong_field("inputs",
                       fmt::format("it must be a list of 1 to {} inputs (at most {} inputs, "
                                   "and {} labels in all)",
                                   most, kQuestionInputsMax, kQuestionLabelsMax));
  }
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    Result<Prediction> question = reader.question((*inputs)[i], fmt::format("inputs[{}]", i));
    if (!question) return question.error();
    if (!(*inputs)[i].contains("example")) {
      question->index = i;
      if (question->name.empty()) question->name = fmt::format("input {}", i);
    }
    questions->inputs.push_back(std::move(*question));
  }
  return questions;
}

}  // namespace gleaner
