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

// Whether `checkpoint` is to be kept when the run is at `now`. The further back, the fewer: at most
// one for each power of two, and checkpoint 0. So a run that must undo N rounds loses at most 4 N,
// and N rounds keep about log2(N) checkpoints.
[[nodiscard]] constexpr bool is_kept_to_go_back(RoundIndex checkpoint, RoundIndex now) {
  const RoundIndex lowest_bit = checkpoint & (~checkpoint + 1);
  return checkpoint <= now && (checkpoint == 0 || now - checkpoint < 2 * lowest_bit);
}

// The first round in which one of them took part unaudited; nullopt when there is none. It is the
// checkpoint to go back to, or before.
Result<std::optional<RoundIndex>> first_unaudited(RunStore& run, const std::vector<KeyId>& keys);

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
