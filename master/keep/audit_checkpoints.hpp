// The checkpoints that a run keeps beside its store, as STORE.kept/audit-N, while strangers' work
// may go unaudited, and the way back to one of them. See master/tasks/going_back.hpp for which.
#pragma once

#include <string>
#include <vector>

#include "common/access/key_id.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "master/console/progress.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Keeps checkpoint `now` of the store in `folder`, and drops those that no longer need be kept. For
// the thread of the store.
Result<void> keep_to_go_back(const HeldFolder& folder, RoundIndex now);
// Whether any is kept.
[[nodiscard]] bool has_kept_to_go_back(const std::string& store);

// Puts `run`, whose folder is `store`, back to a kept checkpoint before the first round in which
// one of `liars` took part unaudited; does nothing where there is no such round. The console is
// told, also where no such checkpoint is kept.
Result<void> undo_work_of(const std::string& store, RunStore& run, const std::vector<KeyId>& liars,
                          Console& console);
// Does so for all keys that are banned, by an earlier process of this run or by hand.
Result<void> undo_work_of_banned(const std::string& store, RunStore& run, Console& console);

// Drops all of them: the run is over.
void drop_kept_to_go_back(const std::string& store);

}  // namespace gleaner
