#include "storage/infer/annif.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {
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
    if (*place) return wrong_field(name, "it is there twice");
    *place = decoded(field.substr(std::min(equals + 1, field.size())));
    if (!*place) return wrong_field(name, "after each % must stand two hexadecimal digits");
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

// Names come from files and need not be UTF-8.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json project(bool has_model, const std::string& id) {
  return {{"project_id", id},        {"name", "Gleaner"},
          {"language", nullptr},     {"backend", {{"backend_id", "gleaner"}}},
          {"is_trained", has_model}, {"modification_time", nullptr}};
}

}  // namespace

Result<void> take_annif_limits(const AnnifLimits& limits, Questions& questions) {
  questions.top_k = kLimitUnlessGiven;
  if (limits.limit) {
    const auto limit = number_of<std::uint64_t>(*limits.limit);
    if (!limit || *limit == 0) return wrong_field("limit", "it must be a number from 1");
    questions.top_k = static_cast<std::uint32_t>(std::min<std::uint64_t>(*limit, kTopKMax));
  }
  if (!limits.threshold) return {};
  const auto threshold = number_of<float>(*limits.threshold);
  if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
    return wrong_field("threshold", "it must be a number from 0 to 1");
  }
  questions.threshold = *threshold;
  return {};
}

Result<Questions> read_annif_question(std::string_view body, const PredictData& data,
                                      bool has_tables) {
  auto form = read_form(body);
  if (!form) return form.error();
  if (!form->text) {
    return wrong_field("text", "it is missing; send a form (application/x-www-form-urlencoded)");
  }
  Questions questions;
  questions.through_tables = has_tables;
  const AnnifLimits limits{form->limit, form->threshold};
  if (auto taken = take_annif_limits(limits, questions); !taken) return taken.error();
  auto question = text_question(*std::move(form->text), "text", data);
  if (!question) return question.error();
  questions.inputs.push_back(std::move(*question));
  return questions;
}

std::string annif_results(const Prediction& prediction, const PredictNames& names,
                          float threshold) {
  Json results = Json::array();
  for (const PredictedLabel& predicted : prediction.predicted) {
    if (predicted.probability < threshold) continue;
    const std::string uri = uri_of(names.labels, predicted.label);
    const std::string_view title = names.title(predicted.label);
    const std::string_view notation = names.notation(predicted.label);
    results.push_back({{"uri", uri},
                       {"label", title.empty() ? std::string_view(uri) : title},
                       {"notation", notation.empty() ? Json() : Json(notation)},
                       {"score", shortest_decimal(predicted.probability)}});
  }
  return dumped(results);
}

std::string annif_json(const Prediction& prediction, const PredictNames& names, float threshold) {
  return "{\"results\":" + annif_results(prediction, names, threshold) + "}\n";
}

std::string annif_project_json(bool has_model, const std::string& id) {
  return dumped(project(has_model, id)) + "\n";
}

std::string annif_projects_json(bool has_model) {
  return dumped({{"projects", Json::array({project(has_model, kAnnifProject)})}}) + "\n";
}

}  // namespace gleaner
