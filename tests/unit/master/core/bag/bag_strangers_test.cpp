// Strangers in a run without a hidden layer: what they do is done again, and a lie spoils one
// shard.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/master/core/bag/bag_run.hpp"
#include "tests/unit/master/core/tasks_done.hpp"

namespace gleaner {
namespace {

CoreConfig audited(std::uint64_t test_points = 0) {
  CoreConfig config = wide_config(test_points);
  config.audit = AuditMode::kAll;
  return config;
}

std::vector<std::string> convicted(const MasterDriver& master) {
  std::vector<std::string> names;
  for (const Conviction& one : master.notices<Conviction>()) names.push_back(one.who.name);
  return names;
}

// Time passes, and everybody is heard.
void run_on(MasterDriver& master, std::vector<SessionId> here) {
  bool has_referee = false;
  for (int i = 0; i < 60 && !master.done; ++i) {
    master.settle();
    if (!has_referee && !master.notices<RefereeWanted>().empty()) {
      has_referee = true;
      here.push_back(master.join_referee());
    }
    master.tick(Millis(500));
    for (const SessionId id : here) {
      if (!master.is_closed(id) && !master.done) master.say(id, Heartbeat{});
    }
  }
}

TEST_CASE("bag: two strangers do each other's work again", "[bag]") {
  MasterDriver master(wide_model(), audited(6));
  const SessionId ann = master.join_stranger("ann");
  const SessionId bob = master.join_stranger("bob");
  run_on(master, {ann, bob});
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(convicted(master).empty());
  REQUIRE(master.last_fold->receipts->shards.size() == 4);
  for (const Receipt& receipt : master.last_fold->receipts->shards) {
    REQUIRE(receipt.verdict == WorkVerdict::kConfirmed);
    REQUIRE(receipt.auditor != receipt.holder);
  }
}

TEST_CASE("bag: a lone stranger's work is done again by the referee", "[bag]") {
  MasterDriver master(wide_model(), audited(6));
  const SessionId ann = master.join_stranger("ann");
  run_on(master, {ann});
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(convicted(master).empty());
}

TEST_CASE("bag: strangers of one invite do not confirm each other", "[bag]") {
  MasterDriver master(wide_model(), audited());
  const SessionId ann =
      master.join_as("ann", {KeyId{8, 1}, Role::kVolunteer, false, false, InviteId{9}});
  const SessionId bob =
      master.join_as("bob", {KeyId{8, 2}, Role::kVolunteer, false, false, InviteId{9}});
  master.settle();
  for (int i = 0; i < 10; ++i) {
    master.tick(Millis(100));
    master.settle();
  }
  REQUIRE(master.core().checkpoint() == 0);
  run_on(master, {ann, bob});
  REQUIRE(master.outcome() == Outcome::kFinished);
}

using Change = std::function<bool(Message&)>;

template <typename T>
Change about(std::function<void(T&)> change) {
  return [change](Message& message) {
    auto* const own = std::get_if<T>(&message);
    if (own != nullptr) change(*own);
    return own != nullptr;
  };
}

TEST_CASE("bag: a lie is found, spoils one shard, and ends no run", "[bag]") {
  const std::map<std::string, Change> lies = {
      {"first batch", about<UnitResult>([](UnitResult& r) { r.batches[0].shards[0].loss += 1; })},
      {"the rest",
       about<UnitResult>([](UnitResult& r) { r.batches.back().shards[0].gradient_digest ^= 1; })},
      {"a row", about<ShardCommit>([](ShardCommit& c) { c.update.states[0] = 3; })},
      {"a score", about<EvalResult>([](EvalResult& r) { r.best[0].score = 9; })}};
  for (const auto& [name, lie] : lies) {
    for (const bool has_trusted : {false, true}) {
      for (std::uint32_t which = 0; which < 3; ++which) {
        INFO(name << ", answer " << which << (has_trusted ? ", somebody is trusted" : ""));
        MasterDriver master(wide_model(), audited(6));
        std::vector<SessionId> here{master.join_stranger("liar"), master.join_stranger("bob")};
        if (has_trusted) here.push_back(master.join("ann"));
        bool told = false;
        master.corrupt(here[0], [&, seen = 0U](Message& message) mutable {
          Message changed = message;
          if (!lie(changed) || seen++ != which) return;
          told = true;
          message = std::move(changed);
        });
        run_on(master, here);
        REQUIRE(master.outcome() == Outcome::kFinished);
        const auto names = convicted(master);
        if (told) REQUIRE(std::ranges::count(names, "liar") == 1);
        REQUIRE(names.size() == (told ? 1 : 0));
      }
    }
  }
}

TEST_CASE("bag: under adaptive audits some work is excused, and receipts say so", "[bag]") {
  CoreConfig config = wide_config(6);
  config.audit = AuditMode::kAdaptive;
  config.newcomer_rounds = 0;
  config.audit_share = 0.3;
  std::size_t confirmed = 0;
  std::size_t unaudited = 0;
  for (std::uint64_t secret = 0; secret < 8; ++secret) {
    config.audit_secret = secret;
    MasterDriver master(wide_model(), config);
    const SessionId ann = master.join_stranger("ann");
    const SessionId bob = master.join_stranger("bob");
    run_on(master, {ann, bob});
    REQUIRE(master.outcome() == Outcome::kFinished);
    for (const Receipt& receipt : master.last_fold->receipts->shards) {
      (receipt.verdict == WorkVerdict::kConfirmed ? confirmed : unaudited) += 1;
    }
  }
  REQUIRE(confirmed > 0);
  REQUIRE(unaudited > 0);
}

CoreConfig excused() {
  CoreConfig config = wide_config();
  config.audit = AuditMode::kAdaptive;
  config.newcomer_rounds = 0;
  config.audit_share = 0;
  return config;
}

TEST_CASE("bag: a ban undoes what a stranger did that nobody did again", "[bag]") {
  MasterDriver master(wide_model(), excused());
  // Somebody else does the first round, whose loss is the lowest so far: it would be done again.
  const SessionId ann = master.join("ann");
  while (master.core().checkpoint() == 0) do_one(master, ann);
  master.close(ann);
  const SessionId eve = master.join_stranger("eve");
  for (int i = 0; i < 200 && master.core().checkpoint() < 3; ++i) do_one(master, eve);
  REQUIRE(master.core().checkpoint() == 3);
  SECTION("while it is here") {}
  SECTION("when it has gone") {
    master.join("bob");
    master.close(eve);
  }
  master.ban("eve");
  REQUIRE(master.trains_again<FalseWork>());
  REQUIRE(master.reason<FalseWork>().by == std::vector<KeyId>{KeyId{7, 2}});
}

TEST_CASE("bag: a ban after a restart undoes what the ledger says the key did", "[bag]") {
  ResumePoint resume;
  resume.checkpoint = 1;
  const bool has_trained = GENERATE(false, true);
  if (has_trained) resume.trained.insert(KeyId{7, 1});
  MasterDriver master(wide_model(), excused(), resume);
  master.join_stranger("eve");
  master.ban("eve");
  REQUIRE(master.done.has_value() == has_trained);
}

TEST_CASE("bag: a stranger that never answers keeps one shard, for a while", "[bag]") {
  MasterDriver master(wide_model(), audited());
  const SessionId silent = master.join_stranger("silent");
  load(master, silent);
  master.hold(silent);
  REQUIRE(master.core().leases().count_held_by(silent) == 1);
  const SessionId ann = master.join("ann");
  run_on(master, {silent, ann});
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(units_of(master, "silent") == 0);
}

}  // namespace
}  // namespace gleaner
