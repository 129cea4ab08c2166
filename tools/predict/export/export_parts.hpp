// The stores that go into an exported file, and what the file says of itself. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// A model that goes into the file, whose hidden units begin at `first_unit` there.
struct ModelPart {
  std::string name;
  std::unique_ptr<RunStore> run;
  std::uint32_t first_unit = 0;
};

// Opens the stores to read. kNotFound where one has no checkpoint yet.
Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores);

// The identity of the parts together (joined_model.hpp).
Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts);

// The digests of the parts' checkpoints, in order.
Result<std::vector<std::string>> digests_of(const std::vector<ModelPart>& parts);

// Where there are several models, checkpoints, digests and audits stand in their order, with blanks
// between.
Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts,
                                                       const std::vector<std::string>& digests);

}  // namespace gleaner
