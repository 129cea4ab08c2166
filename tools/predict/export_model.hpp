// The models that go into one exported file: their stores, the identity of the whole, its metadata.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// An ensemble is one network that predicts the mean of several models' logits: their hidden units
// stand side by side, and each label's rows and biases are divided by the number of models. Every
// reader of a model reads an ensemble too.

// A model of the file. Its hidden units begin at `first_unit`.
struct ModelPart {
  std::string name;
  std::unique_ptr<RunStore> run;
  std::uint32_t first_unit = 0;
  std::string digest{};  // of its checkpoint
};

// Opens the stores to read. kNotFound for a store without a checkpoint.
Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores);

// The identity of the joined network: the first part's, with the sum of the hidden units. Refuses
// (kInvalidArgument, naming the part) other training data, other scaling, and more units than a
// network can have. Requires a part.
Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts);

// Checkpoints, digests and audits of several models stand in the models' order, with blanks
// between.
Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts);

}  // namespace gleaner
