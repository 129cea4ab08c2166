#include "common/model/model_fields.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>

namespace gleaner {
namespace {

// A field missing from the table would make two different runs look equal.
static_assert(sizeof(ModelConfig) == 192, "the table lists every field of ModelConfig");

// Hashes, written in hexadecimal.
constexpr std::string_view kFingerprintField = "data_fingerprint";
constexpr std::string_view kInitialField = "initial_fingerprint";
constexpr std::string_view kTextsField = "label_texts_fingerprint";

// Some fields are left out of names and digests while they have their default.
bool is_used(std::string_view field, const ModelConfig& config) {
  if (field == kInitialField) return config.initial_fingerprint != 0;
  if (field == kTextsField) return config.label_texts_fingerprint != 0;
  if (field == "wide_text_weight") return config.label_texts_fingerprint != 0;
  if (field == "activation_bits") return config.activation_bits != ModelConfig().activation_bits;
  if (field == "staleness_rise") return config.staleness_rise != 0;
  if (field == "feature_list") return config.feature_list != 0;
  if (field.starts_with("wide_")) return is_wide(config);
  return true;
}

constexpr bool is_hash(std::string_view field) {
  return field == kFingerprintField || field == kInitialField || field == kTextsField;
}

template <typename T>
std::string text_of(const char* name, T value) {
  if constexpr (std::is_enum_v<T>) {
    const std::vector<std::string> words = model_words(value);
    const auto index = static_cast<std::size_t>(value);
    return index < words.size() ? words[index] : std::to_string(index);
  } else {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (is_hash(name)) return fmt::format("{:016x}", value);
    }
    return fmt::format("{}", value);
  }
}

template <typename T>
bool parse(const char* name, std::string_view text, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const std::vector<std::string> words = model_words(value);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] != text) continue;
      value = static_cast<T>(i);
      return true;
    }
    return false;
  } else {
    const char* const end = text.data() + text.size();
    std::from_chars_result parsed{};
    if constexpr (std::is_floating_point_v<T>) {
      parsed = std::from_chars(text.data(), end, value);
    } else {
      const int base = is_hash(name) ? 16 : 10;
      parsed = std::from_chars(text.data(), end, value, base);
    }
    return parsed.ec == std::errc() && parsed.ptr == end;
  }
}

// Every field, used or not, to compare two configurations.
std::vector<std::pair<std::string, std::string>> compared_fields(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> fields;
  for_each_model_field([&](const auto& field) {
    const bool is_none = is_hash(field.name) && !is_used(field.name, config);
    fields.emplace_back(field.name, is_none ? "none" : text_of(field.name, config.*field.member));
  });
  return fields;
}

}  // namespace

std::vector<std::string> model_words(HiddenUnits) {
  return {"relu", "linear"};
}

std::vector<std::string> model_words(Sampling) {
  return {"lsh", "random", "all"};
}

std::vector<std::pair<std::string, std::string>> model_fields(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> fields;
  for_each_model_field([&](const auto& field) {
    if (!is_used(field.name, config)) return;
    fields.emplace_back(field.name, text_of(field.name, config.*field.member));
  });
  return fields;
}

Result<ModelConfig> model_from_fields(const std::map<std::string, std::string>& fields) {
  ModelConfig config;
  std::size_t known = 0;
  std::string unreadable;
  for_each_model_field([&](const auto& field) {
    const auto text = fields.find(field.name);
    if (text == fields.end()) return;
    ++known;
    if (!parse(field.name, text->second, config.*field.member)) unreadable = field.name;
  });
  if (!unreadable.empty()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the model configuration has no readable '{}'", unreadable)};
  }
  if (known != fields.size()) {
    return Error{ErrorCode::kVersion,
                 "the model configuration has keys that this program does not know: use the "
                 "version of Gleaner that wrote it"};
  }
  if (auto valid = validate(config); !valid) {
    return Error{ErrorCode::kCorrupt, "in the model configuration, " + valid.error().message};
  }
  return config;
}

std::vector<FieldDifference> model_differences(const ModelConfig& left, const ModelConfig& right) {
  std::vector<FieldDifference> differences;
  const auto fields = compared_fields(left);
  const auto others = compared_fields(right);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& [name, text] = fields[i];
    if (text != others[i].second) differences.push_back({name, text, others[i].second});
  }
  return differences;
}

}  // namespace gleaner
