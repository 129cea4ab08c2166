// Which run a store belongs to, compared in words. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// The run that a store belongs to. A store opened with another one is refused.
struct RunIdentity {
  ModelConfig model;
  // The effective configuration, key -> value as text: model keys and those that only steer the
  // master, for people and for naming the differing keys.
  std::map<std::string, std::string> settings;
  // Only of one that is asked for: figures begin again with another test file than the stored one.
  bool begins_new_test = false;
};

// Which run it is, without how long that is meant to be: 16 digits, equal for equal models.
std::string run_name(const RunIdentity& identity);

// Adds to the settings of `identity` what its figures are measured with.
void set_test_file(RunIdentity& identity, const std::string& name, std::uint64_t fingerprint);
// 0 where no test file is known.
std::uint64_t test_fingerprint(const RunIdentity& identity);
// kIdentity, with both names, when `wanted` measures on another test file than `stored` and does
// not ask for new figures.
Result<void> check_test_file(const RunIdentity& wanted, const RunIdentity& stored);

// How `wanted` differs from what the store holds, one clause a key: "learning.output_rate is 0.003
// here and 0.01 in the store". More epochs than the store has are not a difference, nor is a
// setting that only one of the two knows. Empty when the store may be used.
std::vector<std::string> identity_differences(const RunIdentity& wanted, const RunIdentity& stored);

}  // namespace gleaner
