// Which run a store belongs to, compared in words. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// A setting of every new run: kWideRule.
inline constexpr const char* kWideRuleKey = "wide.rule";

// The run that a store belongs to. Opening a store with a different identity is refused.
struct RunIdentity {
  ModelConfig model;
  // The effective configuration, key -> value as text: model keys and keys that only steer the
  // master. For people, and for naming the keys that differ.
  std::map<std::string, std::string> settings;
  // Only in a requested identity: allows another test file than the stored one. Figures then begin
  // again.
  bool begins_new_test = false;
};

// Which run it is, without how long that is meant to be: 16 digits, equal for equal models.
std::string run_name(const RunIdentity& identity);

// Refuses to train a run whose wide rows learned by the rule of an earlier version.
Result<void> check_trainable(const RunIdentity& identity);

// Adds the folder of the training file, which may have names and words, to the settings of
// `identity`; empty where it is unknown. Neither path decides which run it is.
void set_data_folder(RunIdentity& identity, const std::string& training_file);
std::string data_folder(const RunIdentity& identity);

// Adds the test file to the settings of `identity`.
void set_test_file(RunIdentity& identity, const std::string& name, std::uint64_t fingerprint);
// Its path; empty without a test file.
std::string test_file(const RunIdentity& identity);
// 0 without a test file.
std::uint64_t test_fingerprint(const RunIdentity& identity);
// kIdentity, with both names, when `wanted` has another test file than `stored` and does not allow
// new figures.
Result<void> check_test_file(const RunIdentity& wanted, const RunIdentity& stored);

// The differences between `wanted` and `stored`, one clause per key: "learning.output_rate is 0.003
// here and 0.01 in the store". More epochs than stored are no difference, nor is a setting that
// only one of the two has. Empty when the store may be used.
std::vector<std::string> identity_differences(const RunIdentity& wanted, const RunIdentity& stored);

}  // namespace gleaner
