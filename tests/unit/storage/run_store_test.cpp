#include "storage/run_store.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "common/model/run_plan.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/sim_hash.hpp"
#include "schema/versions.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/keys.hpp"
#include "storage/record.hpp"
#include "storage/run_records.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::make_history;
using test::make_update;
using test::open_small;
using test::require_ok;
using test::require_value;
using test::small_identity;
using test::small_label_counts;

ShardRows all_rows(RunStore& run, ShardId shard, RoundIndex base_round) {
  return require_value(run.read_rows(shard, 0, run.shard_map().row_count(shard), base_round));
}

TEST_CASE("run store: a new run is at checkpoint 0 and found again", "[storage]") {
  const MemoryStore disk;
  check_error(RunStore::open(disk.share()), ErrorCode::kNotFound, "no run yet");
  {
    const auto run = open_small(disk);
    CHECK(run->checkpoint() == 0);
    CHECK(require_value(run->history()).empty());
    CHECK(all_rows(*run, ShardId{0}, 0).rows.empty());
  }
  const auto run = require_value(RunStore::open(disk.share()));
  CHECK(run->checkpoint() == 0);
  CHECK(run->identity().model == small_identity().model);
  CHECK(run->identity().settings == small_identity().settings);
  const ShardMap& map = run->shard_map();
  for (std::uint32_t shard = 0; shard < map.output_shards(); ++shard) {
    const auto counts = run->label_counts(ShardId{shard});
    const NeuronRange neurons = map.neurons(ShardId{shard});
    REQUIRE(counts.size() == neurons.size());
    for (std::uint32_t i = 0; i < counts.size(); ++i) {
      CHECK(counts[i] ==
            small_label_counts(small_identity())[map.label_of_neuron(neurons.begin + i)]);
    }
  }
  CHECK(run->label_counts(map.input_shard(0)).empty());
}

TEST_CASE("run store: another run is refused with the differing keys", "[storage]") {
  const MemoryStore disk;
  open_small(disk);
  const std::uint64_t writes = disk.writes();
  RunIdentity other = small_identity();
  other.model.output_rate = 0.01F;
  check_error(RunStore::create_or_open(disk.share(), other, small_label_counts(other)),
              ErrorCode::kIdentity,
              "learning.output_rate is 0.01 here and 0.003 in the store; name another --store");
  other = small_identity();
  other.model.data_fingerprint = 5;
  check_error(RunStore::create_or_open(disk.share(), other, small_label_counts(other)),
              ErrorCode::kIdentity, "0000000000000005 here and 0123456789abcdef in the store");
  other = small_identity();
  auto counts = small_label_counts(other);
  ++counts[3];
  check_error(RunStore::create_or_open(disk.share(), other, counts), ErrorCode::kIdentity,
              "counts its labels differently");
  counts.pop_back();
  check_error(RunStore::create_or_open(disk.share(), other, counts), ErrorCode::kInvalidArgument,
              "22 label counts for 23 labels");
  CHECK(disk.writes() == writes);
}

TEST_CASE("run store: rows that an earlier version trained are read, and not trained on",
          "[storage]") {
  const MemoryStore disk;
  RunIdentity identity = small_identity();
  identity.model.hidden = 0;
  identity.model.wide_rows = 1;
  const auto counts = small_label_counts(identity);
  const auto no_rows = [](ShardId, std::uint32_t, std::uint32_t) { return Result(ShardRows{}); };
  CHECK(RunStore::create_or_open(disk.share(), identity, counts, no_rows).ok());
  CHECK(RunStore::create_or_open(disk.share(), identity, counts).ok());
  auto settings = require_value(RunStore::open(disk.share()))->identity().settings;
  REQUIRE(settings.at(kWideRuleKey) == kWideRule);
  for (const auto& rule : {"1", ""}) {
    settings[kWideRuleKey] = rule;
    if (*rule == 0) settings.erase(kWideRuleKey);
    const ByteView key = as_bytes(kSettingsKey);
    WriteBatch earlier;
    earlier.put(Table::kRun, key,
                seal_record(Table::kRun, key, as_bytes(encode_settings(settings))));
    require_ok(disk.share()->write(std::move(earlier), Durability::kSync));
    check_error(RunStore::create_or_open(disk.share(), identity, counts), ErrorCode::kVersion,
                "an earlier version");
    CHECK(require_value(RunStore::open(disk.share()))->checkpoint() == 0);
  }
}

TEST_CASE("run store: a run may go on for more epochs, which changes no digest", "[storage]") {
  const MemoryStore disk;
  std::string digest;
  {
    const auto run = open_small(disk);
    require_ok(test::train_to(*run, RunPlan(run->identity().model).round_count()));
    check_error(run->fold(run->checkpoint(), make_history(run->checkpoint() + 1)),
                ErrorCode::kInvalidArgument, "8 of the run's 8 rounds are");
    digest = require_value(run->checkpoint_digest());
  }
  RunIdentity longer = small_identity();
  longer.model.epochs = 3;
  {
    const auto run = open_small(disk, longer);
    CHECK(run->checkpoint() == 8);
    CHECK(require_value(run->checkpoint_digest()) == digest);
    require_ok(test::train_to(*run, 9));
    CHECK(require_value(run->checkpoint_digest()) != digest);
  }
  CHECK(require_value(RunStore::open(disk.share()))->identity().model.epochs == 3);
  check_error(RunStore::create_or_open(disk.share(), small_identity(),
                                       small_label_counts(small_identity())),
              ErrorCode::kIdentity, "epochs is 2 here and 3 in the store (it can only grow)");
}

TEST_CASE("run store: folding adds the deltas to the stored or initial values", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardMap& map = run->shard_map();
  require_ok(test::train_to(*run, 2));
  RowCodes row_codes(run->identity().model);
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::size_t width = map.row_width(shard);
    const SparseUpdate first = make_update(map, shard, 0);
    const SparseUpdate second = make_update(map, shard, 1);
    std::set<std::uint32_t> touched(first.rows.begin(), first.rows.end());
    touched.insert(second.rows.begin(), second.rows.end());
    const ShardRows rows = all_rows(*run, shard, 2);
    REQUIRE(rows.rows == std::vector<std::uint32_t>(touched.begin(), touched.end()));
    const auto counts = run->label_counts(shard);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const std::uint32_t row = rows.rows[i];
      std::vector<float> expected(width);
      initial_row(run->identity().model, map, shard, row, counts.empty() ? 0 : counts[row],
                  expected);
      float state = 0;
      for (const SparseUpdate* update : {&first, &second}) {
        for (std::size_t j = 0; j < update->rows.size(); ++j) {
          if (update->rows[j] != row) continue;
          add_row_delta(*update, j, expected);
          state = update->states[j];
        }
      }
      CHECK(std::vector<float>(
                rows.values.begin() + static_cast<std::ptrdiff_t>(i * width),
                rows.values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)) == expected);
      CHECK(rows.states[i] == state);
      const std::size_t tables = map.codes_per_row(shard);
      if (tables == 0) continue;
      const auto codes = row_codes.of(expected, width);
      CHECK(std::equal(codes.begin(), codes.end(),
                       rows.codes.begin() + static_cast<std::ptrdiff_t>(i * tables)));
    }
  }
}

TEST_CASE("run store: a shard's digest is that of its rows, at every checkpoint", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  for (RoundIndex checkpoint = 0; checkpoint <= 4; ++checkpoint) {
    require_ok(test::train_to(*run, checkpoint));
    const std::vector<ShardDigest> digests = require_value(run->shard_digests());
    REQUIRE(digests.size() == run->shard_map().shard_count());
    for (std::uint32_t shard = 0; shard < digests.size(); ++shard) {
      const ShardRows rows = all_rows(*run, ShardId{shard}, checkpoint);
      const std::size_t width = run->shard_map().row_width(ShardId{shard});
      ShardDigest expected{rows.rows.size(), 0};
      for (std::size_t i = 0; i < rows.rows.size(); ++i) {
        const auto values = std::span(rows.values).subspan(i * width, width);
        std::vector<float> floats(values.begin(), values.end());
        floats.push_back(rows.states[i]);
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(floats.data());
        expected.sum +=
            row_digest(ShardId{shard}, rows.rows[i], {bytes, floats.size() * sizeof(float)});
      }
      CHECK(digests[shard] == expected);
    }
  }
  // It does not depend on the process, nor on what is staged.
  require_ok(test::stage_round(*run, 4));
  const auto again = require_value(RunStore::open(disk.share()));
  CHECK(require_value(again->shard_digests()) == require_value(run->shard_digests()));
}

TEST_CASE("run store: staged rounds are read on top of the folded ones", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 1));
  require_ok(test::stage_round(*run, 1));
  require_ok(test::stage_round(*run, 2));
  std::vector<ShardRows> ahead;
  for (std::uint32_t shard = 0; shard < run->shard_map().shard_count(); ++shard) {
    ahead.push_back(all_rows(*run, ShardId{shard}, 3));
    CHECK_FALSE(ahead.back() == all_rows(*run, ShardId{shard}, 2));
    CHECK_FALSE(ahead.back() == all_rows(*run, ShardId{shard}, 1));
  }
  require_ok(run->fold(1, make_history(2)));
  require_ok(run->fold(2, make_history(3)));
  for (std::uint32_t s = 0; s < run->shard_map().shard_count(); ++s) {
    const ShardId shard{s};
    CHECK(ahead[s] == all_rows(*run, shard, 3));
    // In ranges it is the same.
    const std::uint32_t count = run->shard_map().row_count(shard);
    ShardRows pieces;
    for (std::uint32_t begin = 0; begin < count; begin += 3) {
      const ShardRows piece =
          require_value(run->read_rows(shard, begin, std::min(begin + 3, count), 3));
      pieces.rows.insert(pieces.rows.end(), piece.rows.begin(), piece.rows.end());
      pieces.values.insert(pieces.values.end(), piece.values.begin(), piece.values.end());
    }
    CHECK(pieces.rows == ahead[s].rows);
    CHECK(pieces.values == ahead[s].values);
  }
  check_error(run->read_rows(ShardId{0}, 0, 1, 2), ErrorCode::kNotFound, "checkpoint 2 is gone");
  check_error(run->read_rows(ShardId{0}, 0, 1, 4), ErrorCode::kNotFound,
              "shard 0 for round 3 is not staged");
  check_error(run->read_rows(ShardId{9}, 0, 1, 3), ErrorCode::kInvalidArgument, "shard 9");
  check_error(run->read_rows(ShardId{0}, 0, 100, 3), ErrorCode::kInvalidArgument, "100");
}

TEST_CASE("run store: staging is idempotent and refuses a different part", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardId shard{1};
  const SparseUpdate update = make_update(run->shard_map(), shard, 0);
  const auto parts = test::cut(run->shard_map(), shard, update, 2);
  require_ok(run->stage(0, shard, 1, 2, parts[1]));
  CHECK_FALSE(require_value(run->is_staged(0, shard)));
  const std::uint64_t writes = disk.writes();
  require_ok(run->stage(0, shard, 1, 2, parts[1]));
  CHECK(disk.writes() == writes);
  SparseUpdate other = parts[1];
  other.levels[0] = static_cast<std::int8_t>(other.levels[0] == 0 ? 1 : 0);
  check_error(run->stage(0, shard, 1, 2, other), ErrorCode::kFault,
              "part 1 of the commit of shard 1 for round 0 differs");
  check_error(run->stage(0, shard, 1, 3, parts[1]), ErrorCode::kFault, "differs");
  check_error(run->stage(0, shard, 2, 3, parts[0]), ErrorCode::kProtocol,
              "came in 2 parts and now has 3");
  check_error(run->stage(0, shard, 2, 2, parts[0]), ErrorCode::kProtocol, "part 2 of 2");
  check_error(run->stage(0, shard, 0, 0, parts[0]), ErrorCode::kProtocol, "part 0 of 0");
  require_ok(run->stage(0, shard, 0, 2, parts[0]));
  CHECK(require_value(run->is_staged(0, shard)));
  CHECK_FALSE(require_value(run->is_staged(1, shard)));
  CHECK_FALSE(require_value(run->is_staged(0, ShardId{0})));
}

TEST_CASE("run store: commits of a folded round are accepted and not written", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 1));
  const std::uint64_t writes = disk.writes();
  require_ok(run->stage(0, ShardId{0}, 0, 1, make_update(run->shard_map(), ShardId{0}, 0)));
  CHECK(disk.writes() == writes);
  CHECK(require_value(run->is_staged(0, ShardId{0})));
}

TEST_CASE("run store: updates that do not fit their shard are refused", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardId shard{0};
  const SparseUpdate good = make_update(run->shard_map(), shard, 0);
  REQUIRE(good.rows.size() >= 2);
  const std::uint64_t writes = disk.writes();
  const auto refused = [&](const char* sentence, const auto& change) {
    SparseUpdate update = good;
    change(update);
    check_error(run->stage(0, shard, 0, 1, update), ErrorCode::kProtocol, sentence);
  };
  refused("commit of shard 0 cannot be: the lists", [](SparseUpdate& u) { u.levels.pop_back(); });
  refused("optimizer state of 3e+38", [](SparseUpdate& u) { u.states[0] = 3e38F; });
  check_error(run->stage(0, ShardId{5}, 0, 1, good), ErrorCode::kProtocol, "shard 5");
  CHECK(disk.writes() == writes);
  CHECK_FALSE(require_value(run->is_staged(0, shard)));
  require_ok(run->stage(0, shard, 0, 1, good));
}

// As fold() has it, from the records of the shards.
std::uint64_t digest_of_rows(Store& store, std::uint32_t shards) {
  std::vector<ShardDigest> digests;
  for (std::uint32_t s = 0; s < shards; ++s) {
    const Bytes key = shard_digest_key(ShardId{s});
    const auto record = require_value(store.get(Table::kRun, key));
    const ByteView payload = require_value(open_record(Table::kRun, key, record.value()));
    digests.push_back(decode_record<ShardDigest>(as_text(payload)).value());
  }
  return rows_digest(digests);
}

TEST_CASE("run store: a round is folded once, in turn, and only whole", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  check_error(run->fold(1, make_history(2)), ErrorCode::kInvalidArgument, "round 1");
  const ShardMap& map = run->shard_map();
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    check_error(run->fold(0, make_history(1)), ErrorCode::kCorrupt,
                "shard " + std::to_string(s) + " is not staged");
    require_ok(run->stage(0, ShardId{s}, 0, 1, make_update(map, ShardId{s}, 0)));
  }
  check_error(run->fold(0, make_history(3)), ErrorCode::kInvalidArgument, "checkpoint 3");
  require_ok(run->fold(0, make_history(1)));
  CHECK(run->checkpoint() == 1);
  check_error(run->fold(0, make_history(1)), ErrorCode::kInvalidArgument, "round 0");
  RoundRecord expected = make_history(1);
  expected.rows_digest = digest_of_rows(*disk.share(), map.shard_count());
  CHECK(require_value(run->history()) == std::vector<RoundRecord>{expected});
  // Nothing staged is left behind.
  std::size_t staged = 0;
  require_ok(disk.share()->scan(Table::kStaged, {}, {}, [&](ByteView, ByteView) {
    ++staged;
    return true;
  }));
  CHECK(staged == 0);
}

TEST_CASE("run store: parts whose rows overlap are not folded", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardMap& map = run->shard_map();
  const SparseUpdate update = make_update(map, ShardId{0}, 0);
  require_ok(run->stage(0, ShardId{0}, 0, 2, update));
  require_ok(run->stage(0, ShardId{0}, 1, 2, update));
  for (std::uint32_t s = 1; s < map.shard_count(); ++s) {
    require_ok(run->stage(0, ShardId{s}, 0, 1, make_update(map, ShardId{s}, 0)));
  }
  check_error(run->fold(0, make_history(1)), ErrorCode::kCorrupt, "round 0, shard 0, part 1");
  CHECK(run->checkpoint() == 0);
}

TEST_CASE("run store: what is discarded can be staged again and differently", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::stage_round(*run, 0, 7));
  require_ok(run->discard_staged());
  for (std::uint32_t s = 0; s < run->shard_map().shard_count(); ++s) {
    CHECK_FALSE(require_value(run->is_staged(0, ShardId{s})));
  }
  const std::uint64_t writes = disk.writes();
  require_ok(run->discard_staged());
  CHECK(disk.writes() == writes);
  require_ok(test::train_to(*run, 1));

  const MemoryStore calm;
  const auto other = open_small(calm);
  require_ok(test::train_to(*other, 1));
  CHECK(require_value(run->checkpoint_digest()) == require_value(other->checkpoint_digest()));
}

TEST_CASE("run store: the digest depends on the model alone", "[storage]") {
  const auto digest_of = [](const RunIdentity& identity, std::uint64_t seed, RoundIndex to) {
    const MemoryStore disk;
    const auto run = open_small(disk, identity);
    require_ok(test::train_to(*run, to, seed));
    return require_value(run->checkpoint_digest());
  };
  const std::string digest = digest_of(small_identity(), 1, 2);
  CHECK(digest.size() == 64);
  CHECK(digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(digest_of(small_identity(), 1, 2) == digest);
  CHECK(digest_of(small_identity(), 2, 2) != digest);
  CHECK(digest_of(small_identity(), 1, 1) != digest);
  RunIdentity identity = small_identity();
  identity.settings["evaluation.every"] = "9";
  identity.model.epochs = 9;
  CHECK(digest_of(identity, 1, 2) == digest);
  identity.model.seed = 2;
  CHECK(digest_of(identity, 1, 2) != digest);
  identity = small_identity();
  identity.model.data_fingerprint ^= 1;
  CHECK(digest_of(identity, 1, 2) != digest);
  // Also where no row is stored yet.
  CHECK(digest_of(identity, 1, 0) != digest_of(small_identity(), 1, 0));

  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 2));
  require_ok(test::stage_round(*run, 2));
  require_ok(run->put_history(make_history(17)));
  AccountRecord account;
  account.name = "atlas";
  require_ok(run->put_accounts({account}));
  require_value(run->reserve_lease_epochs(5));
  CHECK(require_value(run->checkpoint_digest()) == digest);
  CHECK(require_value(require_value(RunStore::open(disk.share()))->checkpoint_digest()) == digest);
}

TEST_CASE("run store: a digest once published stays", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 2));
  CHECK(require_value(run->checkpoint_digest()) ==
        "4e816bcb7d47833f7e7330b87d172d6de192a366c61e65c5e632e4f22c93c91d");
}

}  // namespace
}  // namespace gleaner
