// Creates a run in an empty store.
#include <algorithm>

#include "common/model/model_fields.hpp"
#include "schema/versions.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

Result<void> put_label_counts(SortedWriter& writer, std::span<const std::uint32_t> counts) {
  for (std::uint32_t chunk = 0; std::size_t{chunk} * kLabelCountsPerChunk < counts.size();
       ++chunk) {
    const auto rest = counts.subspan(std::size_t{chunk} * kLabelCountsPerChunk);
    const auto own = rest.first(std::min<std::size_t>(rest.size(), kLabelCountsPerChunk));
    const Bytes key = label_counts_key(chunk);
    const ByteView payload{reinterpret_cast<const std::uint8_t*>(own.data()), own.size_bytes()};
    auto put = writer.put(Table::kRun, key, seal_record(Table::kRun, key, payload));
    if (!put) return put;
  }
  return {};
}

// Writes the initial rows of a run and the digests of its shards.
Result<void> put_initial_rows(Store& store, SortedWriter& writer, const ModelConfig& model,
                              const InitialRows& initial_rows) {
  const ShardMap map(model);
  RowTables tables(store, map);
  RowCodes row_codes(model);
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::size_t width = map.row_width(shard);
    const std::size_t codes = map.codes_per_row(shard);
    ShardDigest digest;
    for (std::uint32_t begin = 0; begin < map.row_count(shard);) {
      const std::uint32_t end =
          begin + std::min(RunStore::kRowsPerRead, map.row_count(shard) - begin);
      const Result<ShardRows> own = initial_rows(shard, begin, end);
      if (!own) return own.error();
      std::span<const std::uint32_t> all;
      if (map.is_wide()) {
        all = own->codes;
      } else if (codes > 0) {
        all = row_codes.of(own->values, width);
      }
      for (std::size_t i = 0; i < own->rows.size(); ++i) {
        const Result<std::uint64_t> put = tables.put(
            writer, {shard, own->rows[i]}, std::span(own->values).subspan(i * width, width),
            own->states[i], all.subspan(i * codes, codes));
        if (!put) return put.error();
        digest.sum += *put;
        ++digest.rows;
      }
      begin = end;
    }
    auto put = put_text(writer, Table::kRun, shard_digest_key(shard), encode_record(digest));
    if (!put) return put;
  }
  return {};
}

// The most bytes that creating the run writes.
std::uint64_t creation_bytes(const ModelConfig& model) {
  std::uint64_t bytes = std::uint64_t{model.labels} * sizeof(std::uint32_t);
  if (!begins_with_rows(model)) return bytes;
  const ShardMap map(model);
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    bytes += map.row_count(ShardId{s}) * row_bytes(map, ShardId{s});
  }
  return bytes;
}

}  // namespace

IdentityRecord record_of(const RunIdentity& identity) {
  IdentityRecord record;
  record.store_version = kStoreVersion;
  for (auto& [name, text] : model_fields(identity.model)) record.model.emplace(name, text);
  return record;
}

Result<void> create_run(Store& store, const RunIdentity& identity,
                        std::span<const std::uint32_t> label_counts,
                        const InitialRows& initial_rows) {
  const bool has_rows = begins_with_rows(identity.model);
  if (has_rows && !initial_rows) {
    return Error{ErrorCode::kInvalidArgument, "the model that the run begins with is missing"};
  }
  auto writer = store.begin_sorted(creation_bytes(identity.model));
  if (!writer) return writer.error();
  // In the order of their keys.
  Result<void> put =
      put_text(**writer, Table::kRun, as_bytes(kIdentityKey), encode_record(record_of(identity)));
  if (put) put = put_label_counts(**writer, label_counts);
  if (put)
    put = put_text(**writer, Table::kRun, as_bytes(kProgressKey), encode_record(ProgressRecord{}));
  if (put) {
    auto settings = identity.settings;
    if (is_wide(identity.model)) settings.emplace(kWideRuleKey, kWideRule);
    put = put_text(**writer, Table::kRun, as_bytes(kSettingsKey), encode_settings(settings));
  }
  if (put && has_rows) put = put_initial_rows(store, **writer, identity.model, initial_rows);
  if (put) put = (*writer)->finish();
  return put;
}

}  // namespace gleaner
