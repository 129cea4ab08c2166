#include "storage/identity.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "common/access/sha256.hpp"
#include "common/bytes.hpp"

namespace gleaner {
namespace {

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

std::string run_name(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : model_fields(identity.model)) {
    if (name != "epochs") text += fmt::format("{}={}\n", name, value);
  }
  Sha256 sha;
  sha.update(as_bytes(text));
  return sha.finish().substr(0, 16);
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
  for_each_model_field([&](const auto& field) { known_fields.insert(field.name); });
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
