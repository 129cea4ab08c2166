// A damaged store made whole with the help of a backup of the same run. The damaged one is only
// read: what is sound of it goes to an empty store, what is not is computed again or taken from the
// backup, and taken only where the shard's digest proves that it is what was folded. A repaired
// store therefore has the digest that the damaged one had before.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// One thing that was done, in words: where, and what.
struct RepairStep {
  std::string where;
  std::string what;
};

struct RepairOutcome {
  std::vector<RepairStep> done;
  // Things that neither store has; when there are any, `target` is of no use.
  std::vector<RepairStep> lost;
};

// `backup` is whole. kIdentity when it is of another run.
Result<RepairOutcome> repair_store(Store& damaged, Store& backup, Store& target);

}  // namespace gleaner
