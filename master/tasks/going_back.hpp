// How far a run must go back when somebody was convicted whose earlier work nobody had audited, and
// which checkpoints are kept for that. Used with a store of one's own.
#pragma once

#include <optional>
#include <vector>

#include "common/access/key_id.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
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

}  // namespace gleaner
