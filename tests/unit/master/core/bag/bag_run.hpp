// A tiny run without a hidden layer, whose volunteers do as the protocol says.
#pragma once

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {

// 4 shards; rounds 0 to 3.
inline ModelConfig wide_model() {
  ModelConfig model = tiny_model();
  model.hidden = 0;
  model.wide_rows = 3;
  return model;
}

inline CoreConfig wide_config(std::uint64_t test_points = 0) {
  CoreConfig config = tiny_core_config(wide_model());
  config.test_points = test_points;
  return config;
}

// The shards that the session has been sent units of, and whose answers are not here.
inline std::set<std::uint32_t> shards_out(MasterDriver& master, SessionId id) {
  std::set<std::uint32_t> shards;
  const LeaseTable& leases = master.core().leases();
  for (const ShardId shard : leases.shards_of(id)) {
    const ShardLease& lease = leases.at(shard);
    if (lease.state == LeaseState::kReady &&
        lease.next_batch > RunPlan(wide_model()).round_begin(lease.next_commit)) {
      shards.insert(raw(shard));
    }
  }
  return shards;
}

// Serves until the session has loaded what it was lent, without training.
inline void load(MasterDriver& master, SessionId id) {
  for (int i = 0; i < 100; ++i) {
    while (master.run_storage()) {
    }
    const auto next = master.take_if(id, [](const Message& message) {
      return std::holds_alternative<LeaseGrant>(message) ||
             std::holds_alternative<ShardChunk>(message);
    });
    if (!next) return;
    master.answer_as(id, *next);
  }
}

// Loads, answers one message and stores what came.
inline void do_one(MasterDriver& master, SessionId id) {
  load(master, id);
  master.serve(id);
  while (master.run_storage()) {
  }
}

inline std::uint64_t units_of(MasterDriver& master, const std::string& name) {
  for (const AccountRecord& account : master.core().accounts()) {
    if (account.name == name) return account.units;
  }
  return 0;
}

}  // namespace gleaner
