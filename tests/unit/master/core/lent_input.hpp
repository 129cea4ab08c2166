// Runs whose input layer volunteers hold, and what must come of them.
#pragma once

#include <catch2/catch.hpp>

#include "common/work/input_parts.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {

inline constexpr ShardId kFour{4};
inline constexpr ShardId kFive{5};

// 4 output shards, and the input shards 4 and 5 of 16 hidden units each.
inline ModelConfig lent_input_model() {
  ModelConfig settings = tiny_model();
  settings.hidden = 32;
  settings.input_shards = 2;
  return settings;
}

inline CoreConfig lent_input_config(std::uint32_t volunteers) {
  CoreConfig settings = tiny_core_config(lent_input_model());
  settings.lends_input = true;
  settings.min_volunteers = volunteers;
  settings.unbalanced_rounds = 1'000'000;
  return settings;
}

inline ShardId input_shard_of(MasterDriver& master, SessionId id) {
  const std::vector<ShardId> held = master.core().leases().held_by(id);
  REQUIRE_FALSE(held.empty());
  REQUIRE_FALSE(master.map().is_output(held.back()));
  return held.back();
}

inline void answer(MasterDriver& master, SessionId id, const Message& task) {
  for (Message& reply : master.volunteer(id).replies_to(task)) master.say(id, std::move(reply));
}

// The grant of an input shard; answers the grants of output shards before it.
inline LeaseGrant take_input_grant(MasterDriver& master, SessionId id) {
  while (true) {
    auto grant = master.take<LeaseGrant>(id);
    if (!master.map().is_output(grant.lease.shard)) return grant;
    answer(master, id, grant);
  }
}

inline void require_trained(MasterDriver& master, BatchIndex from = 0) {
  REQUIRE(master.outcome() == Outcome::kFinished);
  const BatchIndex batches = master.plan().batch_count();
  REQUIRE(master.gradients.size() == batches - from);
  REQUIRE(master.activations.size() == batches - from);
  for (BatchIndex batch = from; batch < batches; ++batch) {
    std::int32_t sum = 0;
    for (std::uint32_t s = 0; s < 4; ++s) sum += tiny_gradient(batch, ShardId{s});
    const auto& gradient = master.gradients.at(batch);
    REQUIRE(gradient == std::vector<std::int32_t>(gradient.size(), sum));
    const auto& activations = master.activations.at(batch);
    for (std::size_t i = 0; i < activations.size(); ++i) {
      REQUIRE(activations[i] == tiny_activation(batch, i % 32 < 16 ? kFour : kFive));
    }
  }
}

// Whether somebody was given this shard's update of every batch, with the batch's gradient.
inline void require_updated(MasterDriver& master, const std::vector<SessionId>& volunteers) {
  for (BatchIndex batch = 0; batch < master.plan().batch_count(); ++batch) {
    for (const ShardId shard : {kFour, kFive}) {
      const NeuronRange units = master.map().neurons(shard);
      const Bytes expected =
          pack_unit_gradient(tiny_codes(master.plan(), batch, 32), master.gradients.at(batch),
                             {units.begin, units.size()});
      bool is_found = false;
      for (const SessionId id : volunteers) {
        const auto& done = master.volunteer(id).input_gradients();
        const auto found = done.find({batch, shard});
        if (found == done.end()) continue;
        REQUIRE(found->second == expected);
        is_found = true;
      }
      REQUIRE(is_found);
    }
  }
}

// Until nothing moves without `held`'s answers.
inline void settle_without(MasterDriver& master, SessionId held) {
  master.hold(held);
  master.settle();
}

}  // namespace gleaner
