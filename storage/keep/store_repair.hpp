// Repairs a damaged store with a backup of the same run. The damaged store is only read. Valid
// content is copied to an empty store; damaged content is computed again or taken from the backup,
// but only if the shard's digest proves that it is the folded content. A repaired store therefore
// has the digest of the store before the damage.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// A completed step, in words.
struct RepairStep {
  std::string where;
  std::string what;
};

struct RepairOutcome {
  std::vector<RepairStep> done;
  // Content that neither store has. If there is any, `target` is useless.
  std::vector<RepairStep> lost;
};

// `backup` is undamaged. kIdentity when it belongs to another run.
Result<RepairOutcome> repair_store(Store& damaged, Store& backup, Store& target);

}  // namespace gleaner
