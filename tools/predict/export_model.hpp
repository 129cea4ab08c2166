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

// Several trained models as one network that predicts the mean of their logits (an ensemble):
// their hidden units stand side by side, and each label's row and bias are theirs divided by how
// many they are. So whatever reads a model reads an ensemble.

// A model that goes into the file, whose hidden units begin at `first_unit` there.
struct ModelPart {
  std::string name;
  std::unique_ptr<RunStore> run;
  std::uint32_t first_unit = 0;
  std::string digest{};  // of its checkpoint
};

// Opens the stores to read. kNotFound where one has no checkpoint yet.
Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores);

// The identity of the joined network: the first part's identity with as many hidden units as all
// have together; of one part, its own. Refuses (kInvalidArgument, naming the part) parts that were
// not trained on the same points, or not scaled alike, and more units than a network can have.
// Requires one part or more.
Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts);

// Where there are several models, checkpoints, digests and audits stand in their order, with blanks
// between.
Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts);

}  // namespace gleaner
