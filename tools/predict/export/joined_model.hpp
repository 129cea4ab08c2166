// Several trained models as one network that predicts the mean of their logits (an ensemble):
// their hidden units stand side by side, and each label's row and bias are theirs divided by how
// many they are. So whatever reads a model reads an ensemble.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// One of them, and how errors name it.
struct JoinedPart {
  std::string name;
  const RunIdentity* identity = nullptr;
};

// The identity of the joined network: the first part's identity with as many hidden units as all
// have together; of one part, its own. Refuses (kInvalidArgument, naming the part) parts that were
// not trained on the same points, or not scaled alike, and more units than a network can have.
// Requires one part or more.
Result<RunIdentity> joined_identity(const std::vector<JoinedPart>& parts);

}  // namespace gleaner
