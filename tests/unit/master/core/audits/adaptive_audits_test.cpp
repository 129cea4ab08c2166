// Adaptive audits: some rounds of strangers are done again, drawn by lot; the others are on record.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "master/core/audits/audits.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

CoreConfig adaptive_config(const ModelConfig& model, double share) {
  CoreConfig config = tiny_core_config(model);
  config.audit = AuditMode::kAdaptive;
  config.newcomer_rounds = 1;
  config.audit_share = share;
  return config;
}

ModelConfig long_model() {
  ModelConfig model = tiny_model();
  model.epochs = 4;  // eight rounds
  return model;
}

KeyId key_of(MasterDriver& master, const std::string& name) {
  for (const AccountRecord& account : master.core().accounts()) {
    if (account.name == name) return account.identity;
  }
  FAIL("nobody is called " << name);
  return {};
}

std::uint64_t examples_done(MasterDriver& master) {
  std::uint64_t examples = 0;
  for (const AccountRecord& account : master.core().accounts()) examples += account.examples;
  return examples;
}

// Changes the losses of every batch from `begin` on.
void misstate(MasterDriver& master, SessionId id, BatchIndex begin,
              const std::function<void(std::int64_t& loss)>& lie, bool& told) {
  master.corrupt(id, [begin, lie, &told](Message& message) {
    auto* const result = std::get_if<UnitResult>(&message);
    if (result == nullptr) return;
    for (BatchResult& batch : result->batches) {
      if (batch.batch < begin) continue;
      told = true;
      for (ShardOutcome& outcome : batch.shards) lie(outcome.loss);
    }
  });
}

void exaggerate(MasterDriver& master, SessionId id, BatchIndex begin, bool& told) {
  misstate(
      master, id, begin, [](std::int64_t& loss) { loss *= 1000; }, told);
}

}  // namespace

TEST_CASE("adaptive audits: first rounds are audited, and of the later ones the share",
          "[master]") {
  const ModelConfig model = long_model();
  const std::uint64_t once = std::uint64_t{model.points} * model.epochs * model.output_shards;
  for (const double share : {0.0, 1.0}) {
    MasterDriver master(model, adaptive_config(model, share));
    for (const char* name : {"ann", "bob", "cid"}) master.join_stranger(name);
    master.settle();
    INFO("share " << share);
    REQUIRE(master.outcome() == Outcome::kFinished);
    CHECK(master.notices<Conviction>().empty());
    const FoldTask& last = master.last_fold.value();
    if (share == 1) {
      CHECK(examples_done(master) == 2 * once);
      CHECK(last.receipts->unaudited.empty());
    } else {
      CHECK(examples_done(master) > once);
      CHECK(examples_done(master) < once + once / 2);
      CHECK(last.receipts->unaudited.size() == 3);
    }
    for (const Receipt& receipt : last.receipts->shards) {
      if (!master.map().is_output(receipt.shard)) continue;  // the master's
      CHECK(receipt.verdict == (share == 1 ? WorkVerdict::kConfirmed : WorkVerdict::kUnaudited));
      CHECK((receipt.auditor == KeyId{}) == (share == 0));
    }
  }
}

TEST_CASE("adaptive audits: evaluations are all audited", "[master]") {
  const ModelConfig model = long_model();
  CoreConfig config = adaptive_config(model, 0);
  config.test_points = 8;
  MasterDriver master(model, config);
  const SessionId eve = master.join_stranger("eve");
  for (const char* name : {"ann", "bob"}) master.join_stranger(name);
  bool told = false;
  master.corrupt(eve, [&](Message& message) {
    auto* const result = std::get_if<EvalResult>(&message);
    if (result == nullptr || master.core().checkpoint() < 6 || told) return;
    told = true;
    result->best[0].score += 1.0F;
  });
  const KeyId key = key_of(master, "eve");
  master.run_to_end();
  REQUIRE(told);
  CHECK(master.trains_again<FalseWork>());
  // The rest of its work nobody has audited: the shell looks it up.
  CHECK(master.reason<FalseWork>().by == std::vector<KeyId>{key});
}

TEST_CASE("adaptive audits: a round that looks diverged is audited after all", "[master]") {
  ModelConfig model = long_model();
  model.divergence_factor = 2;
  for (const bool leaves : {false, true}) {
    MasterDriver master(model, adaptive_config(model, 0));
    const SessionId eve = master.join_stranger("eve");
    for (const char* name : {"ann", "bob"}) master.join_stranger(name);
    const KeyId key = key_of(master, "eve");
    const BatchIndex begin = master.plan().round_begin(6);
    bool told = false;
    exaggerate(master, eve, begin, told);
    if (leaves) {
      // It goes when it has told its lie, with its round unfinished.
      while (!told) {
        bool moved = master.run_worker() || master.run_storage();
        for (const SessionId id : {eve, SessionId{raw(eve) + 1}, SessionId{raw(eve) + 2}}) {
          moved = master.serve(id) || moved;
        }
        REQUIRE(moved);
      }
      master.close(eve);
    }
    master.run_to_end();
    INFO((leaves ? "it leaves" : "it stays") << ": " << master.progress().waiting_for);
    REQUIRE(master.trains_again<FalseWork>());
    CHECK(master.reason<FalseWork>().by == std::vector<KeyId>{key});
  }
}

TEST_CASE("adaptive audits: a round that diverges honestly is audited and then trained again",
          "[master]") {
  ModelConfig model = long_model();
  model.divergence_factor = 2;
  MasterDriver master(model, adaptive_config(model, 0));
  const BatchIndex begin = master.plan().round_begin(6);
  bool told = false;
  for (const char* name : {"ann", "bob", "cid"}) {
    exaggerate(master, master.join_stranger(name), begin, told);
  }
  master.settle();
  CHECK(master.notices<Conviction>().empty());
  CHECK(master.trains_again<Divergence>());
}

TEST_CASE("adaptive audits: a loss that later ones would be compared with is audited", "[master]") {
  ModelConfig model = long_model();
  model.divergence_factor = 2;
  MasterDriver master(model, adaptive_config(model, 0));
  bool told = false;
  const SessionId eve = master.join_stranger("eve");
  for (const char* name : {"ann", "bob"}) master.join_stranger(name);
  const KeyId key = key_of(master, "eve");
  misstate(
      master, eve, master.plan().round_begin(5), [](std::int64_t& loss) { loss /= 1000; }, told);
  master.run_to_end();
  REQUIRE(told);
  REQUIRE(master.trains_again<FalseWork>());
  CHECK(master.reason<FalseWork>().by == std::vector<KeyId>{key});
}

TEST_CASE("adaptive audits: numbers that no volunteer encodes convict, also who is gone",
          "[master]") {
  const ModelConfig model = long_model();
  for (const AuditMode mode : {AuditMode::kOff, AuditMode::kAdaptive, AuditMode::kAll}) {
    for (const bool leaves : {false, true}) {
      CoreConfig config = adaptive_config(model, 0);
      config.audit = mode;
      MasterDriver master(model, config);
      const SessionId eve = master.join_stranger("eve");
      for (const char* name : {"ann", "bob"}) master.join_stranger(name);
      const KeyId key = key_of(master, "eve");
      bool told = false;
      master.corrupt(eve, [&](Message& message) {
        auto* const result = std::get_if<UnitResult>(&message);
        if (result == nullptr || told || master.core().checkpoint() < 4) return;
        // Fewer bits suffice for the entries than their widths say.
        Bytes& gradient = result->batches.front().gradient;
        if (gradient.size() <= model.batch_examples) return;
        std::fill(gradient.begin() + model.batch_examples, gradient.end(), std::uint8_t{0});
        told = true;
      });
      while (!told) {
        bool moved = master.run_worker() || master.run_storage();
        for (const SessionId id : {eve, SessionId{raw(eve) + 1}, SessionId{raw(eve) + 2}}) {
          moved = master.serve(id) || moved;
        }
        REQUIRE(moved);
      }
      if (leaves) master.close(eve);
      master.run_to_end();
      INFO((leaves ? "it leaves" : "it stays"));
      REQUIRE(master.trains_again<FalseWork>());
      CHECK(master.reason<FalseWork>().by == std::vector<KeyId>{key});
    }
  }
}

TEST_CASE("adaptive audits: a ban ends the run to undo what nobody audited", "[master]") {
  const ModelConfig model = long_model();
  for (const bool has_left : {false, true}) {
    MasterDriver master(model, adaptive_config(model, 0));
    const SessionId eve = master.join_stranger("eve");
    const SessionId ann = master.join_stranger("ann");
    const KeyId key = key_of(master, "eve");
    while (master.core().checkpoint() < 3) {
      bool moved = master.run_worker() || master.run_storage();
      for (const SessionId id : {eve, ann}) moved = master.serve(id) || moved;
      REQUIRE(moved);
    }
    // A newcomer has done nothing yet.
    master.join_stranger("new");
    master.ban("new");
    REQUIRE_FALSE(master.outcome());
    if (has_left) master.close(eve);
    master.ban("eve");
    REQUIRE(master.trains_again<FalseWork>());
    CHECK(master.reason<FalseWork>().by == std::vector<KeyId>{key});
  }
}

TEST_CASE("adaptive audits: the lot falls as often as it should, and stays", "[master]") {
  CoreConfig config;
  config.audit = AuditMode::kAdaptive;
  config.newcomer_rounds = 0;
  config.audit_share = 0.25;
  std::vector<bool> earlier;
  for (const std::uint64_t secret : {1u, 2u}) {
    config.audit_secret = secret;
    AuditSampler lot(config);
    std::vector<bool> drawn;
    for (std::uint64_t volunteer = 0; volunteer < 40; ++volunteer) {
      lot.confirmed({1, volunteer});
      for (RoundIndex round = 0; round < 100; ++round) {
        drawn.push_back(lot.is_drawn({1, volunteer}, round));
        CHECK(lot.is_drawn({1, volunteer}, round) == drawn.back());
      }
    }
    // Drawn of 4,000, within four standard deviations.
    const auto count = std::ranges::count(drawn, true);
    CHECK(count > 1000 - 110);
    CHECK(count < 1000 + 110);
    CHECK(drawn != earlier);
    earlier = drawn;
  }
}

// Run by hand: how much is computed for each example and shard where a tenth is audited.
TEST_CASE("adaptive audits: work against a run without audits", "[.measure]") {
  ModelConfig model = tiny_model();
  for (const std::uint32_t epochs : {5u, 25u, 100u, 400u}) {
    model.epochs = epochs;
    CoreConfig config = adaptive_config(model, 0.1);
    config.newcomer_rounds = 2;
    MasterDriver master(model, config);
    for (const char* name : {"ann", "bob", "cid"}) master.join_stranger(name);
    master.settle();
    REQUIRE(master.outcome() == Outcome::kFinished);
    const double once = static_cast<double>(model.points) * epochs * model.output_shards;
    WARN(master.plan().round_count()
         << " rounds: " << static_cast<double>(examples_done(master)) / once);
  }
}

}  // namespace gleaner
