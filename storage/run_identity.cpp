#include "storage/run_identity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "common/access/sha256.hpp"
#include "common/bytes.hpp"
#include "common/model/model_fields.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

constexpr const char* kTestNameKey = "test.file";
constexpr const char* kDataFolderKey = "data.folder";
constexpr const char* kTestFingerprintKey = "test.fingerprint";

// Means the same file in any folder.
std::filesystem::path whole_path(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? std::filesystem::path(path) : whole.lexically_normal();
}

// The word after the last dot: the field's name in a settings key.
std::string_view last_word(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

// The settings key of the field, which people know, or else the field's own name.
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

std::string setting(const RunIdentity& identity, const char* key) {
  const auto known = identity.settings.find(key);
  return known == identity.settings.end() ? "" : known->second;
}

}  // namespace

Result<void> check_trainable(const RunIdentity& identity) {
  const auto rule = identity.settings.find(kWideRuleKey);
  const bool is_known = rule != identity.settings.end() && rule->second == kWideRule;
  if (!is_wide(identity.model) || is_known) return {};
  return Error{ErrorCode::kVersion,
               "the run was begun by an earlier version of Gleaner, whose rows without a hidden "
               "layer learned by another rule: this version asks and exports it, and begins runs "
               "from it in another --store; to train it on takes the earlier version"};
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

void set_data_folder(RunIdentity& identity, const std::string& training_file) {
  identity.settings[kDataFolderKey] = whole_path(training_file).parent_path().string();
}

std::string data_folder(const RunIdentity& identity) {
  return setting(identity, kDataFolderKey);
}

void set_test_file(RunIdentity& identity, const std::string& name, std::uint64_t fingerprint) {
  identity.settings[kTestNameKey] = whole_path(name).string();
  identity.settings[kTestFingerprintKey] = fmt::format("{:016x}", fingerprint);
}

std::string test_file(const RunIdentity& identity) {
  return setting(identity, kTestNameKey);
}

std::uint64_t test_fingerprint(const RunIdentity& identity) {
  std::uint64_t fingerprint = 0;
  const std::string text = setting(identity, kTestFingerprintKey);
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  return fingerprint;
}

Result<void> check_test_file(const RunIdentity& wanted, const RunIdentity& stored) {
  const std::uint64_t here = test_fingerprint(wanted);
  const std::uint64_t there = test_fingerprint(stored);
  if (here == 0 || there == 0 || here == there || wanted.begins_new_test) return {};
  return Error{
      ErrorCode::kIdentity,
      fmt::format("the figures in the store were measured on {} (fingerprint {:016x}), and "
                  "{} (fingerprint {:016x}) is another test file: name the first one as "
                  "--test, or give --new-test so that figures, the best checkpoint and "
                  "--patience begin again with the second",
                  test_file(stored), there, test_file(wanted), here)};
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
    // The model's settings were compared above, by value; check_test_file() compares the test file.
    if (known_fields.contains(last_word(key)) || key.starts_with("test.")) continue;
    if (key == kDataFolderKey) continue;
    clauses.push_back(difference(key, value, other->second));
  }
  return clauses;
}

}  // namespace gleaner
