#include "common/words/word_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "common/dataset/byte_source.hpp"
#include "common/dataset/line_reader.hpp"
#include "common/words/debian_words.hpp"

namespace gleaner {
namespace {

constexpr int kVersion = 1;
constexpr const char* kFeaturesFile = "features.txt";

Error invalid(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalidData, path + ": " + what};
}

Result<std::vector<std::string>> lines_of(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = open_file_source(path);
  if (!source) return Error{ErrorCode::kInvalidData, source.error().message};
  LineReader reader(std::move(*source));
  std::vector<std::string> lines;
  std::string_view line;
  for (;;) {
    Result<bool> has_line = reader.next(line);
    if (!has_line) return has_line.error();
    if (!*has_line) return lines;
    lines.emplace_back(line);
  }
}

Point point_of_text(const WordModel& model, std::string_view text) {
  Point point;
  for (const auto& [word, count] : counted_words(model.rule, text)) {
    const auto* entry = model.words.find(word);
    if (entry == nullptr) continue;
    point.features.push_back(entry->id);
    point.values.push_back(tf_idf(count, entry->occurrences, model.points));
  }
  return point;
}

// "hello: example package", or a description alone.
Point point_of_package(const WordModel& model, std::string_view text) {
  DebianPackage package;
  const std::size_t colon = text.find(": ");
  const bool is_named = colon != std::string_view::npos && text.find(' ') > colon;
  if (is_named) package.name = text.substr(0, colon);
  package.description = is_named ? text.substr(colon + 2) : text;
  Point point;
  for (const auto& [word, weight] : debian_words(package)) {
    const auto* entry = model.words.find(word);
    if (entry == nullptr) continue;
    point.features.push_back(entry->id);
    point.values.push_back(debian_value(weight, entry->occurrences, model.points));
  }
  return point;
}

// Nothing when the fields are not what they should be.
std::optional<WordModel> model_of(const nlohmann::json& json,
                                  std::vector<std::uint32_t>& occurrences) {
  WordModel model;
  try {
    const std::string kind = json.at("kind").get<std::string>();
    if (json.at("gleaner_words") != kVersion || (kind != "text" && kind != "debian")) return {};
    model.kind = kind == "text" ? WordKind::kText : WordKind::kDebian;
    model.points = json.at("points").get<std::uint64_t>();
    occurrences = json.at("occurrences").get<std::vector<std::uint32_t>>();
    if (model.kind == WordKind::kText) {
      model.fields.text = json.at("text").get<std::vector<std::string>>();
      model.fields.tags = json.at("tags").get<std::string>();
      model.fields.name = json.at("name").get<std::string>();
      model.fields.tag_separator = json.at("tag_separator").get<std::string>();
      const auto rule = parse_word_rule(json.value("words", to_string(kAsciiWords)));
      if (!rule) return {};
      model.rule = *rule;
      model.icu = json.value("icu", "");
    }
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return model;
}

}  // namespace

Point WordModel::point_of(const std::string& text) const {
  return kind == WordKind::kText ? point_of_text(*this, text) : point_of_package(*this, text);
}

std::map<std::string, std::uint32_t> counted_words(const WordRule& rule, std::string_view text) {
  std::map<std::string, std::uint32_t> counts;
  for_each_word(rule, text, [&](std::string_view word) { ++counts[std::string(word)]; });
  return counts;
}

float tf_idf(std::uint32_t in_point, std::uint32_t occurrences, std::uint64_t points) {
  return in_thousandths((1 + std::log(static_cast<double>(in_point))) *
                        rarity(occurrences, points));
}

std::string word_model_json(const WordModel& model) {
  nlohmann::ordered_json json = {{"gleaner_words", kVersion},
                                 {"kind", model.kind == WordKind::kText ? "text" : "debian"},
                                 {"points", model.points}};
  if (model.kind == WordKind::kText) {
    json["text"] = model.fields.text;
    json["tags"] = model.fields.tags;
    json["name"] = model.fields.name;
    json["tag_separator"] = model.fields.tag_separator;
    json["words"] = to_string(model.rule);
    if (model.rule.has_dictionary) json["icu"] = model.icu.empty() ? icu_version() : model.icu;
  }
  json["occurrences"] = model.words.occurrences();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<Vocabulary> load_numbered_names(const std::string& path) {
  Result<std::vector<std::string>> names = lines_of(path);
  if (!names) return names.error();
  const std::vector<std::uint32_t> once(names->size(), 1);
  return Vocabulary::of(std::move(*names), once, path);
}

Result<WordModel> load_word_model(const std::string& folder) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  const std::string path = in(kWordModelFile);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{ErrorCode::kInvalidData,
                 path +
                     " is missing: texts can be read for data sets that 'gleaner dataset "
                     "debian' or 'gleaner dataset convert --text' made"};
  }
  Result<std::vector<std::string>> lines = lines_of(path);
  if (!lines) return lines.error();
  std::string text;
  for (const std::string& line : *lines) text += line + "\n";
  Result<std::vector<std::string>> names = lines_of(in(kFeaturesFile));
  if (!names) return names.error();
  return word_model_of({text, path}, {std::move(*names), in(kFeaturesFile)});
}

Result<WordModel> word_model_of(const WordsText& words, FeatureNames features) {
  const nlohmann::json json = nlohmann::json::parse(words.json, nullptr, false);
  std::vector<std::uint32_t> occurrences;
  std::optional<WordModel> model = model_of(json, occurrences);
  if (!model) {
    return invalid(words.source,
                   fmt::format("is not what 'gleaner dataset' writes (version {})", kVersion));
  }
  auto vocabulary = Vocabulary::of(std::move(features.names), occurrences, features.source);
  if (!vocabulary) return vocabulary.error();
  model->words = std::move(*vocabulary);
  return std::move(*model);
}

}  // namespace gleaner
