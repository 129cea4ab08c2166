// Opens the run that a store holds, or makes it in an empty one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/model/model_fields.hpp"
#include "schema/versions.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// The content of table kRun, before it is compared with the requested identity.
struct StoredRun {
  RunIdentity identity;
  std::vector<std::uint32_t> label_counts;
  ProgressRecord progress;

  static Result<StoredRun> read(Store& store);
  // Continues this run, which agrees with `wanted`, with the epochs and settings of `wanted`.
  Result<void> resume(Store& store, const RunIdentity& wanted,
                      const std::vector<std::uint32_t>& counts);

 private:
  Result<void> read_label_counts(Store& store);
};

// Reads a record that every run has.
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

}  // namespace

Result<void> StoredRun::read_label_counts(Store& store) {
  const std::uint32_t labels = identity.model.labels;
  label_counts.resize(labels);
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
      return corrupt_record(Table::kRun, key, "it does not have one count per label");
    }
    std::memcpy(label_counts.data() + first, payload->data(), bytes);
  }
  return {};
}

Result<StoredRun> StoredRun::read(Store& store) {
  const Result<IdentityRecord> record =
      read_word(store, kIdentityKey, decode_record<IdentityRecord>);
  if (!record) return record.error();
  if (record->store_version != kStoreVersion) {
    return Error{ErrorCode::kVersion,
                 fmt::format("the store has version {}, and this program reads version {}: use "
                             "the version of Gleaner that wrote it",
                             record->store_version, kStoreVersion)};
  }
  StoredRun run;
  const Result<ModelConfig> model = model_from_fields(record->model);
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
  if (auto counts = run.read_label_counts(store); !counts) return counts.error();
  return run;
}

Result<void> StoredRun::resume(Store& store, const RunIdentity& wanted,
                               const std::vector<std::uint32_t>& counts) {
  if (auto trainable = check_trainable(identity); !trainable) return trainable;
  if (wanted.model.data_fingerprint != identity.model.data_fingerprint) {
    const std::string folder = data_folder(identity);
    return Error{ErrorCode::kIdentity,
                 fmt::format("the store holds another run, of other training data{} (fingerprint "
                             "{:016x} here and {:016x} in the store): name another --store",
                             folder.empty() ? "" : " from " + folder, wanted.model.data_fingerprint,
                             identity.model.data_fingerprint)};
  }
  const std::vector<std::string> clauses = identity_differences(wanted, identity);
  if (!clauses.empty()) {
    return Error{ErrorCode::kIdentity,
                 fmt::format("the store holds another run: {}; name another --store, or use the "
                             "stored values",
                             fmt::join(clauses, "; "))};
  }
  if (auto same = check_test_file(wanted, identity); !same) return same;
  if (counts != label_counts) {
    return Error{ErrorCode::kIdentity,
                 "the store holds another run: the training file counts its labels differently; "
                 "name another --store, or train on the file the store was made for"};
  }
  RunIdentity merged = wanted;
  merged.settings.insert(identity.settings.begin(), identity.settings.end());
  if (merged.model == identity.model && merged.settings == identity.settings) return {};
  identity = std::move(merged);
  WriteBatch batch;
  put_text(batch, Table::kRun, as_bytes(kIdentityKey), encode_record(record_of(identity)));
  put_text(batch, Table::kRun, as_bytes(kSettingsKey), encode_settings(identity.settings));
  return store.write(std::move(batch), Durability::kSync);
}

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
  Result<StoredRun> run = StoredRun::read(*store);
  if (!run) return run.error();
  if (auto resumed = run->resume(*store, identity, label_counts); !resumed) {
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
  Result<StoredRun> run = StoredRun::read(*store);
  if (!run) return run.error();
  return std::unique_ptr<RunStore>(
      new RunStore(std::make_unique<Impl>(std::move(store), std::move(run->identity),
                                          std::move(run->label_counts), std::move(run->progress))));
}

}  // namespace gleaner
