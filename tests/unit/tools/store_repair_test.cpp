
#include <catch2/catch.hpp>

#include "common/model/run_plan.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/tools/sound_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

std::unique_ptr<MemoryStore> sound_store(RoundIndex checkpoint, std::uint64_t seed = 1) {
  auto disk = std::make_unique<MemoryStore>();
  require_ok(test::make_sound_run(disk->share(), checkpoint, seed));
  return disk;
}

std::string digest_of(const MemoryStore& disk) {
  return require_value(require_value(RunStore::open(disk.share()))->checkpoint_digest());
}

void flip(MemoryStore& disk, Table table, ByteView key) {
  Bytes record = require_value(disk.get(table, key)).value();
  record[record.size() / 2] ^= 1;
  WriteBatch batch;
  batch.put(table, key, record);
  require_ok(disk.write(std::move(batch), Durability::kSync));
}

void erase(MemoryStore& disk, Table table, ByteView key) {
  WriteBatch batch;
  batch.erase(table, key);
  require_ok(disk.write(std::move(batch), Durability::kSync));
}

std::vector<Bytes> keys_of(MemoryStore& disk, Table table) {
  std::vector<Bytes> keys;
  require_ok(disk.scan(table, {}, {}, [&](ByteView key, ByteView) {
    keys.emplace_back(key.begin(), key.end());
    return true;
  }));
  return keys;
}

bool is_whole(MemoryStore& disk) {
  Findings findings;
  check_store(disk, findings);
  for (const Finding& finding : findings.kept()) {
    UNSCOPED_INFO(finding.check << " | " << finding.where << " | " << finding.what);
  }
  return findings.count() == 0;
}

}  // namespace

TEST_CASE("repair: with a backup of the same checkpoint any one record is made good", "[repair]") {
  const auto backup = sound_store(3);
  const std::string digest = digest_of(*backup);
  for (std::size_t t = 0; t < kTableCount; ++t) {
    const auto table = static_cast<Table>(t);
    for (const Bytes& key : keys_of(*backup, table)) {
      INFO(table_name(table) << ", " << describe_key(table, key));
      const auto damaged = backup->copy();
      flip(*damaged, table, key);
      MemoryStore target;
      const RepairOutcome outcome = require_value(repair_store(*damaged, *backup, target));
      CHECK(outcome.lost.empty());
      CHECK(is_whole(target));
      CHECK(digest_of(target) == digest);
    }
  }
}

TEST_CASE("repair: without the progress, cuts of the rates are known from the history",
          "[repair]") {
  const auto damaged = sound_store(1);
  {
    const auto run = require_value(RunStore::open(damaged->share()));
    const RunPlan plan(run->identity().model);
    require_ok(run->cut_rates());
    require_ok(run->cut_rates());
    require_ok(test::stage_sound_round(*run, 1));
    RoundRecord record;
    record.checkpoint = 2;
    record.batches = plan.round_begin(2);
    require_ok(run->fold(1, record));
    REQUIRE(run->rate_cuts().size() == 2);
  }
  CHECK(is_whole(*damaged));
  const std::string digest = digest_of(*damaged);
  const auto backup = damaged->copy();
  erase(*damaged, Table::kRun, as_bytes(kProgressKey));
  MemoryStore target;
  require_value(repair_store(*damaged, *backup, target));
  CHECK(is_whole(target));
  CHECK(digest_of(target) == digest);
}

TEST_CASE("repair: rows and entries that are gone or old come back, and the report names them",
          "[repair]") {
  const auto backup = sound_store(3);
  const auto damaged = backup->copy();
  const std::vector<Bytes> rows = keys_of(*backup, Table::kRows);
  for (std::size_t i = 0; i < rows.size(); i += 3) erase(*damaged, Table::kRows, rows[i]);
  for (std::size_t i = 1; i < rows.size(); i += 3) flip(*damaged, Table::kRows, rows[i]);
  for (const Bytes& key : keys_of(*backup, Table::kCodes)) erase(*damaged, Table::kCodes, key);
  MemoryStore target;
  const RepairOutcome outcome = require_value(repair_store(*damaged, *backup, target));
  CHECK(outcome.lost.empty());
  CHECK(outcome.done.size() >= 5);
  CHECK(is_whole(target));
  CHECK(digest_of(target) == digest_of(*backup));
}

TEST_CASE("repair: entries and metrics need no backup of the same checkpoint", "[repair]") {
  const auto backup = sound_store(2);
  const auto damaged = sound_store(3);
  const std::string digest = digest_of(*damaged);
  for (const Bytes& key : keys_of(*damaged, Table::kCodes)) flip(*damaged, Table::kCodes, key);
  erase(*damaged, Table::kHistory, encode_history_key(3));
  erase(*damaged, Table::kRun, as_bytes(kSettingsKey));
  flip(*damaged, Table::kLedger, lease_epoch_key());
  MemoryStore target;
  const RepairOutcome outcome = require_value(repair_store(*damaged, *backup, target));
  CHECK(outcome.lost.empty());
  CHECK(is_whole(target));
  CHECK(digest_of(target) == digest);
  auto run = require_value(RunStore::open(target.share()));
  CHECK(require_value(run->history()).back().precision.p[0] < 0);
  // Beyond any that may have been handed out since the backup.
  CHECK(raw(require_value(run->reserve_lease_epochs(1))) > 65);
}

TEST_CASE("repair: rows of an older backup are taken only where they are still those", "[repair]") {
  const auto backup = sound_store(2);
  const auto healthy = sound_store(3);
  std::size_t same = 0;
  std::size_t other = 0;
  for (const Bytes& key : keys_of(*healthy, Table::kRows)) {
    INFO(describe_key(Table::kRows, key));
    const auto before = require_value(backup->get(Table::kRows, key));
    const bool is_same = before == require_value(healthy->get(Table::kRows, key));
    (is_same ? same : other) += 1;
    const auto damaged = healthy->copy();
    flip(*damaged, Table::kRows, key);
    MemoryStore target;
    const RepairOutcome outcome = require_value(repair_store(*damaged, *backup, target));
    CHECK(outcome.lost.empty() == is_same);
    if (is_same) CHECK(digest_of(target) == digest_of(*healthy));
  }
  CHECK(same > 0);
  CHECK(other > 0);
}

TEST_CASE("repair: a backup of another run, or a damaged one, is refused", "[repair]") {
  const auto damaged = sound_store(3);
  const auto foreign = sound_store(3, 2);
  MemoryStore target;
  test::check_error(repair_store(*damaged, *foreign, target), ErrorCode::kIdentity, "another run");
  const auto broken = damaged->copy();
  erase(*broken, Table::kRun, as_bytes(kProgressKey));
  test::check_error(repair_store(*damaged, *broken, target), ErrorCode::kCorrupt, "the backup");
}

}  // namespace gleaner
