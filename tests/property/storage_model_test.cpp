// Random sequences of what a master does to a store, crashes among them, against an obvious model
// in memory: maps of rows, updated in plain loops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/counter_random.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/sim_hash.hpp"
#include "storage/engine/memory_store.hpp"
#include "tests/support/random_delta.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

std::uint64_t base_seed() {
  const char* text = std::getenv("GLEANER_SEED");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

struct Row {
  std::vector<float> values;
  float state = 0;
  std::vector<std::uint32_t> codes;
};

using Rows = std::map<std::uint32_t, Row>;

using Staged =
    std::map<std::pair<RoundIndex, std::uint32_t>, std::vector<std::optional<SparseUpdate>>>;

using Settled = std::set<std::pair<RoundIndex, std::uint32_t>>;

// The store, spelled out.
struct Model {
  std::vector<Rows> folded;  // by shard
  Staged staged;
  Staged durable;  // of it, what a loss of power leaves
  Settled settled;
  Settled durable_settled;
  RoundIndex checkpoint = 0;
};

class Scenario {
 public:
  explicit Scenario(std::uint64_t seed) : random_(seed, Purpose::kTest), seed_(seed) {
    identity_ = test::small_identity();
    identity_.model.seed = seed;
    identity_.model.labels = 3 + static_cast<std::uint32_t>(random_.next_below(60));
    identity_.model.features = 1 + static_cast<std::uint32_t>(random_.next_below(200));
    if (random_.chance(1, 4)) identity_.model.sampling = Sampling::kAll;
    identity_.model.hash_bits = 1 + static_cast<std::uint32_t>(random_.next_below(24));
    open();
    model_.folded.resize(run_->shard_map().shard_count());
  }

  void step() {
    switch (random_.next_below(10)) {
      case 0:
        return fold();
      case 1:
        return random_.chance(1, 4) ? discard() : fold();
      case 2:
        return random_.chance(1, 4) ? crash() : check_digest();
      case 3:
        return read();
      case 4:
        return settle();
      case 5:
        return random_.chance(1, 3) ? keep() : random_.chance(1, 3) ? drop() : settle();
      default:
        return stage();
    }
  }

  [[nodiscard]] RoundIndex checkpoint() const { return model_.checkpoint; }

 private:
  void open() {
    run_ = require_value(
        RunStore::create_or_open(disk_.share(), identity_, test::small_label_counts(identity_)));
  }

  ShardId some_shard() {
    return ShardId{static_cast<std::uint32_t>(random_.next_below(run_->shard_map().shard_count()))};
  }

  // Mostly dense, sometimes a few rows of many, sometimes none: each takes its own way in the
  // store.
  SparseUpdate some_update(ShardId shard) {
    const ShardMap& map = run_->shard_map();
    const std::uint64_t chance = random_.next_below(4) == 0 ? random_.next_below(3) : 50;
    SparseUpdate update;
    for (std::uint32_t row = 0; row < map.row_count(shard); ++row) {
      if (!random_.chance(chance, 100)) continue;
      update.rows.push_back(row);
      test::push_random_delta(update, map, shard, 1.0F, random_);
      update.states.push_back(static_cast<float>(random_.next_below(1000)));
    }
    return update;
  }

  void stage() {
    const RoundIndex round =
        model_.checkpoint +
        static_cast<RoundIndex>(random_.chance(1, 4) ? random_.next_below(3) : 0);
    // Shards that lack a commit first, so that rounds become whole.
    ShardId shard = some_shard();
    for (std::uint32_t s = 0; s < model_.folded.size(); ++s) {
      if (!model_.staged.contains({round, s}) && random_.chance(1, 2)) shard = ShardId{s};
    }
    auto& parts = model_.staged[{round, raw(shard)}];
    if (parts.empty()) {
      // No more than rows: a commit cannot have empty parts.
      const std::uint32_t most = std::min(3u, run_->shard_map().row_count(shard));
      const auto count = static_cast<std::uint32_t>(1 + random_.next_below(most));
      const auto pieces = test::cut(run_->shard_map(), shard, some_update(shard), count);
      parts.assign(pieces.begin(), pieces.end());
    }
    const auto count = static_cast<std::uint32_t>(parts.size());
    // In any order, with repetitions.
    for (std::uint32_t i = 0; i < count + random_.next_below(2); ++i) {
      const std::uint32_t part = (i + static_cast<std::uint32_t>(seed_)) % count;
      require_ok(run_->stage(round, shard, part, count, *parts[part]));
    }
    CHECK(require_value(run_->is_staged(round, shard)));
  }

  void apply(Rows& rows, ShardId shard, const SparseUpdate& update) {
    const ShardMap& map = run_->shard_map();
    const std::size_t width = map.row_width(shard);
    const auto counts = run_->label_counts(shard);
    RowCodes row_codes(identity_.model);
    for (std::size_t i = 0; i < update.rows.size(); ++i) {
      const std::uint32_t row = update.rows[i];
      if (!rows.contains(row)) {
        rows[row].values.resize(width);
        initial_row(identity_.model, map, shard, row, counts.empty() ? 0 : counts[row],
                    rows[row].values);
      }
      Row& target = rows[row];
      add_row_delta(update, i, target.values);
      target.state = update.states[i];
      if (map.codes_per_row(shard) == 0) continue;
      const auto codes = row_codes.of(target.values, width);
      target.codes.assign(codes.begin(), codes.end());
    }
  }

  [[nodiscard]] bool is_whole(RoundIndex round) const {
    for (std::uint32_t s = 0; s < model_.folded.size(); ++s) {
      if (!model_.staged.contains({round, s})) return false;
    }
    return true;
  }

  void fold() {
    const RoundIndex round = model_.checkpoint;
    const Result<void> folded = run_->fold(round, test::make_history(round + 1));
    const bool expected = is_whole(round) && round < RunPlan(identity_.model).round_count();
    CHECK(folded.ok() == expected);
    if (!expected) return;
    for (std::uint32_t s = 0; s < model_.folded.size(); ++s) {
      for (const auto& part : model_.staged.at({round, s})) {
        apply(model_.folded[s], ShardId{s}, *part);
      }
      model_.staged.erase({round, s});
      model_.settled.erase({round, s});
    }
    ++model_.checkpoint;
    model_.durable = model_.staged;
    model_.durable_settled = model_.settled;
    CHECK(run_->checkpoint() == model_.checkpoint);
  }

  void discard() {
    require_ok(run_->discard_staged());
    model_.staged.clear();
    model_.durable.clear();
    model_.settled.clear();
    model_.durable_settled.clear();
  }

  void settle() {
    if (model_.staged.empty()) return;
    auto commit = model_.staged.begin();
    std::advance(commit, random_.next_below(model_.staged.size()));
    const auto [round, shard] = commit->first;
    require_ok(run_->settle(test::make_settled(round, ShardId{shard})));
    model_.settled.insert(commit->first);
  }

  void drop() {
    const ShardId shard = some_shard();
    const auto round = static_cast<RoundIndex>(model_.checkpoint + random_.next_below(3));
    require_ok(run_->drop_staged(round, shard));
    const auto is_dropped = [&](const std::pair<RoundIndex, std::uint32_t>& key) {
      return key.first >= round && key.second == raw(shard);
    };
    std::erase_if(model_.staged, [&](const auto& commit) { return is_dropped(commit.first); });
    std::erase_if(model_.settled, is_dropped);
  }

  // A master that dies and starts again.
  void keep() {
    run_.reset();
    open();
    const auto end = static_cast<RoundIndex>(model_.checkpoint + random_.next_below(4));
    Settled expected;
    for (std::uint32_t s = 0; s < model_.folded.size(); ++s) {
      for (RoundIndex round = model_.checkpoint; model_.settled.contains({round, s}); ++round) {
        expected.insert({round, s});
        if (round + 1 == end) break;
      }
    }
    const auto kept =
        require_value(run_->keep_settled([end](RoundIndex checkpoint) { return checkpoint == end; },
                                         [](const Error& error) { FAIL(error.message); }));
    REQUIRE(kept.size() == expected.size());
    auto next = expected.begin();
    for (const SettledRound& settled : kept) {
      CHECK(settled == test::make_settled(next->first, ShardId{next->second}));
      ++next;
    }
    std::erase_if(model_.staged,
                  [&](const auto& commit) { return !expected.contains(commit.first); });
    model_.settled = std::move(expected);
    for (RoundIndex ahead = 0; ahead < 3; ++ahead) {
      const RoundIndex round = model_.checkpoint + ahead;
      for (std::uint32_t s = 0; s < model_.folded.size(); ++s) {
        CHECK(require_value(run_->is_staged(round, ShardId{s})) ==
              model_.staged.contains({round, s}));
      }
    }
  }

  void crash() {
    run_.reset();
    disk_.crash();
    open();
    model_.staged = model_.durable;
    model_.settled = model_.durable_settled;
    CHECK(run_->checkpoint() == model_.checkpoint);
    for (const auto& [key, parts] : model_.staged) {
      CHECK(require_value(run_->is_staged(key.first, ShardId{key.second})));
    }
  }

  // A digest is the same for the same rows however they came there.
  void check_digest() {
    const std::string digest = require_value(run_->checkpoint_digest());
    const auto known = digests_.emplace(model_.checkpoint, digest);
    CHECK(known.first->second == digest);
  }

  void read() {
    const ShardId shard = some_shard();
    Rows expected = model_.folded[raw(shard)];
    RoundIndex base = model_.checkpoint;
    while (base < model_.checkpoint + 2 && model_.staged.contains({base, raw(shard)})) {
      for (const auto& part : model_.staged.at({base, raw(shard)})) apply(expected, shard, *part);
      ++base;
    }
    const std::uint32_t count = run_->shard_map().row_count(shard);
    const auto begin = static_cast<std::uint32_t>(random_.next_below(count));
    const auto end = begin + static_cast<std::uint32_t>(random_.next_below(count - begin + 1));
    const ShardRows rows = require_value(run_->read_rows(shard, begin, end, base));
    ShardRows wanted;
    for (auto row = expected.lower_bound(begin); row != expected.lower_bound(end); ++row) {
      wanted.rows.push_back(row->first);
      const auto& [values, state, codes] = row->second;
      wanted.values.insert(wanted.values.end(), values.begin(), values.end());
      wanted.states.push_back(state);
      wanted.codes.insert(wanted.codes.end(), codes.begin(), codes.end());
    }
    CHECK(rows == wanted);
  }

  Rng random_;
  std::uint64_t seed_;
  RunIdentity identity_;
  MemoryStore disk_;
  std::unique_ptr<RunStore> run_;
  Model model_;
  std::map<RoundIndex, std::string> digests_;
};

TEST_CASE("storage: random commits, folds, reads and crashes agree with the model", "[storage]") {
  RoundIndex furthest = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t seed = base_seed() * 1000 + i;
    INFO("GLEANER_SEED=" << base_seed() << ", scenario " << i);
    Scenario scenario(seed);
    for (int step = 0; step < 120; ++step) scenario.step();
    furthest = std::max(furthest, scenario.checkpoint());
  }
  CHECK(furthest >= 5);
}

}  // namespace
}  // namespace gleaner
