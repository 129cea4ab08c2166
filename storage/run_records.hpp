// The small structured records of a store as JSON text. Any tool can read them, and they can grow:
// unknown fields are skipped, and missing fields have their defaults. Decoding returns nullopt for
// text that is not such a record. Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

struct IdentityRecord {
  std::uint32_t store_version = 0;
  std::map<std::string, std::string> model;  // by field, as model_fields()
};

// The progress of the run.
struct ProgressRecord {
  RoundIndex checkpoint = 0;  // rounds folded
  BatchIndex batches = 0;     // batches in these rounds
  // The learning rates are halved from each of these batches on; ascending.
  std::vector<BatchIndex> rate_cuts{};
};

// Whether a run of the model can have reached this progress.
[[nodiscard]] bool is_possible(const ProgressRecord& record, const ModelConfig& model);

struct LeaseEpochRecord {
  std::uint64_t next = 1;  // all epochs below are used
};

// The note beside a backup.
struct BackupRecord {
  RoundIndex checkpoint = 0;
  std::string run;  // a digest of the model's configuration
};

// The fields of these records by their names in JSON.
template <typename Visit>
void visit_fields(IdentityRecord& r, const Visit& visit) {
  visit("store_version", r.store_version);
  visit("model", r.model);
}

template <typename Visit>
void visit_fields(ProgressRecord& r, const Visit& visit) {
  visit("checkpoint", r.checkpoint);
  visit("batches", r.batches);
  visit("rate_cuts", r.rate_cuts);
}

template <typename Visit>
void visit_fields(ShardDigest& r, const Visit& visit) {
  visit("rows", r.rows);
  visit("sum", r.sum);
}

template <typename Visit>
void visit_fields(LeaseEpochRecord& r, const Visit& visit) {
  visit("next", r.next);
}

template <typename Visit>
void visit_fields(BackupRecord& r, const Visit& visit) {
  visit("checkpoint", r.checkpoint);
  visit("run", r.run);
}

// Converts a record to JSON text and back. Records are the structs above, ShardDigest, RoundRecord,
// AccountRecord without its identity (the key has it), and SettledRound without round and shard
// (the key has them).
template <typename Record>
std::string encode_record(const Record& record);
template <typename Record>
std::optional<Record> decode_record(std::string_view text);

std::string encode_settings(const std::map<std::string, std::string>& settings);
std::optional<std::map<std::string, std::string>> decode_settings(std::string_view text);

// The receipts of a round, in the order of their shards. Decoding refuses shards that do not
// ascend.
std::string encode_receipts(const Receipts& receipts);
std::optional<Receipts> decode_receipts(std::string_view text);

}  // namespace gleaner
