#include "storage/infer/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {
namespace {

using Asked = nlohmann::json;

constexpr std::size_t kFieldShownBytes = 64;

Error wrong(std::string_view field, std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", field, what)};
}

// A field's name as a person may see it: it can hold anything.
std::string shown(const std::string& key) {
  return Asked(key.substr(0, kFieldShownBytes))
      .dump(-1, ' ', true, Asked::error_handler_t::replace);
}

Result<Prediction> example_question(const Asked& value, const std::string& field,
                                    const PredictData& data) {
  const PackedDataset* const examples = data.examples();
  if (examples == nullptr) return wrong(field, "there are no test examples here");
  std::uint64_t index = examples->points();
  if (value.is_string()) {
    const auto found = data.example_named(value.get_ref<const std::string&>());
    if (!found) return wrong(field, "no test example has this name");
    index = *found;
  } else if (value.is_number_unsigned()) {
    index = value.get<std::uint64_t>();
  } else {
    return wrong(field, "it must be the number or the name of a test example");
  }
  if (index >= examples->points()) {
    return wrong(field, fmt::format("the test examples have the numbers 0 to {}",
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

Result<Prediction> features_question(const Asked& input, const std::string& field,
                                     const ModelConfig& model) {
  const Asked& features = input["features"];
  const auto values = input.find("values");
  const std::string features_field = field + ".features";
  const std::string values_field = field + ".values";
  if (!features.is_array()) return wrong(features_field, "it must be a list of numbers");
  if (values != input.end() && (!values->is_array() || values->size() != features.size())) {
    return wrong(values_field, "it must be a list of numbers, one for each feature");
  }
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (!features[i].is_number_unsigned() || features[i].get<std::uint64_t>() >= model.features) {
      return wrong(fmt::format("{}[{}]", features_field, i),
                   fmt::format("it must be a number from 0 to {}", model.features - 1));
    }
    float number = 1;
    if (values != input.end()) {
      const Asked& value = (*values)[i];
      const double given = value.is_number() ? value.get<double>() : std::nan("");
      if (!(std::abs(given) <= double{std::numeric_limits<float>::max()})) {
        return wrong(fmt::format("{}[{}]", values_field, i), "it must be a number");
      }
      number = static_cast<float>(given);
    }
    pairs.emplace_back(features[i].get<std::uint32_t>(), number);
  }
  std::ranges::sort(pairs, {}, &std::pair<std::uint32_t, float>::first);
  Prediction question;
  for (const auto& [feature, value] : pairs) {
    if (!question.point.features.empty() && question.point.features.back() == feature) {
      return wrong(features_field, fmt::format("feature {} is there twice", feature));
    }
    question.point.features.push_back(feature);
    question.point.values.push_back(value);
  }
  return question;
}

Result<Prediction> question_of(const Asked& input, const std::string& field,
                               const PredictData& data, const ModelConfig& model) {
  if (!input.is_object()) {
    return wrong(field, "it must be an object with text, example or features");
  }
  for (const auto& [key, value] : input.items()) {
    if (key != "text" && key != "example" && key != "features" && key != "values") {
      return wrong(field, fmt::format("it has an unknown field {}", shown(key)));
    }
  }
  if (input.count("text") + input.count("example") + input.count("features") != 1 ||
      (input.contains("values") && !input.contains("features"))) {
    return wrong(field, "it must have one of text, example and features; values go with features");
  }
  if (input.contains("text")) {
    const std::string text_field = field + ".text";
    if (!input["text"].is_string()) return wrong(text_field, "it must be a string");
    return text_question(input["text"].get<std::string>(), text_field, data);
  }
  if (input.contains("example")) {
    return example_question(input["example"], field + ".example", data);
  }
  return features_question(input, field, model);
}

// All but the inputs.
Result<Questions> read_options(const Asked& json, bool has_tables) {
  Questions questions;
  questions.through_tables = has_tables;
  if (!json.is_object()) return wrong("body", "it must be a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key != "inputs" && key != "top" && key != "exact") {
      return wrong("body", fmt::format("it has an unknown field {}", shown(key)));
    }
  }
  if (const auto top = json.find("top"); top != json.end()) {
    if (!top->is_number_unsigned() || *top < 1U || *top > kTopKMax) {
      return wrong("top", fmt::format("it must be a number from 1 to {}", kTopKMax));
    }
    questions.top_k = top->get<std::uint32_t>();
  }
  if (const auto exact = json.find("exact"); exact != json.end()) {
    if (!exact->is_boolean()) return wrong("exact", "it must be true or false");
    if (!exact->get<bool>() && !has_tables) {
      return wrong("exact", "only exact answers are given here; gleaner serve has --tables N");
    }
    questions.through_tables = !exact->get<bool>();
  }
  return questions;
}

}  // namespace

Result<Prediction> text_question(std::string text, const std::string& field,
                                 const PredictData& data) {
  if (data.words() == nullptr) {
    return wrong(field,
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
  if (json.is_discarded()) return wrong("body", "it is not JSON");
  Result<Questions> questions = read_options(json, has_tables);
  if (!questions) return questions;
  const auto inputs = json.find("inputs");
  const std::size_t most =
      std::min(kQuestionInputsMax, kQuestionLabelsMax / std::size_t{questions->top_k});
  if (inputs == json.end() || !inputs->is_array() || inputs->empty() || inputs->size() > most) {
    return wrong("inputs", fmt::format("it must be a list of 1 to {} inputs (at most {} inputs, "
                                       "and {} labels in all)",
                                       most, kQuestionInputsMax, kQuestionLabelsMax));
  }
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    Result<Prediction> question =
        question_of((*inputs)[i], fmt::format("inputs[{}]", i), data, model);
    if (!question) return question.error();
    if (!(*inputs)[i].contains("example")) {
      question->index = i;
      if (question->name.empty()) question->name = fmt::format("input {}", i);
    }
    questions->inputs.push_back(std::move(*question));
  }
  return questions;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kLimitUnlessGiven = 10;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(16 * high + low);
    i += 2;
  }
  return plain;
}

struct Form {
  std::optional<std::string> text, limit, threshold;
};

Result<Form> read_form(std::string_view body) {
  Form form;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('&'), body.size());
    const std::string_view field = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string_view name = field.substr(0, equals);
    std::optional<std::string>* const place = name == "text"        ? &form.text
                                              : name == "limit"     ? &form.limit
                                              : name == "threshold" ? &form.threshold
                                                                    : nullptr;
    if (place == nullptr) continue;
    if (*place) return wrong(name, "it is there twice");
    *place = decoded(field.substr(std::min(equals + 1, field.size())));
    if (!*place) return wrong(name, "after each % must stand two hexadecimal digits");
  }
  return form;
}

template <typename Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

std::string uri_of(const NameTable& labels, std::uint32_t label) {
  std::string_view name = labels.name(label);
  if (name.empty()) return std::to_string(label);
  const bool is_bracketed =
      name.starts_with('<') && name.ends_with('>') && name.find(':') != std::string_view::npos;
  return std::string(is_bracketed ? name.substr(1, name.size() - 2) : name);
}

}  // namespace

Result<Questions> read_annif_question(std::string_view body, const PredictData& data,
                                      bool has_tables) {
  auto form = read_form(body);
  if (!form) return form.error();
  if (!form->text) {
    return wrong("text", "it is missing; send a form (application/x-www-form-urlencoded)");
  }
  Questions questions;
  questions.through_tables = has_tables;
  questions.top_k = kLimitUnlessGiven;
  if (form->limit) {
    const auto limit = number_of<std::uint64_t>(*form->limit);
    if (!limit || *limit == 0) return wrong("limit", "it must be a number from 1");
    questions.top_k = static_cast<std::uint32_t>(std::min<std::uint64_t>(*limit, kTopKMax));
  }
  if (form->threshold) {
    const auto threshold = number_of<float>(*form->threshold);
    if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
      return wrong("threshold", "it must be a number from 0 to 1");
    }
    questions.threshold = *threshold;
  }
  auto question = text_question(*std::move(form->text), "text", data);
  if (!question) return question.error();
  questions.inputs.push_back(std::move(*question));
  return questions;
}

std::string annif_json(const Prediction& prediction, const NameTable& labels, float threshold) {
  Json results = Json::array();
  for (const PredictedLabel& predicted : prediction.predicted) {
    if (predicted.probability < threshold) continue;
    const std::string uri = uri_of(labels, predicted.label);
    results.push_back({{"uri", uri},
                       {"label", uri},
                       {"notation", nullptr},
                       {"score", shortest_decimal(predicted.probability)}});
  }
  // Names come from files and need not be UTF-8.
  return Json{{"results", std::move(results)}}.dump(-1, ' ', false,
                                                    Json::error_handler_t::replace) +
         "\n";
}

std::string annif_project_json(bool has_model) {
  const Json json = {{"project_id", "gleaner"},
                     {"name", "Gleaner"},
                     {"is_trained", has_model},
                     {"modification_time", nullptr}};
  return json.dump() + "\n";
}

}  // namespace gleaner
