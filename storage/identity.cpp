#include "storage/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <type_traits>

#include "common/bytes.hpp"
#include "storage/sha256.hpp"

namespace gleaner {
namespace {

// A field that is added to ModelConfig must be added to visit_fields too, or two different runs
// would pass for one.
static_assert(sizeof(ModelConfig) == 152, "visit_fields lists every field of ModelConfig");

// Fields that are hashes: read more easily in hexadecimal.
constexpr std::string_view kFingerprintField = "data_fingerprint";
constexpr std::string_view kInitialField = "initial_fingerprint";

// Some fields are left out of names and digests where they have their default.
bool is_used(std::string_view field, const ModelConfig& config) {
  if (field == kInitialField) return config.initial_fingerprint != 0;
  if (field == "staleness_rise") return config.staleness_rise != 0;
  return true;
}

constexpr bool is_hash(std::string_view field) {
  return field == kFingerprintField || field == kInitialField;
}

template <typename Config, typename Visit>
void visit_fields(Config& c, const Visit& visit) {
  visit("data_fingerprint", c.data_fingerprint);
  visit("points", c.points);
  visit("features", c.features);
  visit("labels", c.labels);
  visit("seed", c.seed);
  visit("hidden", c.hidden);
  visit("hidden_units", c.hidden_units);
  visit("output_shards", c.output_shards);
  visit("input_shards", c.input_shards);
  visit("epochs", c.epochs);
  visit("batch_examples", c.batch_examples);
  visit("round_batches", c.round_batches);
  visit("staleness", c.staleness);
  visit("staleness_rise", c.staleness_rise);
  visit("sampling", c.sampling);
  visit("hash_bits", c.hash_bits);
  visit("tables", c.tables);
  visit("active_cap", c.active_cap);
  visit("random_negatives", c.random_negatives);
  visit("rehash_batches", c.rehash_batches);
  visit("output_rate", c.output_rate);
  visit("input_rate", c.input_rate);
  visit("rate_decay", c.rate_decay);
  visit("warmup_batches", c.warmup_batches);
  visit("second_moment_decay", c.second_moment_decay);
  visit("epsilon", c.epsilon);
  visit("dropout", c.dropout);
  visit("feature_dropout", c.feature_dropout);
  visit("input_scale", c.input_scale);
  visit("output_scale", c.output_scale);
  visit("divergence_factor", c.divergence_factor);
  visit("gradient_step_log2", c.gradient_step_log2);
  visit("initial_fingerprint", c.initial_fingerprint);
}

constexpr std::pair<HiddenUnits, std::string_view> kHiddenUnitsNames[] = {
    {HiddenUnits::kRelu, "relu"}, {HiddenUnits::kLinear, "linear"}};

constexpr std::pair<Sampling, std::string_view> kSamplingNames[] = {
    {Sampling::kLsh, "lsh"}, {Sampling::kRandom, "random"}, {Sampling::kAll, "all"}};

constexpr const auto& names_of(HiddenUnits) {
  return kHiddenUnitsNames;
}

constexpr const auto& names_of(Sampling) {
  return kSamplingNames;
}

template <typename T>
std::string text_of(const char* name, T value) {
  if constexpr (std::is_enum_v<T>) {
    for (const auto& [enumerator, text] : names_of(value)) {
      if (enumerator == value) return std::string(text);
    }
    return fmt::format("{}", static_cast<unsigned>(value));
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
    for (const auto& [enumerator, known] : names_of(value)) {
      if (known != text) continue;
      value = enumerator;
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

// The word after the last dot, which is the field's name in a settings key.
std::string_view last_word(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

// The key under which people know the field, or the field's own name.
std::string key_of_field(const std::string& field, const RunIdentity& identity) {
  for (const auto& [key, value] : identity.settings) {
    if (last_word(key) == field) return key;
  }
  return field;
}

std::string difference(const std::string& key, const std::string& here,
                       const std::string& in_store) {
  return fmt::format("{} is {} here and {} in the store", key, here, in_store);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> model_fields(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(config, [&](const char* name, const auto& value) {
    if (is_used(name, config)) fields.emplace_back(name, text_of(name, value));
  });
  return fields;
}

std::string run_name(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : model_fields(identity.model)) {
    if (name != "epochs") text += fmt::format("{}={}\n", name, value);
  }
  Sha256 sha;
  sha.update(as_bytes(text));
  return sha.finish().substr(0, 16);
}

Result<ModelConfig> model_from_fields(const std::map<std::string, std::string>& fields) {
  ModelConfig config;
  std::size_t known = 0;
  std::string unreadable;
  visit_fields(config, [&](const char* name, auto& value) {
    const auto field = fields.find(name);
    if (field == fields.end()) return;
    ++known;
    if (!parse(name, field->second, value)) unreadable = name;
  });
  if (!unreadable.empty()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the stored model configuration has no readable '{}'", unreadable)};
  }
  if (known != fields.size()) {
    return Error{ErrorCode::kVersion,
                 "the stored model configuration has keys that this program does not know: use "
                 "the version of Gleaner that wrote the store"};
  }
  if (auto valid = validate(config); !valid) {
    return Error{ErrorCode::kCorrupt,
                 "in the stored model configuration, " + valid.error().message};
  }
  return config;
}

namespace {

// Every field, used or not, so that two configurations can be laid side by side.
std::vector<std::pair<std::string, std::string>> compared_fields(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> fields;
  visit_fields(config, [&](const char* name, const auto& value) {
    fields.emplace_back(name, text_of(name, value));
  });
  if (config.initial_fingerprint == 0) fields.back().second = "none";
  return fields;
}

}  // namespace

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

std::vector<std::string> identity_differences(const RunIdentity& wanted,
                                              const RunIdentity& stored) {
  std::vector<std::string> clauses;
  for (const FieldDifference& field : model_differences(wanted.model, stored.model)) {
    const std::string key = key_of_field(field.name, wanted);
    if (field.name != "epochs") {
      clauses.push_back(difference(key, field.left, field.right));
    } else if (wanted.model.epochs < stored.model.epochs) {
      clauses.push_back(difference(key, field.left, field.right) + " (it can only grow)");
    }
  }
  std::set<std::string, std::less<>> known_fields;
  visit_fields(wanted.model, [&](const char* name, const auto&) { known_fields.insert(name); });
  for (const auto& [key, value] : wanted.settings) {
    const auto other = stored.settings.find(key);
    if (other == stored.settings.end() || other->second == value) continue;
    // Settings of the model were compared above, by what they mean.
    if (known_fields.contains(last_word(key))) continue;
    clauses.push_back(difference(key, value, other->second));
  }
  return clauses;
}

}  // namespace gleaner
