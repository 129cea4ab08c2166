// `gleaner verify --deep`: trains the rounds since an earlier checkpoint again, all or some, and
// compares the digests. A round is the smallest part: every row depends on the round's rows in all
// shards, and digests exist at the ends of rounds.
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
  std::optional<std::uint64_t> sample;  // seed that chooses `from`; 0 rounds then mean 1
};

struct DeepOutcome {
  std::string from;
  RoundIndex base = 0;
  RoundIndex checkpoint = 0;
  std::uint64_t batches = 0;
  double seconds = 0;
  // At the store's own checkpoint the digest of the model; at an earlier one the digest of all
  // rows.
  std::string digest;
  std::string retrained_digest;
};

// Differences become findings of the check "deep". An error says why the check is impossible.
Result<DeepOutcome> verify_deep(const std::string& store, const DeepRequest& request,
                                Findings& findings);

void add_deep(Report& report, const DeepOutcome& outcome);

}  // namespace gleaner
