// The small structured records of a store as JSON text: readable with any tool, and free to grow,
// since unknown fields are skipped and missing ones have their defaults. Decoding gives nullopt for
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
  std::map<std::string, std::string> model;  // see common/model/model_fields.hpp
};

// How far the run got.
struct ProgressRecord {
  RoundIndex checkpoint = 0;  // rounds folded
  BatchIndex batches = 0;     // in those rounds
  // From each of these batches on the rates are half of what they were to be; ascending.
  std::vector<BatchIndex> rate_cuts{};
};

// Whether a run of the model can have got so far.
[[nodiscard]] bool is_possible(const ProgressRecord& record, const ModelConfig& model);

struct LeaseEpochRecord {
  std::uint64_t next = 1;  // epochs below it have been handed out
};

// The note beside a backup.
struct BackupRecord {
  RoundIndex checkpoint = 0;
  std::string run;  // a digest of the model's configuration
};

// The JSON text of a record, and a record of such a text: those above, ShardDigest, RoundRecord,
// AccountRecord without the identity, which is the key, and SettledRound without round and shard,
// which are in the key.
template <typename Record>
std::string encode_record(const Record& record);
template <typename Record>
std::optional<Record> decode_record(std::string_view text);

std::string encode_settings(const std::map<std::string, std::string>& settings);
std::optional<std::map<std::string, std::string>> decode_settings(std::string_view text);

// The receipts of a round, in the order of their shards. A list whose shards do not ascend is not
// one.
std::string encode_receipts(const Receipts& receipts);
std::optional<Receipts> decode_receipts(std::string_view text);

}  // namespace gleaner
