#include "tests/unit/storage/small_run.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "common/counter_random.hpp"
#include "tests/support/random_delta.hpp"

namespace gleaner::test {

RunIdentity small_identity() {
  RunIdentity identity;
  ModelConfig& model = identity.model;
  model.data_fingerprint = 0x0123456789abcdef;
  model.points = 43;
  model.features = 9;
  model.labels = 23;
  model.hidden = 32;
  model.output_shards = 3;
  model.input_shards = 2;
  model.epochs = 2;
  model.batch_examples = 4;
  model.round_batches = 3;
  model.hash_bits = 9;
  model.tables = 5;
  identity.settings = {{"learning.output_rate", "0.003"}, {"evaluation.every", "2"}};
  return identity;
}

std::vector<std::uint32_t> small_label_counts(const RunIdentity& identity) {
  std::vector<std::uint32_t> counts(identity.model.labels);
  for (std::uint32_t label = 0; label < counts.size(); ++label) counts[label] = 1 + label % 7;
  return counts;
}

std::unique_ptr<RunStore> open_small(const MemoryStore& disk, const RunIdentity& identity) {
  auto run = RunStore::create_or_open(disk.share(), identity, small_label_counts(identity));
  return std::move(*run);
}

SparseUpdate make_update(const ShardMap& map, ShardId shard, RoundIndex round, std::uint64_t seed) {
  Rng random(seed, Purpose::kTest, (std::uint64_t{round} << 32) | raw(shard));
  SparseUpdate update;
  for (std::uint32_t row = 0; row < map.row_count(shard); ++row) {
    if (!random.chance(1, 2)) continue;
    update.rows.push_back(row);
    push_random_delta(update, map, shard, 0.1F, random);
    update.states.push_back(static_cast<float>(random.next_below(1000)) / 1024.0F);
  }
  return update;
}

std::vector<SparseUpdate> cut(const ShardMap& map, ShardId shard, const SparseUpdate& update,
                              std::uint32_t parts) {
  const auto copy = [](const auto& from, auto& to, std::size_t begin, std::size_t end) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const std::size_t weights = map.weights_per_row(shard);
  std::vector<SparseUpdate> pieces(parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::size_t begin = update.rows.size() * part / parts;
    const std::size_t end = update.rows.size() * (part + 1) / parts;
    copy(update.rows, pieces[part].rows, begin, end);
    copy(update.scales, pieces[part].scales, begin, end);
    copy(update.levels, pieces[part].levels, begin * weights, end * weights);
    if (!update.biases.empty()) copy(update.biases, pieces[part].biases, begin, end);
    copy(update.states, pieces[part].states, begin, end);
  }
  return pieces;
}

RoundRecord make_history(RoundIndex checkpoint) {
  RoundRecord record;
  record.checkpoint = checkpoint;
  record.loss = 1.0 / checkpoint;
  record.volunteers = 3;
  record.wall_seconds = 1'700'000'000 + checkpoint;
  return record;
}

Receipts make_receipts(const ShardMap& map, RoundIndex round) {
  Receipts receipts;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const std::string number = std::to_string(round) + "-" + std::to_string(s);
    receipts.shards.push_back({ShardId{s},
                               {},
                               {7, s},
                               "holder-" + number,
                               {8, s},
                               "auditor-" + number,
                               WorkVerdict::kConfirmed});
  }
  receipts.unaudited.push_back({9, round});
  return receipts;
}

SettledRound make_settled(RoundIndex round, ShardId shard) {
  const std::string number = std::to_string(round) + "-" + std::to_string(raw(shard));
  return {round,
          shard,
          {shard, ~std::uint64_t{0} - round, 1000 + round, 10 + raw(shard)},
          {shard, 7, 2000 + round, 20 + raw(shard)},
          {shard, {}, {7, raw(shard)}, "holder-" + number, {}, "", WorkVerdict::kTrusted}};
}

Result<void> settle_round(RunStore& run, RoundIndex round) {
  for (std::uint32_t s = 0; s < run.shard_map().shard_count(); ++s) {
    if (auto settled = run.settle(make_settled(round, ShardId{s})); !settled) return settled;
  }
  return {};
}

Result<void> stage_round(RunStore& run, RoundIndex round, std::uint64_t seed) {
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::uint32_t parts = 1 + s % 3;
    const auto pieces = cut(map, shard, make_update(map, shard, round, seed), parts);
    for (std::uint32_t part = 0; part < parts; ++part) {
      auto staged = run.stage(round, shard, part, parts, pieces[part]);
      if (!staged) return staged;
    }
  }
  return {};
}

Result<void> train_to(RunStore& run, RoundIndex checkpoint, std::uint64_t seed) {
  while (run.checkpoint() < checkpoint) {
    const RoundIndex round = run.checkpoint();
    if (auto staged = stage_round(run, round, seed); !staged) return staged;
    if (auto folded = run.fold(round, make_history(round + 1)); !folded) return folded;
  }
  return {};
}

}  // namespace gleaner::test
