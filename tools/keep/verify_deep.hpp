// gleaner verify --deep: whether a checkpoint is what training gives. The rounds since an earlier
// checkpoint are trained again, all or some, and the digests compared. A round is the least that
// can be: every row follows from the round's rows in all shards, and digests are taken at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

struct DeepRequest {
  std::string train;          // the run's training file
  std::string from;           // store of the earlier checkpoint, "start", or empty: the latest kept
  std::uint32_t threads = 0;  // 0: all
  std::uint32_t rounds = 0;   // at most N rounds, against the digests of the history; 0: all
  std::optional<std::uint64_t> sample;  // seed of the choice of `from`; then 0 rounds is 1
};

struct DeepOutcome {
  std::string from;
  RoundIndex base = 0;
  RoundIndex checkpoint = 0;
  std::uint64_t batches = 0;
  double seconds = 0;
  // The digest of the model at the store's own checkpoint, of all rows at an earlier one.
  std::string digest;
  std::string retrained_digest;
};

// Differences become findings of the check "deep". An error says why it cannot be done.
Result<DeepOutcome> verify_deep(const std::string& store, const DeepRequest& request,
                                Findings& findings);

void add_deep(Report& report, const DeepOutcome& outcome);

}  // namespace gleaner
