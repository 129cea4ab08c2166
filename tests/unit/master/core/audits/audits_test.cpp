// Audits: everything that an audited volunteer does is done again by another, liars are convicted,
// and nobody else is.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

using Lie = std::function<bool(Message&)>;  // whether it changed the message

CoreConfig audited_config(const ModelConfig& model, std::uint64_t test_points = 0) {
  CoreConfig config = tiny_core_config(model);
  config.audit = AuditMode::kAll;
  config.test_points = test_points;
  return config;
}

std::vector<std::string> convicted(const MasterDriver& master) {
  std::vector<std::string> names;
  for (const Conviction& one : master.notices<Conviction>()) {
    names.push_back(one.who.name);
  }
  return names;
}

// Tells the lie with the session's answer number `which` that it can be told of.
void lie_once(MasterDriver& master, SessionId id, std::uint32_t which, const Lie& lie, bool& told) {
  master.corrupt(id, [&told, which, lie, seen = 0u](Message& message) mutable {
    Message changed = message;
    if (!lie(changed) || seen++ != which) return;
    told = true;
    message = std::move(changed);
  });
}

template <typename T>
Lie about(const std::function<void(T&)>& change) {
  return [change](Message& message) {
    auto* const own = std::get_if<T>(&message);
    if (own != nullptr) change(*own);
    return own != nullptr;
  };
}

const std::map<std::string, Lie>& lies() {
  static const std::map<std::string, Lie> all = {
      {"a shard's digest",
       about<UnitResult>([](UnitResult& r) { r.batches[0].shards[0].gradient_digest ^= 1; })},
      {"the loss", about<UnitResult>([](UnitResult& r) { r.batches[0].shards[0].loss += 1; })},
      {"the active neurons",
       about<UnitResult>([](UnitResult& r) { r.batches.back().shards.back().active += 7; })},
      {"the gradient",
       [](Message& message) {
         auto* const result = std::get_if<UnitResult>(&message);
         if (result == nullptr || result->batches[0].gradient.empty()) return false;
         result->batches[0].gradient.back() ^= 1;
         return true;
       }},
      {"a level of a commit", about<ShardCommit>([](ShardCommit& c) { c.update.levels[0] = 1; })},
      {"a scale of a commit",
       about<ShardCommit>([](ShardCommit& c) { c.update.scales[0] = 1.0F; })},
      {"a state of a commit",
       about<ShardCommit>([](ShardCommit& c) { c.update.states[0] += 1.0F; })},
      {"the rows of a commit", about<ShardCommit>([](ShardCommit& c) { c.update.rows[0] += 1; })},
      {"a score", about<EvalResult>([](EvalResult& r) { r.best[0].score += 1.0F; })},
  };
  return all;
}

// The sentences that people were told, for a test that fails.
std::string remarks(const MasterDriver& master) {
  const RunProgress now = master.progress();
  std::string all = now.waiting_for;
  all += "\nround " + std::to_string(now.round) + ", batch " + std::to_string(now.batch);
  for (const LogLine& remark : master.notices<LogLine>()) all += "\n" + remark.message;
  return all;
}

bool is_audit(MasterDriver& master, const Message& message) {
  const auto is_shadow = [&](const auto& unit) {
    const LeaseRef& lease = unit.leases.at(0);
    return master.core().shadows().at(lease.shard).epoch == lease.epoch;
  };
  if (const auto* train = std::get_if<TrainUnit>(&message)) return is_shadow(*train);
  const auto* evaluate = std::get_if<EvalUnit>(&message);
  return evaluate != nullptr && is_shadow(*evaluate);
}

// Ann pauses with an audit unit in hand, is dismissed as an auditor, and answers it when the work
// has long been confirmed by somebody else.
template <typename Unit>
void answer_late() {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, audited_config(model, 8));
  const SessionId ann = master.join_stranger("ann");
  const SessionId bob = master.join_stranger("bob");
  const SessionId cid = master.join_stranger("cid");
  std::vector<Message> late;
  while (late.empty()) {
    bool moved = master.run_worker() || master.run_storage();
    for (const SessionId id : {bob, cid}) moved = master.serve(id) || moved;
    const std::optional<Message> task = master.take_task(ann);
    REQUIRE((moved || task));
    if (!task) continue;
    std::vector<Message> replies = master.volunteer(ann).replies_to(*task);
    if (is_audit(master, *task) && std::holds_alternative<Unit>(*task)) {
      late.push_back(std::move(replies.front()));
    } else {
      for (Message& reply : replies) master.say(ann, std::move(reply));
    }
  }
  Heartbeat pausing;
  pausing.paused = "somebody is here";
  master.say(ann, pausing);
  const RoundIndex then = master.core().checkpoint();
  master.say(ann, Heartbeat{});
  while (master.core().checkpoint() < then + 2 && !master.outcome()) {
    bool moved = master.run_worker() || master.run_storage();
    for (const SessionId id : {ann, bob, cid}) moved = master.serve(id) || moved;
    REQUIRE(moved);
  }
  REQUIRE_FALSE(master.outcome());
  master.say(ann, std::move(late.front()));
  CHECK_FALSE(master.is_closed(ann));
  master.run_to_end();
  CHECK(master.outcome() == Outcome::kFinished);
  CHECK(convicted(master).empty());
}

}  // namespace

TEST_CASE("audits: all work is done twice, and the sums are those of a run without audits",
          "[master]") {
  for (const std::uint32_t volunteers : {1u, 2u, 3u, 5u}) {
    const ModelConfig model = tiny_model();
    MasterDriver master(model, audited_config(model, 8));
    std::vector<SessionId> sessions;
    for (std::uint32_t i = 0; i < volunteers; ++i) {
      sessions.push_back(master.join_stranger("volunteer-" + std::to_string(i)));
    }
    master.run_to_end();
    INFO(volunteers << " volunteers");
    REQUIRE(master.outcome() == Outcome::kFinished);
    CHECK(convicted(master).empty());
    CHECK(master.gradients == honest_gradients());
    // One alone is audited by the referee, and nobody else calls one.
    CHECK(master.notices<RefereeWanted>().size() == (volunteers == 1 ? 1 : 0));
    std::uint64_t examples = 0;
    for (const AccountRecord& account : master.core().accounts()) examples += account.examples;
    CHECK(examples == 2 * model.points * model.epochs * model.output_shards);
    CHECK(master.core().progress().precision.is_measured());
  }
}

TEST_CASE("audits: trusted volunteers are not audited", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, audited_config(model));
  master.join("ann");
  master.run_to_end();
  REQUIRE(master.outcome() == Outcome::kFinished);
  CHECK(master.notices<RefereeWanted>().empty());
}

TEST_CASE("audits: strangers get no input shards", "[master]") {
  const ModelConfig model = tiny_model();
  CoreConfig config = audited_config(model);
  config.lends_input = true;
  MasterDriver master(model, config);
  const SessionId ann = master.join_stranger("ann");
  CHECK(master.held_by(ann) == model.output_shards);
  const SessionId bob = master.join("bob");
  CHECK(master.held_by(bob) >= model.input_shards);
}

TEST_CASE("audits: strangers of one invite do not audit each other", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, audited_config(model));
  for (const std::uint64_t number : {1, 2, 3}) {
    master.join_as("volunteer-" + std::to_string(number),
                   {KeyId{7, number}, Role::kVolunteer, false, false, InviteId{9}});
  }
  master.run_to_end();
  REQUIRE(master.outcome() == Outcome::kFinished);
  CHECK(master.notices<RefereeWanted>().size() == 1);
}

TEST_CASE("audits: every lie, whenever it is told, convicts the liar and nobody else", "[master]") {
  const ModelConfig model = tiny_model();
  for (const auto& [name, lie] : lies()) {
    std::uint32_t as_holder = 0;
    std::uint32_t as_auditor = 0;
    for (std::uint32_t which = 0;; ++which) {
      INFO("a lie about " << name << ", answer " << which);
      MasterDriver master(model, audited_config(model, 8));
      master.join_stranger("ann");
      const SessionId eve = master.join_stranger("eve");
      master.join_stranger("bob");
      bool told = false;
      lie_once(master, eve, which, lie, told);
      master.run_to_end();
      INFO(remarks(master));
      if (!told) {
        REQUIRE(which > 0);
        REQUIRE(master.outcome() == Outcome::kFinished);
        break;
      }
      REQUIRE(convicted(master) == std::vector<std::string>{"eve"});
      CHECK(master.is_closed(eve));
      if (master.outcome() == Outcome::kFinished) {
        ++as_auditor;
        CHECK(master.gradients == honest_gradients());
        CHECK(master.progress().stage == RunStage::kDone);
      } else {
        ++as_holder;
        REQUIRE(master.trains_again<FalseWork>());
        // No checkpoint holds the false work.
        CHECK_THAT(master.done->error.message, Catch::Contains("false work of eve"));
      }
    }
    INFO("lies about " << name);
    CHECK(as_holder > 0);
    CHECK(as_auditor > 0);
  }
}

TEST_CASE("audits: a liar alone is convicted by the referee", "[master]") {
  const ModelConfig model = tiny_model();
  for (const auto& [name, lie] : lies()) {
    INFO("a lie about " << name);
    MasterDriver master(model, audited_config(model, 8));
    const SessionId eve = master.join_stranger("eve");
    bool told = false;
    lie_once(master, eve, 0, lie, told);
    master.run_to_end();
    INFO(remarks(master));
    REQUIRE(told);
    CHECK(master.trains_again<FalseWork>());
    // Another core goes on: the page must not say that the run is done.
    CHECK(master.progress().stage != RunStage::kDone);
    CHECK(convicted(master) == std::vector<std::string>{"eve"});
  }
}

TEST_CASE("audits: who leaves with false work is convicted all the same", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, audited_config(model));
  const SessionId eve = master.join_stranger("eve");
  bool told = false;
  lie_once(master, eve, 0, lies().at("the loss"), told);
  while (!told) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(eve)));
  }
  master.close(eve);
  master.join_stranger("ann");
  master.join_stranger("bob");
  master.run_to_end();
  INFO(remarks(master));
  CHECK(convicted(master) == std::vector<std::string>{"eve"});
  CHECK(master.trains_again<FalseWork>());
}

TEST_CASE("audits: holders and auditors that vanish cost nothing but time", "[master]") {
  const ModelConfig model = tiny_model();
  const auto honest = honest_gradients();
  // Each of the three goes after each number of answers.
  for (int who = 0; who < 3; ++who) {
    for (int answers = 0; answers < 24; ++answers) {
      INFO("volunteer " << who << " goes after " << answers << " answers");
      MasterDriver master(model, audited_config(model, 8));
      std::vector<SessionId> all = {master.join_stranger("ann"), master.join_stranger("bob"),
                                    master.join_stranger("cid")};
      int left = answers;
      bool moved = true;
      while (left > 0 && moved && !master.outcome()) {
        moved = master.run_worker() || master.run_storage();
        for (const SessionId id : all) {
          const bool served = master.serve(id);
          moved = served || moved;
          if (served && id == all[static_cast<std::size_t>(who)]) --left;
        }
      }
      if (master.outcome()) break;
      master.close(all[static_cast<std::size_t>(who)]);
      master.run_to_end();
      INFO(remarks(master));
      REQUIRE(master.outcome() == Outcome::kFinished);
      CHECK(convicted(master).empty());
      CHECK(master.gradients == honest);
    }
  }
}

TEST_CASE("audits: an answer that comes when the case is closed harms nobody", "[master]") {
  answer_late<TrainUnit>();
  answer_late<EvalUnit>();
}

TEST_CASE("audits: where nobody has room for a case, the referee does it", "[master]") {
  const ModelConfig model = tiny_model();
  CoreConfig config = audited_config(model);
  config.shard_bytes = std::uint64_t{1} << 29;  // two of four are all that each has room for
  MasterDriver master(model, config);
  for (const char* name : {"ann", "bob"}) master.join_stranger(name);
  master.run_to_end();
  CHECK(master.notices<RefereeWanted>().size() == 1);
}

TEST_CASE("audits: one that leaves politely hands nothing over that nobody checked", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, audited_config(model));
  const SessionId ann = master.join_stranger("ann");
  master.join_stranger("bob");
  for (int i = 0; i < 12; ++i) {
    master.run_worker();
    master.serve(ann);
  }
  master.say(ann, Leaving{"asked to"});
  master.run_to_end();
  CHECK(master.is_closed(ann));
  REQUIRE(master.outcome() == Outcome::kFinished);
  CHECK(convicted(master).empty());
  CHECK(master.gradients == honest_gradients());
}

TEST_CASE("audits: without them the first of two different commits stands", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, tiny_core_config(model));
  const SessionId ann = master.join_stranger("ann");
  // Ann's commits are on their way to the store when she vanishes.
  while (master.run_worker() || master.serve(ann)) {
  }
  master.close(ann);
  const SessionId eve = master.join_stranger("eve");
  master.corrupt(eve, [](Message& message) {
    if (auto* commit = std::get_if<ShardCommit>(&message)) commit->update.states[0] += 1.0F;
  });
  master.settle();
  // The run goes on, for whoever computes the same as ann.
  REQUIRE_FALSE(master.outcome());
  CHECK(master.is_closed(eve));
  master.join_stranger("bob");
  master.settle();
  CHECK(master.outcome() == Outcome::kFinished);
}

}  // namespace gleaner
