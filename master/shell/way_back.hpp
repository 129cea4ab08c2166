// The way back of a run when a volunteer was convicted whose earlier work nobody had audited: the
// checkpoints that are kept for it beside the store, as STORE.kept/audit-N. Used by the thread of
// the store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "master/see/console.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Whether `checkpoint` is kept at round `now` while strangers' work may go unaudited: checkpoint 0,
// and at most one for each power of two, fewer the further back. To undo N rounds the run loses at
// most 4 N rounds, and it keeps about log2(N) checkpoints.
[[nodiscard]] constexpr bool is_kept_to_go_back(RoundIndex checkpoint, RoundIndex now) {
  const RoundIndex lowest_bit = checkpoint & (~checkpoint + 1);
  return checkpoint <= now && (checkpoint == 0 || now - checkpoint < 2 * lowest_bit);
}

// The first round with unaudited work of any of `keys`; nullopt when there is none. The run must go
// back to this checkpoint or an earlier one.
Result<std::optional<RoundIndex>> first_unaudited(RunStore& run, const std::vector<KeyId>& keys);

// Keeps checkpoint `now` of the store in `folder`, and drops checkpoints that need not be kept any
// more. For the thread of the store.
Result<void> keep_to_go_back(const HeldFolder& folder, RoundIndex now);
// Whether any audit-N is kept.
[[nodiscard]] bool has_kept_to_go_back(const std::string& store);

// Puts `run`, whose folder is `store`, back to a kept checkpoint before the first round with
// unaudited work of `liars`. Does nothing if there is no such round. Tells the console, also when
// no such checkpoint is kept.
Result<void> undo_work_of(const std::string& store, RunStore& run, const std::vector<KeyId>& liars,
                          Console& console);
// Does the same for all banned keys.
Result<void> undo_work_of_banned(const std::string& store, RunStore& run, Console& console);

// Drops all audit-N: the run is over.
void drop_kept_to_go_back(const std::string& store);

}  // namespace gleaner
