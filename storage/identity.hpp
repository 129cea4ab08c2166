// A run's identity as text: every field of ModelConfig by name, so that a record of it can be read
// by people, grows without breaking, and two identities can be compared in words.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Name and text of every field, in the order of the structure; some, among them
// `initial_fingerprint`, the last, only where they are used. Numbers are written so that reading
// them gives the same bits.
std::vector<std::pair<std::string, std::string>> model_fields(const ModelConfig& config);

// Which run it is, without how long that is meant to be: 16 digits, equal for equal models.
std::string run_name(const RunIdentity& identity);

// The reverse. A field that is missing has its default: it was added after the text was written. A
// name that is unknown is kVersion: a newer program wrote it, and it may matter to the arithmetic.
Result<ModelConfig> model_from_fields(const std::map<std::string, std::string>& fields);

// A field of which two configurations have different values, and at least one uses its own.
struct FieldDifference {
  std::string name;
  std::string left;
  std::string right;
};

std::vector<FieldDifference> model_differences(const ModelConfig& left, const ModelConfig& right);

// How `wanted` differs from what the store holds, one clause a key: "learning.output_rate is 0.003
// here and 0.01 in the store". More epochs than the store has are not a difference, nor is a
// setting that only one of the two knows. Empty when the store may be used.
std::vector<std::string> identity_differences(const RunIdentity& wanted, const RunIdentity& stored);

}  // namespace gleaner
