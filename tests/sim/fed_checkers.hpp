// Invented inputs for the tests of the checkers: a core, a store and messages.
#pragma once

#include <catch2/catch.hpp>

#include "common/work/quantized_activations.hpp"
#include "schema/versions.hpp"
#include "storage/engine/memory_store.hpp"
#include "tests/sim/checkers/checker.hpp"
#include "tests/sim/small_world.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner::sim {

using test::require_ok;
using test::require_value;

struct Fed {
  SimClock clock;
  SimLog log{clock, {}};
  ClusterOptions options;

  Fed() {
    SmallWorld world;
    options.model = world.model();
  }

  [[nodiscard]] std::string first_violation() const {
    return log.violations().empty() ? "" : log.violations().front();
  }
};

inline constexpr SessionId kAnn{1};
inline constexpr SessionId kBob{2};
inline constexpr Standing kAnnsStanding{{0, 7}, Role::kVolunteer, true, false, {}};

inline LeaseGrant grant(std::uint32_t shard, std::uint64_t epoch) {
  LeaseGrant grant;
  grant.lease = {ShardId{shard}, LeaseEpoch{epoch}};
  return grant;
}

inline Effect send(SessionId to, Message message) {
  return Send{to, std::move(message)};
}

inline Hello hello_of(const std::string& name) {
  Hello hello;
  hello.protocol_min = kProtocolMin;
  hello.protocol_max = kProtocolMax;
  hello.name = name;
  hello.memory_bytes = std::uint64_t{1} << 30;
  return hello;
}

// A core whose events reach the checker under test only on request.
struct Core {
  MasterCore core{tiny_model(), tiny_core_config(), {}};

  void handle(Event event) { core.handle(std::move(event), Instant(Micros(1'000'000))); }

  // Ann joins, and gets every shard.
  void join_ann() {
    handle(SessionOpened{kAnn, "peer", kAnnsStanding});
    handle(MessageReceived{kAnn, hello_of("ann"), 0});
  }

  // Forges a commit of output shard 0 that nobody sent, because no event can do it.
  void commit_shard_0() { const_cast<LeaseTable&>(core.leases()).at(ShardId{0}).committed = 1; }

  [[nodiscard]] LeaseRef lease_0() const {
    return {ShardId{0}, core.leases().at(ShardId{0}).epoch};
  }
};

// A small run in a store of its own.
struct Stored {
  MemoryStore disk;
  std::unique_ptr<RunStore> run;

  Stored() {
    const RunIdentity identity = test::small_identity();
    run = require_value(
        RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity)));
  }

  // Stores Ann's commit of output shard 0 for round 0, and tells `checker`.
  void stage_shard_0(Checker& checker) {
    const StageTask task{kAnn, ShardId{0}, 0, 0, 1, nullptr};
    require_ok(run->stage(0, ShardId{0}, 0, 1, test::make_update(run->shard_map(), ShardId{0}, 0)));
    checker.stored(StorageTask(task), Staged{kAnn, ShardId{0}, 0, 0}, *run);
  }
};

}  // namespace gleaner::sim
