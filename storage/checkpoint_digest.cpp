// The digests of a checkpoint: of each shard, as a fold kept it, and of the whole, over all that is
// stored. README.md specifies the bytes; they are the content, so that another stored format keeps
// the digest.
#include <fmt/format.h>

#include <algorithm>

#include "common/access/sha256.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/run_plan.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// The stored rows of the output shards, to be compared with the entries of kCodes.
class RowPresence {
 public:
  explicit RowPresence(const ShardMap& map) {
    for (std::uint32_t shard = 0; shard < map.shard_count(); ++shard) {
      const bool has_codes = map.codes_per_row(ShardId{shard}) != 0;
      is_stored_.emplace_back(has_codes ? map.row_count(ShardId{shard}) : 0);
    }
  }

  void add(RowKey key) {
    std::vector<bool>& shard = is_stored_[raw(key.shard)];
    if (!shard.empty()) shard[key.row] = true;
  }

  // Returns false when the row is missing or was removed before.
  bool remove(RowKey key) {
    std::vector<bool>& shard = is_stored_[raw(key.shard)];
    if (shard.empty() || !shard[key.row]) return false;
    shard[key.row] = false;
    return true;
  }

  // A row that was added and not removed.
  [[nodiscard]] std::optional<RowKey> any() const {
    for (std::uint32_t shard = 0; shard < is_stored_.size(); ++shard) {
      const auto row = std::ranges::find(is_stored_[shard], true);
      if (row == is_stored_[shard].end()) continue;
      return RowKey{ShardId{shard}, static_cast<std::uint32_t>(row - is_stored_[shard].begin())};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::vector<bool>> is_stored_;
};

std::string describe_checkpoint(const ModelConfig& model, RoundIndex checkpoint,
                                const std::vector<BatchIndex>& rate_cuts) {
  std::string text = "gleaner checkpoint 1\n";
  for (const auto& [name, value] : model_fields(model)) {
    // The planned number of epochs does not belong to the state.
    if (name != "epochs") text += fmt::format("{}={}\n", name, value);
  }
  const BatchIndex batches = RunPlan(model).round_begin(checkpoint);
  text += fmt::format("checkpoint={}\nbatches={}\n", checkpoint, batches);
  for (const BatchIndex cut : rate_cuts) {
    if (cut < batches) text += fmt::format("rate_cut={}\n", cut);
  }
  return text;
}

}  // namespace

Result<ShardDigest> RunStore::Impl::read_digest(ShardId shard) {
  const Bytes key = shard_digest_key(shard);
  const Result<std::optional<std::string>> text = get_text(*store, Table::kRun, key);
  if (!text) return text.error();
  // A shard without a folded commit has no record.
  if (!text->has_value()) return ShardDigest{};
  const std::optional<ShardDigest> digest = decode_record<ShardDigest>(**text);
  if (!digest) return corrupt_record(Table::kRun, key, "it is not a shard's digest");
  return *digest;
}

Result<std::vector<ShardDigest>> RunStore::shard_digests() {
  std::vector<ShardDigest> digests;
  for (std::uint32_t shard = 0; shard < impl_->map.shard_count(); ++shard) {
    const Result<ShardDigest> digest = impl_->read_digest(ShardId{shard});
    if (!digest) return digest.error();
    digests.push_back(*digest);
  }
  return digests;
}

Result<std::string> model_name(RunStore& run) {
  const auto digests = run.shard_digests();
  if (!digests) return digests.error();
  return fmt::format("{}-{}-{:016x}", run_name(run.identity()), run.checkpoint(),
                     rows_digest(*digests));
}

Result<std::string> RunStore::checkpoint_digest() {
  Impl& run = *impl_;
  Sha256 sha;
  sha.update(as_bytes(describe_checkpoint(run.identity.model, run.checkpoint, run.rate_cuts)));

  std::vector<ShardDigest> seen(run.map.shard_count());
  RowPresence presence(run.map);
  sha.update(as_bytes("rows\n"));
  auto rows = run.rows.visit_rows([&](const RowTables::StoredRow& row) {
    sha.update(row.key_bytes);
    sha.update(row.values);
    ShardDigest& digest = seen[raw(row.key.shard)];
    ++digest.rows;
    digest.sum += row_digest(row.key.shard, row.key.row, row.values);
    presence.add(row.key);
    return Result<void>();
  });
  if (!rows) return rows.error();
  for (std::uint32_t shard = 0; shard < seen.size(); ++shard) {
    const Result<ShardDigest> expected = run.read_digest(ShardId{shard});
    if (!expected) return expected.error();
    if (*expected == seen[shard]) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("shard {} is damaged: it should have {} stored rows and has {}, or "
                             "some that are not the last folded ones; restore the store from a "
                             "copy or train again into an empty folder",
                             shard, expected->rows, seen[shard].rows)};
  }

  sha.update(as_bytes("codes\n"));
  auto codes = run.rows.visit_codes([&](RowKey key, std::span<const std::uint32_t> row_codes) {
    const RowKeyBytes key_bytes = encode_row_key(key);
    if (!presence.remove(key)) {
      return Result<void>(corrupt_record(Table::kCodes, key_bytes, "the row itself is missing"));
    }
    sha.update(key_bytes);
    sha.update({reinterpret_cast<const std::uint8_t*>(row_codes.data()), row_codes.size_bytes()});
    return Result<void>();
  });
  if (!codes) return codes.error();
  if (const std::optional<RowKey> missing = presence.any()) {
    return corrupt_record(Table::kCodes, encode_row_key(*missing), "it is missing");
  }
  return sha.finish();
}

}  // namespace gleaner
