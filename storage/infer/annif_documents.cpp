#include "storage/infer/annif_documents.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace gleaner {
namespace {

using Json = nlohmann::ordered_json;

// The field, or null if `json` is no object that has it.
const Json& field_of(const Json& json, const char* name) {
  static const Json kNull;
  return json.is_object() && json.contains(name) ? json.at(name) : kNull;
}

std::string printed(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<Questions> read_annif_batch(std::string_view body, const AnnifLimits& limits,
                                   const PredictData& data, bool has_tables) {
  Questions questions;
  questions.through_tables = has_tables;
  if (auto taken = take_annif_limits(limits, questions); !taken) return taken.error();
  const Json json = Json::parse(body, nullptr, false);
  const Json& documents = field_of(json, "documents");
  if (!documents.is_array() || documents.empty() || documents.size() > kQuestionInputsMax) {
    return wrong_field("documents", "it must be a list of 1 to 1024 objects with a text");
  }
  if (documents.size() * questions.top_k > kQuestionLabelsMax) {
    return wrong_field("limit", "these are too many subjects for one answer; send fewer documents");
  }
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string field = "documents[" + std::to_string(i) + "].text";
    const Json& text = field_of(documents[i], "text");
    if (!text.is_string()) return wrong_field(field, "it must be a text");
    auto question = text_question(text.get<std::string>(), field, data);
    if (!question) return question.error();
    const Json& id = field_of(documents[i], "document_id");
    question->name = id.is_string() ? id.get<std::string>() : std::string();
    questions.inputs.push_back(std::move(*question));
  }
  return questions;
}

std::string annif_batch_json(const Questions& questions, const PredictNames& names) {
  std::string json;
  for (const Prediction& input : questions.inputs) {
    json += json.empty() ? "[" : ",";
    json += "{\"document_id\":" + printed(input.name.empty() ? Json() : Json(input.name)) +
            ",\"results\":" + annif_results(input, names, questions.threshold) + "}";
  }
  return json + "]\n";
}

Result<std::string> annif_learned_lines(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_array()) {
    return wrong_field("body", "it must be a list of documents with text and subjects");
  }
  std::string lines;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string field = "[" + std::to_string(i) + "]";
    const Json& text = field_of(json[i], "text");
    const Json& subjects = field_of(json[i], "subjects");
    if (!text.is_string()) return wrong_field(field + ".text", "it must be a text");
    if (!subjects.is_array()) return wrong_field(field + ".subjects", "it must be a list");
    Json tags = Json::array();
    for (const Json& subject : subjects) {
      const Json& uri = field_of(subject, "uri");
      if (!uri.is_string()) return wrong_field(field + ".subjects", "each must have a uri");
      tags.push_back(uri);
    }
    lines += printed({{"text", text}, {"tags", std::move(tags)}}) + "\n";
  }
  return lines;
}

}  // namespace gleaner
