#include "tests/unit/tools/sound_run.hpp"

#include <algorithm>
#include <vector>

#include "common/model/model_fields.hpp"
#include "common/model/run_plan.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner::test {

RunIdentity sound_identity(std::uint64_t seed) {
  RunIdentity identity = small_identity();
  identity.model.seed = seed;
  identity.settings.clear();
  for (const auto& [name, value] : model_fields(identity.model)) {
    if (name != "data_fingerprint" && name != "points" && name != "features" && name != "labels") {
      identity.settings["model." + name] = value;
    }
  }
  return identity;
}

Result<void> stage_sound_round(RunStore& run, RoundIndex round) {
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const SparseUpdate update = make_update(map, shard, round, run.identity().model.seed);
    const std::uint32_t parts = 1 + s % 3;
    const auto pieces = cut(map, shard, update, parts);
    for (std::uint32_t part = 0; part < parts; ++part) {
      auto staged = run.stage(round, shard, part, parts, pieces[part]);
      if (!staged) return staged;
    }
  }
  return {};
}

Result<void> make_sound_run(std::unique_ptr<Store> store, RoundIndex checkpoint,
                            std::uint64_t seed) {
  const RunIdentity identity = sound_identity(seed);
  auto opened = RunStore::create_or_open(std::move(store), identity, small_label_counts(identity));
  if (!opened) return opened.error();
  RunStore& run = **opened;
  const RunPlan plan(identity.model);
  while (run.checkpoint() < checkpoint) {
    const RoundIndex round = run.checkpoint();
    if (auto staged = stage_sound_round(run, round); !staged) return staged;
    RoundRecord record = make_history(round + 1);
    record.batches = plan.round_end(round);
    record.precision.p[0] = 0.5;
    record.evaluated = 10;
    if (auto begun = run.begin_fold(round, record, make_receipts(run.shard_map(), round)); !begun) {
      return begun;
    }
    for (Result<bool> folded = false; !*folded;) {
      folded = run.step_fold();
      if (!folded) return folded.error();
    }
  }
  if (const auto epochs = run.reserve_lease_epochs(64); !epochs) return epochs.error();
  AccountRecord atlas;
  atlas.identity.low = 1;
  atlas.name = "atlas";
  atlas.units_issued = 12;
  atlas.units = 9;
  atlas.units_expired = 2;
  AccountRecord bilbo = atlas;
  bilbo.identity.low = 2;
  bilbo.name = "bilbo";
  if (auto put = run.put_accounts({atlas, bilbo}); !put) return put;
  if (auto staged = stage_sound_round(run, run.checkpoint()); !staged) return staged;
  return run.settle(make_settled(run.checkpoint(), ShardId{2}));
}

}  // namespace gleaner::test
