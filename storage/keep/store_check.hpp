// All checks of a store that need no other source: files and records are whole, each key and value
// is possible in the run, rows add up to the shards' digests, hash codes follow from the stored
// weights, staged commits fit, and history and accounts agree with the progress. Everything is
// checked before it is used, and a fault does not end the search for others.
//
// Reads only through Store, so a store that is being written can be checked. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "storage/engine/store.hpp"
#include "storage/run_records.hpp"

namespace gleaner {

struct Finding {
  std::string check;  // the part of the check: "files", "rows", ...
  std::string where;  // "shard 3, row 17"
  std::string what;   // a clause: "its checksum does not match"
  friend bool operator==(const Finding&, const Finding&) = default;
};

// The faults that a check finds. One thread.
class Findings {
 public:
  // Findings beyond this number are counted and not kept, to bound memory.
  static constexpr std::size_t kKeptMax = 100'000;

  void add(std::string check, std::string where, std::string what);
  // A finding about a record: `check` is the table's name.
  void add(Table table, ByteView key, std::string what);

  [[nodiscard]] const std::vector<Finding>& kept() const { return kept_; }

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::vector<Finding> kept_;
  std::uint64_t count_ = 0;
};

// Calls `visit(key, record, payload)` for each record with begin <= key < end (end empty: to the
// table's end) whose envelope is valid; other records become findings. Returns false, with a
// finding, when the store cannot read on: the rest of the range is unknown.
bool walk_records(Store& store, Table table, ByteView begin, ByteView end, Findings& findings,
                  const std::function<void(ByteView, ByteView, ByteView)>& visit);

// The core of a storage error, without the place and the advice around it.
std::string brief(const std::string& message);

// The valid content of table kRun.
struct CheckedRun {
  std::optional<std::map<std::string, std::string>> settings;
  std::optional<ModelConfig> model;
  std::optional<ProgressRecord> progress;
  std::optional<std::vector<std::uint32_t>> label_counts;
  std::vector<std::optional<ShardDigest>> digests;  // by shard; nullopt where damaged
};

// A stored row whose record is valid. Only the digest over all of the shard's rows shows whether it
// is the row that was folded.
struct CheckedRow {
  ShardId shard{};
  std::uint32_t row = 0;
  ByteView values_and_state;             // little-endian floats
  std::span<const std::uint32_t> codes;  // computed from its weights; none without tables
};

struct CheckHooks {
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress = [](auto, auto) {};
  std::function<void(const CheckedRow&)> on_row = [](const CheckedRow&) {};
  // Called for each valid record of the ledger or the history.
  std::function<void(Table, ByteView key, ByteView record)> on_record = [](auto, auto, auto) {};
};

// Adds an error of damaged_files().
void add_file_finding(Findings& findings, const Error& error);

// The parts of check_store(), which runs all of them.
CheckedRun check_run_table(Store& store, Findings& findings);
void check_stored_rows(Store& store, const CheckedRun& run, Findings& findings,
                       const CheckHooks& hooks);
void check_staged_commits(Store& store, const CheckedRun& run, Findings& findings);
void check_history(Store& store, const CheckedRun& run, Findings& findings,
                   const CheckHooks& hooks);
void check_ledger(Store& store, const CheckedRun& run, Findings& findings, const CheckHooks& hooks);

CheckedRun check_store(Store& store, Findings& findings, const CheckHooks& hooks = {});

// Repairs a damaged store with a backup of the same run. The damaged store is only read. Valid
// content is copied to an empty store; damaged content is computed again or taken from the backup,
// but only if the shard's digest proves that it is the folded content. A repaired store therefore
// has the digest of the store before the damage.

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
