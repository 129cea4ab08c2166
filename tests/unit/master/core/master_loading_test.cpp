// The holder of a lease fetches its state and becomes ready.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"

namespace gleaner {

TEST_CASE("loading: a lease of a new run needs no download", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  const auto grant = master.take<LeaseGrant>(ann);
  REQUIRE(grant.base_round == 0);
  REQUIRE(grant.next_batch == 0);
  REQUIRE(grant.chunks == 0);
  REQUIRE(grant.label_counts == std::vector<std::uint32_t>{1, 1, 1});
}

TEST_CASE("loading: a lease of a resumed run is fetched in chunks from its checkpoint",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config(), {1, false});
  const SessionId ann = master.join("ann");
  const auto grant = master.take<LeaseGrant>(ann);
  REQUIRE(grant.base_round == 1);
  REQUIRE(grant.next_batch == 3);
  REQUIRE(grant.base_chunks == 2);  // 3 rows, 2 a chunk
  REQUIRE(grant.chunks == 2);
  master.say(ann, ChunkRequest{grant.lease, 1});
  REQUIRE(master.run_storage());
  REQUIRE(master.last_read->base_round == 1);
  REQUIRE(master.last_read->row_begin == 2);
  REQUIRE(master.last_read->row_end == 3);
  REQUIRE(master.take<ShardChunk>(ann).chunk == 1);
}

TEST_CASE("loading: a run that began with a model lends that model's rows before its first round",
          "[master]") {
  ModelConfig model = tiny_model();
  for (const std::uint64_t fingerprint : {0, 7}) {
    model.initial_fingerprint = fingerprint;
    MasterDriver master(model, tiny_core_config(model));
    const SessionId ann = master.join("ann");
    const auto grant = master.take<LeaseGrant>(ann);
    REQUIRE(grant.base_round == 0);
    REQUIRE(grant.base_chunks == (fingerprint == 0 ? 0U : 2U));  // of 3 rows, 2 a chunk
    master.say(ann, ChunkRequest{grant.lease, 1});
    if (fingerprint == 0) {
      REQUIRE(master.is_closed(ann));
      continue;
    }
    REQUIRE(master.run_storage());
    REQUIRE(master.last_read->base_round == 0);
    REQUIRE(master.take<ShardChunk>(ann).chunk == 1);
    REQUIRE(master.core().leases().at(grant.lease.shard).chunks_sent == 1);
  }
}

TEST_CASE("loading: chunks that cannot be requested end the session", "[master]") {
  for (const int what : {0, 1, 2}) {
    MasterDriver master(tiny_model(), tiny_core_config(), {1, false});
    const SessionId ann = master.join("ann");
    const auto grant = master.take<LeaseGrant>(ann);
    if (what == 0) master.say(ann, ChunkRequest{grant.lease, 2});  // beyond the last
    if (what == 1) {
      // A chunk that is on its way already: asking often must not fill the store's queue.
      master.say(ann, ChunkRequest{grant.lease, 0});
      master.say(ann, ChunkRequest{grant.lease, 0});
    }
    if (what == 2) {
      master.say(ann, ShardReady{grant.lease});
      master.say(ann, ChunkRequest{grant.lease, 0});  // loaded already
    }
    INFO(what);
    REQUIRE(master.take<Refusal>(ann).code == ErrorCode::kProtocol);
    REQUIRE(master.is_closed(ann));
    REQUIRE(master.storage.size() <= 1);
  }
}

TEST_CASE("loading: no more chunks are read for one volunteer than it may ask for at a time",
          "[master]") {
  ModelConfig model = tiny_model();
  model.labels = 80;
  CoreConfig settings = tiny_core_config(model);
  settings.rows_per_chunk = 1;
  MasterDriver master(model, settings, {1, false});
  const SessionId ann = master.join("ann");
  const auto grant = master.take<LeaseGrant>(ann);
  REQUIRE(grant.chunks == 20);
  for (std::uint32_t chunk = 0; chunk < 16; ++chunk) {
    master.say(ann, ChunkRequest{grant.lease, chunk});
  }
  REQUIRE_FALSE(master.is_closed(ann));
  master.say(ann, ChunkRequest{grant.lease, 16});
  REQUIRE(master.is_closed(ann));
  REQUIRE(master.storage.size() == 16);
}

TEST_CASE("loading: messages under a lease of before are ignored, not punished", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  LeaseRef stale = master.take<LeaseGrant>(ann).lease;
  stale.epoch = LeaseEpoch{raw(stale.epoch) + 100};
  master.say(ann, ShardReady{stale});
  master.say(ann, ChunkRequest{stale, 0});
  master.say(ann, HandOver{stale, 0, 0, 0, 1, {}});
  master.say(ann, ShardCommit{stale, 0, 0, 1, {}});
  REQUIRE_FALSE(master.is_closed(ann));
  REQUIRE(master.storage.empty());
  REQUIRE(master.core().leases().in_state(LeaseState::kLoading).size() == 4);
}

TEST_CASE("loading: a shard that is ready twice ends the session", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  const LeaseRef lease = master.take<LeaseGrant>(ann).lease;
  master.say(ann, ShardReady{lease});
  REQUIRE_FALSE(master.is_closed(ann));
  master.say(ann, ShardReady{lease});
  REQUIRE(master.is_closed(ann));
}

}  // namespace gleaner
