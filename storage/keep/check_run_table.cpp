// Checks the run's own table: what the run is and how far it got.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "common/model/model_fields.hpp"
#include "schema/versions.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

// Prefix of settings that repeat a field of the model.
constexpr std::string_view kModelSettings = "model.";
// Reads one key, shard or chunk at a time, so that an unreadable record does not hide the others.
constexpr std::uint8_t kKeyEnd = 0;

class RunCheck {
 public:
  RunCheck(Store& store, Findings& findings) : store_(store), findings_(findings) {}

  CheckedRun run();

 private:
  // The payload of the record; nullopt when it is missing or damaged.
  std::optional<Bytes> read(ByteView key, bool is_required);

  template <typename Decode>
  auto read_word(std::string_view word, const Decode& decode) -> decltype(decode(word)) {
    const std::optional<Bytes> payload = read(as_bytes(word), true);
    if (!payload) return std::nullopt;
    auto decoded = decode(as_text(*payload));
    if (!decoded) wrong(word, "it is not the expected record");
    return decoded;
  }

  void wrong(std::string_view word, std::string what) {
    findings_.add(Table::kRun, as_bytes(word), std::move(what));
  }

  void read_identity();
  void compare_settings();
  void read_progress();
  void read_fold();
  void read_label_counts();
  void read_digests();
  void refuse_unknown_keys();

  Store& store_;
  Findings& findings_;
  CheckedRun run_;
  std::set<Bytes> known_;
};

}  // namespace

std::optional<Bytes> RunCheck::read(ByteView key, bool is_required) {
  known_.emplace(key.begin(), key.end());
  Bytes after(key.begin(), key.end());
  after.push_back(kKeyEnd);
  std::optional<Bytes> found;
  const std::uint64_t before = findings_.count();
  walk_records(
      store_, Table::kRun, key, after, findings_,
      [&](ByteView, ByteView, ByteView payload) { found.emplace(payload.begin(), payload.end()); });
  if (!found && is_required && findings_.count() == before) {
    findings_.add(Table::kRun, key, "it is missing");
  }
  return found;
}

void RunCheck::read_identity() {
  const auto identity = read_word(kIdentityKey, decode_record<IdentityRecord>);
  if (!identity) return;
  if (identity->store_version != kStoreVersion) {
    wrong(kIdentityKey, fmt::format("the store has version {}, and this program reads version {}",
                                    identity->store_version, kStoreVersion));
    return;
  }
  const Result<ModelConfig> model = model_from_fields(identity->model);
  if (!model) {
    wrong(kIdentityKey, model.error().message);
    return;
  }
  if (auto valid = validate(*model); !valid) {
    wrong(kIdentityKey, valid.error().message);
    return;
  }
  run_.model = *model;
}

void RunCheck::compare_settings() {
  run_.settings = read_word(kSettingsKey, decode_settings);
  if (!run_.model || !run_.settings) return;
  for (const auto& [name, value] : model_fields(*run_.model)) {
    const auto setting = run_.settings->find(std::string(kModelSettings) + name);
    if (setting == run_.settings->end() || setting->second == value) continue;
    wrong(kIdentityKey, fmt::format("{} is {} there and {} in the settings: one of them is of "
                                    "another run",
                                    name, value, setting->second));
  }
}

void RunCheck::read_progress() {
  run_.progress = read_word(kProgressKey, decode_record<ProgressRecord>);
  if (!run_.model || !run_.progress) return;
  if (is_possible(*run_.progress, *run_.model)) return;
  wrong(kProgressKey, fmt::format("checkpoint {} with {} batches does not fit the run's plan, or "
                                  "the halvings of the rates do not",
                                  run_.progress->checkpoint, run_.progress->batches));
  run_.progress.reset();
}

void RunCheck::read_fold() {
  const std::optional<Bytes> payload = read(as_bytes(kFoldKey), false);
  if (!payload) return;
  const auto decided = decode_record<RoundRecord>(as_text(*payload));
  if (!decided) {
    wrong(kFoldKey, "it is not a history record");
  } else if (run_.progress && decided->checkpoint > run_.progress->checkpoint + 1) {
    wrong(kFoldKey, fmt::format("it is of checkpoint {}, and the run is at {}", decided->checkpoint,
                                run_.progress->checkpoint));
  }
}

void RunCheck::read_label_counts() {
  if (!run_.model) return;
  const std::uint32_t labels = run_.model->labels;
  std::vector<std::uint32_t> counts(labels);
  bool is_whole = true;
  for (std::uint32_t first = 0; first < labels; first += kLabelCountsPerChunk) {
    const Bytes key = label_counts_key(first / kLabelCountsPerChunk);
    const std::optional<Bytes> payload = read(key, true);
    const std::size_t own = std::min(labels - first, kLabelCountsPerChunk);
    is_whole &= payload.has_value();
    if (!payload) continue;
    if (payload->size() != own * sizeof(std::uint32_t)) {
      is_whole = false;
      findings_.add(Table::kRun, key, "it does not have one count per label");
      continue;
    }
    std::memcpy(counts.data() + first, payload->data(), payload->size());
    const auto last = counts.begin() + first + static_cast<std::ptrdiff_t>(own);
    if (*std::max_element(counts.begin() + first, last) <= run_.model->points) continue;
    is_whole = false;
    findings_.add(Table::kRun, key, "a label has more examples than the training file");
  }
  if (is_whole) run_.label_counts = std::move(counts);
}

void RunCheck::read_digests() {
  if (!run_.model) return;
  const ShardMap map(*run_.model);
  for (std::uint32_t shard = 0; shard < map.shard_count(); ++shard) {
    const Bytes key = shard_digest_key(ShardId{shard});
    const std::uint64_t before = findings_.count();
    const std::optional<Bytes> payload = read(key, false);
    std::optional<ShardDigest> digest;
    if (payload) {
      digest = decode_record<ShardDigest>(as_text(*payload));
      if (!digest) findings_.add(Table::kRun, key, "it is not a shard's digest");
    } else if (findings_.count() == before) {
      // Missing until a commit changes the shard; check_stored_rows() finds rows without a digest.
      digest = ShardDigest{};
    }
    run_.digests.push_back(digest);
  }
}

void RunCheck::refuse_unknown_keys() {
  if (!run_.model) return;
  const auto scanned = store_.scan(Table::kRun, {}, {}, [&](ByteView key, ByteView) {
    if (!known_.contains(Bytes(key.begin(), key.end()))) {
      findings_.add(Table::kRun, key, "the run has no such record");
    }
    return true;
  });
  // Damage was reported when it was read.
  static_cast<void>(scanned);
}

CheckedRun RunCheck::run() {
  read_identity();
  compare_settings();
  read_progress();
  read_fold();
  read_label_counts();
  read_digests();
  refuse_unknown_keys();
  return std::move(run_);
}

CheckedRun check_run_table(Store& store, Findings& findings) {
  return RunCheck(store, findings).run();
}

}  // namespace gleaner
