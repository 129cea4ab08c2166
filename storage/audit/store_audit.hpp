// Everything that can be checked about a store by itself: that files and records are whole, that
// each key and value is one that the run can have, that rows add up to the shards' digests, that
// table entries are the codes of the stored weights, that what is staged fits, that history and
// accounts agree with the progress. Nothing is believed before it is checked, and one thing that
// is wrong does not end the search for others.
//
// Reads through the store alone, so it works on one that is being written. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/shard_digest.hpp"
#include "common/model/shard_map.hpp"
#include "storage/audit/findings.hpp"
#include "storage/engine/store.hpp"
#include "storage/run_records.hpp"

namespace gleaner {

// The content of the run's own table, as far as it is sound.
struct AuditedRun {
  std::optional<std::map<std::string, std::string>> settings;
  std::optional<ModelConfig> model;
  std::optional<ProgressRecord> progress;
  std::optional<std::vector<std::uint32_t>> label_counts;
  std::vector<std::optional<ShardDigest>> digests;  // by shard; nullopt where it is damaged
};

// A stored row that is whole by itself. Whether it is the one that was folded, only all of its
// shard's rows together can tell.
struct AuditedRow {
  ShardId shard{};
  std::uint32_t row = 0;
  ByteView values_and_state;             // little-endian floats
  std::span<const std::uint32_t> codes;  // of its weights, computed again; none without tables
};

struct AuditHooks {
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress = [](auto, auto) {};
  std::function<void(const AuditedRow&)> on_row = [](const AuditedRow&) {};
  // A sound record of the ledger or the history.
  std::function<void(Table, ByteView key, ByteView record)> on_record = [](auto, auto, auto) {};
};

// An error of damaged_files().
void add_file_finding(Findings& findings, const Error& error);

// The parts; audit_store does them all.
AuditedRun audit_run(Store& store, Findings& findings);
void audit_rows(Store& store, const AuditedRun& run, Findings& findings, const AuditHooks& hooks);
void audit_staged(Store& store, const AuditedRun& run, Findings& findings);
void audit_history(Store& store, const AuditedRun& run, Findings& findings,
                   const AuditHooks& hooks);
void audit_ledger(Store& store, const AuditedRun& run, Findings& findings, const AuditHooks& hooks);

AuditedRun audit_store(Store& store, Findings& findings, const AuditHooks& hooks = {});

}  // namespace gleaner
