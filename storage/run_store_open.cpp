// Making a run in an empty store, and finding again the one a store holds.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "schema/versions.hpp"
#include "storage/record.hpp"
#include "storage/row_tables.hpp"
#include "storage/run_store.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// The content of the run's table, before anything is checked against anybody's wishes.
struct StoredRun {
  RunIdentity identity;
  std::vector<std::uint32_t> label_counts;
  ProgressRecord progress;
};

IdentityRecord record_of(const RunIdentity& identity) {
  IdentityRecord record;
  record.store_version = kStoreVersion;
  for (auto& [name, text] : model_fields(identity.model)) record.model.emplace(name, text);
  return record;
}

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

Result<std::vector<std::uint32_t>> read_label_counts(Store& store, std::uint32_t labels) {
  std::vector<std::uint32_t> counts(labels);
  for (std::uint32_t chunk = 0; std::size_t{chunk} * kLabelCountsPerChunk < labels; ++chunk) {
    const std::size_t first = std::size_t{chunk} * kLabelCountsPerChunk;
    const std::size_t bytes =
        std::min<std::size_t>(labels - first, kLabelCountsPerChunk) * sizeof(std::uint32_t);
    const Bytes key = label_counts_key(chunk);
    const Result<std::optional<Bytes>> record = store.get(Table::kRun, key);
    if (!record) return record.error();
    if (!record->has_value()) return corrupt_record(Table::kRun, key, "it is missing");
    const Result<ByteView> payload = open_record(Table::kRun, key, **record);
    if (!payload) return payload.error();
    if (payload->size() != bytes) {
      return corrupt_record(Table::kRun, key, "it does not have one count a label");
    }
    std::memcpy(counts.data() + first, payload->data(), bytes);
  }
  return counts;
}

// The record under a word, which a run always has.
template <typename Decode>
auto read_word(Store& store, std::string_view word, const Decode& decode)
    -> Result<typename decltype(decode(word))::value_type> {
  const Result<std::optional<std::string>> text = get_text(store, Table::kRun, as_bytes(word));
  if (!text) return text.error();
  if (!text->has_value()) return corrupt_record(Table::kRun, as_bytes(word), "it is missing");
  auto record = decode(**text);
  if (!record) {
    return corrupt_record(Table::kRun, as_bytes(word), "it is not the expected record");
  }
  return std::move(*record);
}

Result<bool> is_empty(Store& store) {
  bool has_any = false;
  for (std::size_t table = 0; table < kTableCount && !has_any; ++table) {
    auto scanned = store.scan(static_cast<Table>(table), {}, {}, [&](ByteView, ByteView) {
      has_any = true;
      return false;
    });
    if (!scanned) return scanned.error();
  }
  return !has_any;
}

Result<StoredRun> read_run(Store& store) {
  const Result<IdentityRecord> identity =
      read_word(store, kIdentityKey, decode_record<IdentityRecord>);
  if (!identity) return identity.error();
  if (identity->store_version != kStoreVersion) {
    return Error{ErrorCode::kVersion,
                 fmt::format("the store has version {}, and this program reads version {}: use "
                             "the version of Gleaner that wrote it",
                             identity->store_version, kStoreVersion)};
  }
  StoredRun run;
  const Result<ModelConfig> model = model_from_fields(identity->model);
  if (!model) return model.error();
  run.identity.model = *model;
  auto settings = read_word(store, kSettingsKey, decode_settings);
  if (!settings) return settings.error();
  run.identity.settings = std::move(*settings);
  const Result<ProgressRecord> progress =
      read_word(store, kProgressKey, decode_record<ProgressRecord>);
  if (!progress) return progress.error();
  run.progress = *progress;
  if (!is_possible(run.progress, run.identity.model)) {
    return corrupt_record(Table::kRun, as_bytes(kProgressKey), "it does not fit the run's plan");
  }
  auto counts = read_label_counts(store, run.identity.model.labels);
  if (!counts) return counts.error();
  run.label_counts = std::move(*counts);
  return run;
}

// Puts the rows a run begins with, and their shards' digests.
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

// The bytes that creating the run writes, at most.
std::uint64_t creation_bytes(const ModelConfig& model) {
  std::uint64_t bytes = std::uint64_t{model.labels} * sizeof(std::uint32_t);
  if (!begins_with_rows(model)) return bytes;
  const ShardMap map(model);
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    bytes += map.row_count(ShardId{s}) * row_bytes(map, ShardId{s});
  }
  return bytes;
}

// In one batch, so that there is a whole run or none.
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
    put =
        put_text(**writer, Table::kRun, as_bytes(kSettingsKey), encode_settings(identity.settings));
  }
  if (put && has_rows) put = put_initial_rows(store, **writer, identity.model, initial_rows);
  if (put) put = (*writer)->finish();
  return put;
}

std::string join(const std::vector<std::string>& clauses) {
  std::string text;
  for (const std::string& clause : clauses) {
    if (!text.empty()) text += "; ";
    text += clause;
  }
  return text;
}

// Lets a run that agrees with the stored one go on in it, with the epochs and settings of today.
Result<void> resume_run(Store& store, StoredRun& run, const RunIdentity& wanted,
                        const std::vector<std::uint32_t>& label_counts) {
  const std::vector<std::string> clauses = identity_differences(wanted, run.identity);
  if (!clauses.empty()) {
    return Error{ErrorCode::kIdentity,
                 fmt::format("the store holds another run: {}; name another --store, or use the "
                             "stored values",
                             join(clauses))};
  }
  if (auto same = check_test_file(wanted, run.identity); !same) return same;
  if (label_counts != run.label_counts) {
    return Error{ErrorCode::kIdentity,
                 "the store holds another run: the training file counts its labels differently; "
                 "name another --store, or train on the file the store was made for"};
  }
  RunIdentity merged = wanted;
  merged.settings.insert(run.identity.settings.begin(), run.identity.settings.end());
  if (merged.model == run.identity.model && merged.settings == run.identity.settings) return {};
  run.identity = std::move(merged);
  WriteBatch batch;
  put_text(batch, Table::kRun, as_bytes(kIdentityKey), encode_record(record_of(run.identity)));
  put_text(batch, Table::kRun, as_bytes(kSettingsKey), encode_settings(run.identity.settings));
  return store.write(std::move(batch), Durability::kSync);
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::create_or_open(std::unique_ptr<Store> store,
                                                           const RunIdentity& identity,
                                                           std::vector<std::uint32_t> label_counts,
                                                           const InitialRows& initial_rows) {
  if (auto valid = validate(identity.model); !valid) return valid.error();
  if (label_counts.size() != identity.model.labels) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there are {} label counts for {} labels", label_counts.size(),
                             identity.model.labels)};
  }
  const Result<bool> is_new = is_empty(*store);
  if (!is_new) return is_new.error();
  if (*is_new) {
    if (auto made = create_run(*store, identity, label_counts, initial_rows); !made) {
      return made.error();
    }
    return std::unique_ptr<RunStore>(new RunStore(std::make_unique<Impl>(
        std::move(store), identity, std::move(label_counts), ProgressRecord{})));
  }
  Result<StoredRun> run = read_run(*store);
  if (!run) return run.error();
  if (auto resumed = resume_run(*store, *run, identity, label_counts); !resumed) {
    return resumed.error();
  }
  return std::unique_ptr<RunStore>(
      new RunStore(std::make_unique<Impl>(std::move(store), std::move(run->identity),
                                          std::move(run->label_counts), std::move(run->progress))));
}

Result<std::unique_ptr<RunStore>> RunStore::open(std::unique_ptr<Store> store) {
  const Result<bool> empty = is_empty(*store);
  if (!empty) return empty.error();
  if (*empty) {
    return Error{ErrorCode::kNotFound, "the store holds no run yet: start gleaner-master on it"};
  }
  Result<StoredRun> run = read_run(*store);
  if (!run) return run.error();
  return std::unique_ptr<RunStore>(
      new RunStore(std::make_unique<Impl>(std::move(store), std::move(run->identity),
                                          std::move(run->label_counts), std::move(run->progress))));
}

}  // namespace gleaner
