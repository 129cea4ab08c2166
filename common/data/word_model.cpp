#include "common/data/word_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/data/byte_source.hpp"
#include "common/data/word_rule.hpp"

namespace gleaner {
namespace {

constexpr int kVersion = 1;

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

// Rounded to the file's decimals, so that no bit depends on a library's logarithm.
float in_thousandths(double value) {
  return static_cast<float>(std::round(value * 1000) / 1000);
}

float tf_idf(std::uint32_t in_point, std::uint32_t occurrences, std::uint64_t points) {
  return in_thousandths((1 + std::log(static_cast<double>(in_point))) *
                        rarity(occurrences, points));
}

// Takes the words that have a number. `value` gets a word's weight and occurrences.
template <typename Weight>
Point point_of_words(const Vocabulary& known, const std::map<std::string, Weight>& words,
                     const std::function<float(Weight, std::uint32_t)>& value) {
  Point point;
  for (const auto& [word, weight] : words) {
    const auto* entry = known.find(word);
    if (entry == nullptr) continue;
    point.features.push_back(entry->id);
    point.values.push_back(value(weight, entry->occurrences));
  }
  return point;
}

// Nullopt when the fields are invalid.
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

Result<Vocabulary> Vocabulary::of(std::vector<std::string> names,
                                  const std::vector<std::uint32_t>& occurrences,
                                  const std::string& source) {
  if (names.size() != occurrences.size()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} names with {} counts: the files are not of one data set",
                             source, names.size(), occurrences.size())};
  }
  Vocabulary made;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && names[i] <= names[i - 1]) {
      return Error{
          ErrorCode::kInvalidData,
          fmt::format("{}:{}:1: expected names in ascending order, each once", source, i + 1)};
    }
    made.names_.emplace_hint(made.names_.end(), names[i],
                             Entry{occurrences[i], static_cast<std::uint32_t>(i), true});
  }
  made.numbered_ = std::move(names);
  return made;
}

void Vocabulary::number(std::uint32_t least) {
  for (auto& [name, entry] : names_) {
    if (entry.occurrences < least && !entry.is_numbered) continue;
    entry.id = static_cast<std::uint32_t>(numbered_.size());
    entry.is_numbered = true;
    numbered_.push_back(name);
  }
}

const Vocabulary::Entry* Vocabulary::find(const std::string& name) const {
  const auto place = names_.find(name);
  return place == names_.end() || !place->second.is_numbered ? nullptr : &place->second;
}

std::vector<std::uint32_t> Vocabulary::occurrences() const {
  std::vector<std::uint32_t> all;
  for (const std::string& name : numbered_) all.push_back(names_.at(name).occurrences);
  return all;
}

double rarity(std::uint32_t occurrences, std::uint64_t points) {
  return std::log(static_cast<double>(points + 1) / static_cast<double>(occurrences + 1)) + 1;
}

std::string WordModel::dictionary_note(const std::string& source) const {
  if (icu.empty() || icu == icu_version()) return {};
  return fmt::format(
      "{} was made with the dictionaries of ICU {}, and these are of ICU {}: words of scripts "
      "without spaces may differ",
      source, icu, icu_version());
}

Point WordModel::point_of(const std::string& text) const {
  if (kind == WordKind::kText) {
    return point_of_words<std::uint32_t>(words, counted_words(rule, text),
                                         [&](std::uint32_t count, std::uint32_t occurrences) {
                                           return tf_idf(count, occurrences, points);
                                         });
  }
  // "hello: example package", or a description alone.
  const std::size_t colon = text.find(": ");
  const bool is_named = colon != std::string::npos && text.find(' ') > colon;
  const std::string name = is_named ? text.substr(0, colon) : "";
  return point_of_words<double>(
      words, debian_words(name, is_named ? text.substr(colon + 2) : text),
      [&](double weight, std::uint32_t occurrences) {
        return in_thousandths(weight * std::sqrt(rarity(occurrences, points)));
      });
}

std::map<std::string, std::uint32_t> counted_words(const WordRule& rule, std::string_view text) {
  std::map<std::string, std::uint32_t> counts;
  for_each_word(rule, text, [&](std::string_view word) { ++counts[std::string(word)]; });
  return counts;
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
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{ErrorCode::kInvalidData,
                 path +
                     " is missing: texts can be read for data sets that 'gleaner dataset "
                     "convert --text' made"};
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Result<std::vector<std::string>> names = lines_of(in(kFeatureNamesFile));
  if (!names) return names.error();
  return word_model_of({text, path}, {std::move(*names), in(kFeatureNamesFile)});
}

Result<WordModel> word_model_of(const WordsText& words, FeatureNames features) {
  const nlohmann::json json = nlohmann::json::parse(words.json, nullptr, false);
  std::vector<std::uint32_t> occurrences;
  std::optional<WordModel> model = model_of(json, occurrences);
  if (!model) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: is not what 'gleaner dataset' writes (version {})", words.source,
                             kVersion)};
  }
  auto vocabulary = Vocabulary::of(std::move(features.names), occurrences, features.source);
  if (!vocabulary) return vocabulary.error();
  model->words = std::move(*vocabulary);
  return std::move(*model);
}

}  // namespace gleaner
