#include "tests/unit/tools/store_damage.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/tools/sound_run.hpp"

namespace gleaner::test {
namespace {

// Adds the kinds of damage that the bytes of any record can take.
void add_record_kinds(std::vector<Kind>& kinds, Table table, const Bytes& key, const Bytes& other) {
  const auto add = [&](const std::string& what, std::function<void(Bytes&)> change) {
    kinds.push_back({std::string(table_name(table)) + ": " + what, [=](Patient& patient) {
                       Bytes record = patient.record(table, key);
                       change(record);
                       patient.put(table, key, record);
                     }});
  };
  add("bit of the version", [](Bytes& r) { r[0] ^= 4; });
  add("bit of the first byte", [](Bytes& r) { r[1] ^= 1; });
  add("bit in the middle", [](Bytes& r) { r[r.size() / 2] ^= 16; });
  add("bit of the last byte", [](Bytes& r) { r[r.size() - 9] ^= 128; });
  add("bit of the checksum", [](Bytes& r) { r.back() ^= 8; });
  add("a byte short", [](Bytes& r) { r.pop_back(); });
  add("cut in half", [](Bytes& r) { r.resize(r.size() / 2); });
  add("empty", [](Bytes& r) { r.clear(); });
  add("a byte more", [](Bytes& r) { r.push_back(0); });
  add("zeros", [](Bytes& r) { std::ranges::fill(r, std::uint8_t{0}); });
  kinds.push_back({std::string(table_name(table)) + ": missing",
                   [=](Patient& patient) { patient.erase(table, key); }});
  kinds.push_back({std::string(table_name(table)) + ": under another key", [=](Patient& patient) {
                     const Bytes record = patient.record(table, key);
                     patient.put(table, key, patient.record(table, other));
                     patient.put(table, other, record);
                   }});
  kinds.push_back({std::string(table_name(table)) + ": of another table", [=](Patient& patient) {
                     const Table from = table == Table::kRun ? Table::kHistory : Table::kRun;
                     patient.put(table, key, entries(patient.disk(), from).begin()->second);
                   }});
}

// Records that are whole, and wrong.
void add_sealed(std::vector<Kind>& kinds, const char* name, Table table, const Bytes& key,
                const std::function<void(Bytes&)>& change) {
  kinds.push_back({name, [=](Patient& patient) {
                     Bytes payload = patient.payload(table, key);
                     change(payload);
                     patient.reseal(table, key, payload);
                   }});
}

void add_text(std::vector<Kind>& kinds, const char* name, Table table, const Bytes& key,
              const std::string& text) {
  kinds.push_back({name, [=](Patient& patient) { patient.reseal(table, key, text); }});
}

void set_float(Bytes& payload, std::size_t index, float value) {
  std::memcpy(payload.data() + index * sizeof value, &value, sizeof value);
}

void add_row_kinds(std::vector<Kind>& kinds, const Places& at) {
  const auto add = [&](const char* name, const std::function<void(Bytes&)>& change) {
    add_sealed(kinds, name, Table::kRows, at.row, change);
  };
  add("rows: sealed, one bit", [](Bytes& p) { p[3] ^= 1; });
  add("rows: sealed, not a number",
      [](Bytes& p) { set_float(p, 2, std::numeric_limits<float>::quiet_NaN()); });
  add("rows: sealed, infinite",
      [](Bytes& p) { set_float(p, 0, std::numeric_limits<float>::infinity()); });
  add("rows: sealed, huge", [](Bytes& p) { set_float(p, 1, 1e30F); });
  add("rows: sealed, negative state", [](Bytes& p) { set_float(p, p.size() / 4 - 1, -1); });
  add("rows: sealed, too narrow", [](Bytes& p) { p.erase(p.end() - 4, p.end()); });
  add("rows: sealed, too wide", [](Bytes& p) { p.resize(p.size() + 4); });
  add("rows: sealed, empty", [](Bytes& p) { p.clear(); });
  const auto swap = [](Table table, Bytes one, Bytes two) {
    return [=](Patient& patient) {
      const Bytes first = patient.payload(table, one);
      patient.reseal(table, one, patient.payload(table, two));
      patient.reseal(table, two, first);
    };
  };
  kinds.push_back({"rows: sealed, two swapped", swap(Table::kRows, at.row, at.other_row)});
  kinds.push_back({"rows: sealed, two shards swapped", swap(Table::kRows, at.row, at.foreign_row)});
  kinds.push_back({"rows and codes: sealed, two swapped", [=](Patient& patient) {
                     swap(Table::kRows, at.row, at.other_row)(patient);
                     swap(Table::kCodes, at.row, at.other_row)(patient);
                   }});
  kinds.push_back({"codes: sealed, two swapped", swap(Table::kCodes, at.row, at.other_row)});
  kinds.push_back({"rows and codes: missing", [=](Patient& patient) {
                     patient.erase(Table::kRows, at.row);
                     patient.erase(Table::kCodes, at.row);
                   }});
  kinds.push_back({"rows: of the checkpoint before", [=](Patient& patient) {
                     // A row that the last round has changed.
                     auto before = healthy(1, kDamageCheckpoint - 1).copy();
                     for (const auto& [key, record] : entries(*before, Table::kRows)) {
                       if (patient.record(Table::kRows, key) == record) continue;
                       patient.put(Table::kRows, key, record);
                       return;
                     }
                     FAIL("the last round changed nothing");
                   }});
  kinds.push_back({"rows: an input row missing",
                   [=](Patient& patient) { patient.erase(Table::kRows, at.input_row); }});
  for (const Table table : {Table::kRows, Table::kCodes}) {
    const std::string name = table_name(table);
    const auto extra = [=, &kinds](const std::string& what, const Bytes& key) {
      kinds.push_back({name + what, [=](Patient& patient) {
                         patient.reseal(table, key, patient.payload(table, at.row));
                       }});
    };
    extra(": a row beyond the shard", bytes_of(encode_row_key({ShardId{0}, 4000})));
    extra(": a shard beyond the run", bytes_of(encode_row_key({ShardId{99}, 0})));
    Bytes longer = at.row;
    longer.push_back(7);
    extra(": a longer key", longer);
    extra(": a shorter key", {0, 0, 0});
  }
  const auto codes = [&](const char* what, const std::function<void(Bytes&)>& change) {
    add_sealed(kinds, what, Table::kCodes, at.row, change);
  };
  codes("codes: sealed, one bit", [](Bytes& p) { p[1] ^= 1; });
  codes("codes: sealed, no such bucket", [](Bytes& p) { p[2] = 0xff; });
  codes("codes: sealed, no width", [](Bytes& p) { p[0] = 0; });
  codes("codes: sealed, width of five", [](Bytes& p) { p[0] = 5; });
  codes("codes: sealed, a table short", [](Bytes& p) { p.erase(p.end() - 2, p.end()); });
  codes("codes: sealed, empty", [](Bytes& p) { p.clear(); });
  kinds.push_back({"codes: of an input shard", [=](Patient& patient) {
                     patient.reseal(Table::kCodes, at.input_row,
                                    patient.payload(Table::kCodes, at.row));
                   }});
  kinds.push_back({"codes: of a row that is not stored", [=](Patient& patient) {
                     const Entries rows = entries(patient.disk(), Table::kRows);
                     for (std::uint32_t row = 0; row < 7; ++row) {
                       const Bytes key = bytes_of(encode_row_key({ShardId{0}, row}));
                       if (rows.contains(key) && key != at.row) continue;
                       if (rows.contains(key)) patient.erase(Table::kRows, key);
                       patient.reseal(Table::kCodes, key, patient.payload(Table::kCodes, at.row));
                       return;
                     }
                   }});
}

void add_run_kinds(std::vector<Kind>& kinds) {
  const Bytes identity = word(kIdentityKey);
  const Bytes settings = word(kSettingsKey);
  const Bytes progress = word(kProgressKey);
  for (const Bytes& key : {settings, progress, label_counts_key(0), shard_digest_key(ShardId{1})}) {
    kinds.push_back({"run: missing " + std::string(key.begin(), key.end() - 1),
                     [=](Patient& patient) { patient.erase(Table::kRun, key); }});
    kinds.push_back(
        {"run: bit in " + std::string(key.begin(), key.end() - 1), [=](Patient& patient) {
           Bytes record = patient.record(Table::kRun, key);
           record[record.size() / 3] ^= 2;
           patient.put(Table::kRun, key, record);
         }});
  }
  for (const Bytes& key : {identity, settings, progress, shard_digest_key(ShardId{1})}) {
    kinds.push_back({"run: not JSON, " + std::string(key.begin(), key.end() - 1),
                     [=](Patient& patient) { patient.reseal(Table::kRun, key, "{\"checkpo"); }});
    kinds.push_back(
        {"run: of another run, " + std::string(key.begin(), key.end() - 1), [=](Patient& patient) {
           auto foreign = healthy(2, kDamageCheckpoint - 1).copy();
           const auto record = test::require_value(foreign->get(Table::kRun, key));
           patient.put(Table::kRun, key, record.value());
         }});
  }
  const auto replace = [&](const char* name, const Bytes& key, const std::string& from,
                           const std::string& to) {
    kinds.push_back({name, [=](Patient& patient) {
                       const Bytes payload = patient.payload(Table::kRun, key);
                       std::string text(payload.begin(), payload.end());
                       const std::size_t place = text.find(from);
                       REQUIRE(place != std::string::npos);
                       text.replace(place, from.size(), to);
                       patient.reseal(Table::kRun, key, text);
                     }});
  };
  replace("run: store of another version", identity, "\"store_version\":", "\"store_version\":7");
  replace("run: another seed", identity, "\"seed\":\"1\"", "\"seed\":\"5\"");
  replace("run: a field that cannot be", identity, "\"hidden\":\"32\"", "\"hidden\":\"31\"");
  replace("run: a field nobody knows", identity, "\"hidden\"", "\"hiddem\"");
  replace("run: more hidden units", identity, "\"hidden\":\"32\"", "\"hidden\":\"64\"");
  replace("run: another rate in the settings", settings, "\"model.output_rate\":\"",
          "\"model.output_rate\":\"1");
  add_text(kinds, "run: progress beyond the plan", Table::kRun, progress,
           R"({"checkpoint":99,"batches":9})");
  add_text(kinds, "run: progress of other batches", Table::kRun, progress,
           R"({"checkpoint":3,"batches":8})");
  add_text(kinds, "run: progress one back", Table::kRun, progress,
           R"({"checkpoint":2,"batches":6})");
  add_text(kinds, "run: a word nobody knows", Table::kRun, word("identitx"), "{}");
  add_text(kinds, "run: a digest of no shard", Table::kRun, shard_digest_key(ShardId{17}),
           R"({"rows":1,"sum":2})");
  add_text(kinds, "run: another digest", Table::kRun, shard_digest_key(ShardId{0}),
           R"({"rows":5,"sum":2})");
  add_sealed(kinds, "run: a label count short", Table::kRun, label_counts_key(0),
             [](Bytes& p) { p.erase(p.end() - 4, p.end()); });
  add_sealed(kinds, "run: more points of a label than there are", Table::kRun, label_counts_key(0),
             [](Bytes& p) { p[3] = 1; });
}

void add_other_kinds(std::vector<Kind>& kinds, const Places& at) {
  const auto staged = [&](const char* name, const std::function<void(Bytes&)>& change) {
    add_sealed(kinds, name, Table::kStaged, at.staged, change);
  };
  staged("staged: sealed, more parts", [](Bytes& p) { p[0] = 9; });
  staged("staged: sealed, no parts", [](Bytes& p) { p[0] = 0; });
  staged("staged: sealed, other rows in its header", [](Bytes& p) { p[4] ^= 1; });
  staged("staged: sealed, cut in the header", [](Bytes& p) { p.resize(10); });
  staged("staged: sealed, cut in the update", [](Bytes& p) { p.resize(p.size() / 2); });
  staged("staged: sealed, noise", [](Bytes& p) {
    for (std::size_t i = 16; i < p.size(); ++i) p[i] = static_cast<std::uint8_t>(37 * i);
  });
  kinds.push_back({"staged: sealed, two parts swapped", [=](Patient& patient) {
                     const Bytes first = patient.payload(Table::kStaged, at.staged);
                     patient.reseal(Table::kStaged, at.staged,
                                    patient.payload(Table::kStaged, at.staged_last));
                     patient.reseal(Table::kStaged, at.staged_last, first);
                   }});
  const auto move = [&](const char* name, const StagedKey& key) {
    kinds.push_back({name, [=](Patient& patient) {
                       patient.reseal(Table::kStaged, bytes_of(encode_staged_key(key)),
                                      patient.payload(Table::kStaged, at.staged));
                     }});
  };
  move("staged: for a round far ahead", {kDamageCheckpoint + 4, ShardId{2}, 0});
  move("staged: for a round beyond the run", {1000, ShardId{2}, 0});
  move("staged: for another shard", {kDamageCheckpoint, ShardId{4}, 0});
  move("staged: for a shard beyond the run", {kDamageCheckpoint, ShardId{40}, 0});
  move("staged: one part too many", {kDamageCheckpoint, ShardId{2}, 7});
  kinds.push_back({"staged: a key of another length", [=](Patient& patient) {
                     patient.reseal(Table::kStaged, {0, 0, 0, 3, 0},
                                    patient.payload(Table::kStaged, at.staged));
                   }});
  kinds.push_back({"staged: settled without its last part",
                   [=](Patient& patient) { patient.erase(Table::kStaged, at.staged_last); }});
  add_text(kinds, "staged: settled, and not there", Table::kStaged,
           bytes_of(encode_staged_key({kDamageCheckpoint + 1, ShardId{2}, kSettledPart})), "{}");
  add_text(kinds, "staged: a settled record that is no JSON", Table::kStaged, at.settled, "2");
  add_text(kinds, "staged: a settled record of nobody", Table::kStaged, at.settled,
           R"({"verdict":"holy"})");
  const Bytes& history = at.history;
  add_text(kinds, "history: not JSON", Table::kHistory, history, "checkpoint 2");
  add_text(kinds, "history: of another checkpoint", Table::kHistory, history,
           R"({"checkpoint":3,"batches":9})");
  add_text(kinds, "history: other batches", Table::kHistory, history,
           R"({"checkpoint":2,"batches":7})");
  add_text(kinds, "history: precision above one", Table::kHistory, history,
           R"({"checkpoint":2,"batches":6,"p_at_3":1.5})");
  add_text(kinds, "history: a rate cut that never was", Table::kHistory, history,
           R"({"checkpoint":2,"batches":6,"rate_cuts":1})");
  add_text(kinds, "run: a rate cut within a round", Table::kRun, word(kProgressKey),
           R"({"checkpoint":3,"batches":9,"rate_cuts":[4]})");
  add_text(kinds, "run: a rate cut of the future", Table::kRun, word(kProgressKey),
           R"({"checkpoint":3,"batches":9,"rate_cuts":[12]})");
  add_text(kinds, "run: rate cuts in no order", Table::kRun, word(kProgressKey),
           R"({"checkpoint":3,"batches":9,"rate_cuts":[6,3]})");
  kinds.push_back({"history: the digest of other rows", [=](Patient& patient) {
                     const Bytes payload = patient.payload(Table::kHistory, at.other_history);
                     auto record = decode_record<RoundRecord>(as_text(payload));
                     record.value().rows_digest += 1;
                     patient.reseal(Table::kHistory, at.other_history, encode_record(*record));
                   }});
  add_text(kinds, "history: of the future", Table::kHistory, bytes_of(encode_history_key(4)),
           R"({"checkpoint":4,"batches":11})");
  add_text(kinds, "history: of checkpoint 0", Table::kHistory, bytes_of(encode_history_key(0)),
           R"({"checkpoint":0,"batches":0})");
  add_text(kinds, "history: a key of another length", Table::kHistory, {1, 2, 3},
           R"({"checkpoint":1})");
  add_text(kinds, "ledger: not JSON", Table::kLedger, at.account, "atlas");
  add_text(kinds, "ledger: more answered than sent", Table::kLedger, at.account,
           R"({"name":"atlas","units":13,"units_issued":12})");
  add_text(kinds, "ledger: more ended than sent", Table::kLedger, at.account,
           R"({"name":"atlas","units":9,"units_expired":4,"units_issued":12})");
  add_text(kinds, "ledger: sums that run over", Table::kLedger, at.account,
           R"({"units":18446744073709551615,"units_refused":9,"units_issued":12})");
  add_text(kinds, "ledger: negative units", Table::kLedger, at.account, R"({"units":-1})");
  add_text(kinds, "ledger: more bytes of commits than of all", Table::kLedger, at.account,
           R"({"bytes_up":7,"unit_bytes_up":4,"commit_bytes_up":4})");
  add_text(kinds, "ledger: epochs from 0", Table::kLedger, at.epochs, R"({"next":0})");
  add_text(kinds, "ledger: epochs that are no number", Table::kLedger, at.epochs,
           R"({"next":"x"})");
  const Bytes receipts = bytes_of(encode_receipts_key(1));
  add_text(kinds, "ledger: receipts that are no list", Table::kLedger, receipts, R"({"shard":0})");
  add_text(kinds, "ledger: receipts of some shards", Table::kLedger, receipts,
           R"({"people":[{}],"shards":[[0,0,1,1],[4,0,1,1]]})");
  add_text(kinds, "ledger: receipts out of order", Table::kLedger, receipts,
           R"({"people":[{}],"shards":[[0,0,1,1],[2,0,1,1],[1,0,1,1],[3,0,1,1],[4,0,1,1]]})");
  add_text(kinds, "ledger: receipts of nobody", Table::kLedger, receipts,
           R"({"people":[{}],"shards":[[0,0,1,1],[1,0,1,1],[2,1,1,1],[3,0,1,1],[4,0,1,1]]})");
  add_text(kinds, "ledger: receipts of a round beyond the run", Table::kLedger,
           bytes_of(encode_receipts_key(4'000'000)), R"({"people":[],"shards":[]})");
  add_text(kinds, "ledger: a key nobody knows", Table::kLedger, {9, 9}, "{}");
}

}  // namespace

const MemoryStore& healthy(std::uint64_t seed, RoundIndex checkpoint) {
  static std::map<std::pair<std::uint64_t, RoundIndex>, std::unique_ptr<MemoryStore>> made;
  auto& disk = made[{seed, checkpoint}];
  if (disk == nullptr) {
    disk = std::make_unique<MemoryStore>();
    require_ok(test::make_sound_run(disk->share(), checkpoint, seed));
  }
  return *disk;
}

Entries entries(Store& store, Table table) {
  Entries all;
  require_ok(store.scan(table, {}, {}, [&](ByteView key, ByteView value) {
    all.emplace(Bytes(key.begin(), key.end()), Bytes(value.begin(), value.end()));
    return true;
  }));
  return all;
}

Places places() {
  Places found;
  Patient patient;
  for (const auto& [key, value] : entries(patient.disk(), Table::kRows)) {
    const RowKey row = decode_row_key(key).value();
    if (raw(row.shard) == 0) found.row.empty() ? found.row = key : found.other_row = key;
    if (raw(row.shard) == 1) found.foreign_row = key;
    if (raw(row.shard) == 3) found.input_row = key;
  }
  for (const auto& [key, value] : entries(patient.disk(), Table::kStaged)) {
    const StagedKey part = decode_staged_key(key).value();
    if (raw(part.shard) != 2) continue;
    if (part.part == kSettledPart) {
      found.settled = key;
    } else {
      (part.part == 0 ? found.staged : found.staged_last) = key;
    }
  }
  return found;
}

std::vector<Kind> all_kinds() {
  const Places at = places();
  std::vector<Kind> kinds;
  add_record_kinds(kinds, Table::kRows, at.row, at.other_row);
  add_record_kinds(kinds, Table::kCodes, at.row, at.other_row);
  add_record_kinds(kinds, Table::kStaged, at.staged, at.staged_last);
  add_record_kinds(kinds, Table::kHistory, at.history, at.other_history);
  add_record_kinds(kinds, Table::kLedger, at.epochs, at.account);
  add_record_kinds(kinds, Table::kRun, word(kIdentityKey), word(kSettingsKey));
  add_row_kinds(kinds, at);
  add_run_kinds(kinds);
  add_other_kinds(kinds, at);
  for (const Table table : {Table::kRows, Table::kCodes}) {
    kinds.push_back(
        {std::string(table_name(table)) + ": all of a foreign run's", [=](Patient& patient) {
           auto foreign = healthy(2, kDamageCheckpoint).copy();
           for (const auto& [key, record] : entries(*foreign, table)) {
             patient.put(table, key, record);
           }
         }});
  }
  return kinds;
}

}  // namespace gleaner::test
