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

#include "common/bytes.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "storage/engine/store.hpp"
#include "storage/run_records.hpp"

namespace gleaner {

// The faults of a store, one by one, as a check finds them. One thread.
struct Finding {
  std::string check;  // which part of the audit: "files", "rows", ...
  std::string where;  // in words: "shard 3, row 17"
  std::string what;   // a clause: "its checksum does not match"
  friend bool operator==(const Finding&, const Finding&) = default;
};

class Findings {
 public:
  // More than this are counted and not kept: memory must not depend on how bad it is.
  static constexpr std::size_t kKeptMax = 100'000;

  void add(std::string check, std::string where, std::string what);
  // About a record: `check` is the table's name.
  void add(Table table, ByteView key, std::string what);

  [[nodiscard]] const std::vector<Finding>& kept() const { return kept_; }

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::vector<Finding> kept_;
  std::uint64_t count_ = 0;
};

// Records of a table, whatever is wrong with others. One thread.

// Calls `visit(key, record, payload)` for each record with begin <= key < end (end empty: to the
// table's end) whose envelope holds; the others become findings. Returns false, with a finding,
// when the store could not read on: the rest of the range is unknown.
bool walk_records(Store& store, Table table, ByteView begin, ByteView end, Findings& findings,
                  const std::function<void(ByteView, ByteView, ByteView)>& visit);

// The heart of a storage error, without the place and the advice around it.
std::string brief(const std::string& message);

// The content of the run's own table, as far as it is sound.
struct CheckedRun {
  std::optional<std::map<std::string, std::string>> settings;
  std::optional<ModelConfig> model;
  std::optional<ProgressRecord> progress;
  std::optional<std::vector<std::uint32_t>> label_counts;
  std::vector<std::optional<ShardDigest>> digests;  // by shard; nullopt where it is damaged
};

// A stored row that is whole by itself. Whether it is the one that was folded, only all of its
// shard's rows together can tell.
struct CheckedRow {
  ShardId shard{};
  std::uint32_t row = 0;
  ByteView values_and_state;             // little-endian floats
  std::span<const std::uint32_t> codes;  // of its weights, computed again; none without tables
};

struct CheckHooks {
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress = [](auto, auto) {};
  std::function<void(const CheckedRow&)> on_row = [](const CheckedRow&) {};
  // A sound record of the ledger or the history.
  std::function<void(Table, ByteView key, ByteView record)> on_record = [](auto, auto, auto) {};
};

// An error of damaged_files().
void add_file_finding(Findings& findings, const Error& error);

// The parts; check_store does them all.
CheckedRun check_run_table(Store& store, Findings& findings);
void check_stored_rows(Store& store, const CheckedRun& run, Findings& findings,
                       const CheckHooks& hooks);
void check_staged_commits(Store& store, const CheckedRun& run, Findings& findings);
void check_history(Store& store, const CheckedRun& run, Findings& findings,
                   const CheckHooks& hooks);
void check_ledger(Store& store, const CheckedRun& run, Findings& findings, const CheckHooks& hooks);

CheckedRun check_store(Store& store, Findings& findings, const CheckHooks& hooks = {});

}  // namespace gleaner
