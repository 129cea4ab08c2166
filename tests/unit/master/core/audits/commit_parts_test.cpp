// Commits of several parts: a commit is its sender's alone, whole or nothing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/limits.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// Nothing is audited but what must be.
CoreConfig parts_config(AuditMode audit) {
  CoreConfig config = tiny_core_config(tiny_model());
  config.audit = audit;
  config.newcomer_rounds = 0;
  config.audit_share = 0;
  return config;
}

std::vector<std::string> names_convicted(const MasterDriver& master) {
  std::vector<std::string> names;
  for (const Conviction& one : master.notices<Conviction>()) {
    names.push_back(one.who.name);
  }
  return names;
}

// Sends the first of two parts of each commit, and never the second.
void withhold_last_part(MasterDriver& master, SessionId id, bool is_false) {
  master.volunteer(id).set_parts(2);
  master.corrupt(id, [is_false](Message& message) {
    auto* const commit = std::get_if<ShardCommit>(&message);
    if (commit == nullptr) return;
    if (is_false) commit->update.states[0] += 1.0F;
    if (commit->part == 1) message = Heartbeat{};
  });
}

void say_false_states(MasterDriver& master, SessionId id) {
  master.corrupt(id, [](Message& message) {
    if (auto* commit = std::get_if<ShardCommit>(&message)) commit->update.states[0] += 1.0F;
  });
}

}  // namespace

TEST_CASE("commit parts: what its sender never completed is nobody's", "[master]") {
  for (const AuditMode audit : {AuditMode::kOff, AuditMode::kAdaptive, AuditMode::kAll}) {
    for (const bool is_false : {false, true}) {
      for (const std::uint32_t parts : {1u, 2u, 3u}) {
        MasterDriver master(tiny_model(), parts_config(audit));
        const SessionId eve = master.join_stranger("eve");
        withhold_last_part(master, eve, is_false);
        master.settle();
        REQUIRE_FALSE(master.outcome());
        REQUIRE(std::ranges::count(master.stored, "stage 0/0.0") == 1);
        master.close(eve);
        for (const char* name : {"ann", "bob"}) {
          const SessionId id = master.join_stranger(name);
          master.volunteer(id).set_parts(parts);
        }
        master.run_to_end();
        INFO("audit mode " << static_cast<int>(audit) << ", a successor with " << parts
                           << " parts: " << master.progress().waiting_for);
        CHECK(master.outcome() == Outcome::kFinished);
        // Her answers were honest, and her half commit counts for nothing.
        CHECK(names_convicted(master).empty());
        // All of the successor's parts are stored, the first in place of eve's.
        CHECK(std::ranges::count(master.stored, "stage 0/0.0") == 2);
        CHECK(std::ranges::count(master.stored, "stage 0/0.1") == (parts > 1 ? 1 : 0));
      }
    }
  }
}

TEST_CASE("commit parts: of two commits that differ an audit finds the false one", "[master]") {
  for (const bool is_false_first : {true, false}) {
    MasterDriver master(tiny_model(), parts_config(AuditMode::kAdaptive));
    const SessionId first = master.join_stranger(is_false_first ? "eve" : "ann");
    if (is_false_first) say_false_states(master, first);
    // The commits are on their way to the store when their sender vanishes.
    while (master.run_worker() || master.serve(first)) {
    }
    master.close(first);
    const SessionId second = master.join_stranger(is_false_first ? "ann" : "eve");
    if (!is_false_first) say_false_states(master, second);
    master.run_to_end();
    INFO((is_false_first ? "false first" : "honest first"));
    CHECK(master.trains_again<FalseWork>());
    CHECK(names_convicted(master) == std::vector<std::string>{"eve"});
  }
}

TEST_CASE("commit parts: more than a shard's rows can fill are refused", "[master]") {
  // A shard has three rows.
  for (const std::uint32_t parts : {3u, 4u, kPartsMax}) {
    MasterDriver master(tiny_model(), parts_config(AuditMode::kAll));
    const SessionId eve = master.join_stranger("eve");
    bool is_told = false;
    master.corrupt(eve, [&](Message& message) {
      auto* const commit = std::get_if<ShardCommit>(&message);
      if (commit == nullptr) return;
      commit->parts = parts;
      if (std::exchange(is_told, true)) message = Heartbeat{};
    });
    master.settle();
    CHECK(master.is_closed(eve) == (parts > 3));
  }
}

}  // namespace gleaner
