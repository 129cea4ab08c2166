// Commits, folding, evaluation.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"
#include "tests/unit/master/core/tasks_done.hpp"

namespace gleaner {
TEST_CASE("rounds: a run trains every batch, folds every round, and says goodbye", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  finish(master);
  REQUIRE(master.worked == std::vector<std::string>{"F0", "F1", "B0", "F2", "B1", "B2",
                                                    "C0", "F3", "F4", "B3", "B4", "C1",
                                                    "F5", "F6", "B5", "F7", "B6", "B7",
                                                    "C2", "F8", "F9", "B8", "B9", "C3"});
  REQUIRE(master.core().checkpoint() == 4);
  REQUIRE(master.is_closed(ann));
  REQUIRE(master.take<Goodbye>(ann).code == ErrorCode::kFinished);
  const auto reached = master.notices<CheckpointSaved>();
  REQUIRE(reached.size() == 4);
  // Each shard reports one nat and five neurons a batch of two examples.
  REQUIRE(reached[0].record.loss == Approx(2.0));
  REQUIRE(reached[0].record.active == Approx(10.0));
  REQUIRE(reached[1].record.epoch == 1);
  REQUIRE(reached[3].record.batches == 10);
}

TEST_CASE("rounds: a full disk pauses the run, blames nobody, and lets it go on", "[master]") {
  CoreConfig patient = tiny_core_config();
  patient.silence = Millis(1'000'000);
  // Resumed, so that ann owes the loading of shards that the store is to read.
  ResumePoint resume;
  resume.checkpoint = 1;
  MasterDriver master(tiny_model(), patient, resume);
  const SessionId ann = master.join("ann");
  master.settle_without_storage();
  REQUIRE(!master.storage.empty());
  REQUIRE(std::holds_alternative<ReadChunkTask>(master.storage.front()));
  const Error full{ErrorCode::kDiskFull, "7 MiB are free"};
  master.refuse_storage(full);
  master.refuse_storage(full);
  const auto paused = master.notices<Paused>();
  REQUIRE(paused.size() == 1);
  REQUIRE(paused[0].reason == "7 MiB are free");
  REQUIRE(master.core().progress().waiting_for == "disk space: 7 MiB are free");
  // Far longer than anybody may owe work.
  for (int i = 0; i < 3; ++i) master.tick(patient.stall);
  master.settle_without_storage();
  REQUIRE_FALSE(master.is_closed(ann));
  REQUIRE(master.run_storage());
  master.tick();
  REQUIRE_FALSE(master.is_closed(ann));
  REQUIRE(master.core().progress().waiting_for.find("disk") == std::string::npos);
  REQUIRE(master.notices<Resumed>().size() == 1);
  REQUIRE(master.notices<Resumed>()[0].seconds == Approx(seconds_in(3 * patient.stall)));
  finish(master);
}

TEST_CASE("rounds: a run that waits for disk space is stopped at once", "[master]") {
  for (const bool is_stop_first : {false, true}) {
    MasterDriver master(tiny_model(), tiny_core_config());
    master.join("ann");
    master.settle_without_storage();
    if (is_stop_first) master.stop();
    REQUIRE_FALSE(master.done.has_value());
    master.refuse_storage({ErrorCode::kDiskFull, "full"});
    if (!is_stop_first) master.stop();
    REQUIRE(master.done.has_value());
    REQUIRE(master.outcome() == Outcome::kAbandoned);
  }
}

TEST_CASE("rounds: a commit counts only when every part is durable", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.volunteer(ann).set_parts(2);
  master.settle_without_storage();
  // All eight parts of the first round wait for the store.
  REQUIRE(master.storage.size() >= 8);
  REQUIRE(master.core().leases().at(ShardId{0}).next_commit > 0);
  REQUIRE(master.core().leases().at(ShardId{0}).committed == 0);
  const auto commits = [&] { return master.core().accounts().at(0).commits; };
  while (!contains(master.stored, "stage 0/0.1")) {
    REQUIRE(commits() == 0);
    REQUIRE(master.core().leases().at(ShardId{0}).committed == 0);
    REQUIRE(master.run_storage());
  }
  REQUIRE(commits() == 1);
  REQUIRE(master.core().leases().at(ShardId{0}).committed == 1);
}

TEST_CASE("rounds: each part of a commit is credited when the store has it", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.volunteer(ann).set_parts(2);
  master.settle_without_storage();
  REQUIRE(master.count<CommitCredit>(ann) == 0);
  for (std::size_t parts = 1; parts <= 4; ++parts) {
    do {
      REQUIRE(master.run_storage());
    } while (!master.stored.back().starts_with("stage 0/") || master.stored.back()[8] == '4');
    REQUIRE(master.count<CommitCredit>(ann) == parts);
  }
}

TEST_CASE("rounds: a part that nobody wants any more is credited at once", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.settle_without_storage();
  const std::size_t waiting = master.storage.size();
  ShardCommit late;
  late.lease = {ShardId{0}, LeaseEpoch{999}};
  master.say(ann, late);
  REQUIRE(master.storage.size() == waiting);
  REQUIRE(master.count<CommitCredit>(ann) == 1);
  REQUIRE_FALSE(master.is_closed(ann));
}

TEST_CASE("rounds: a holder's commit counts for it though an earlier holder's is durable",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  // Her commits of round 0 are on their way to the store when she vanishes.
  master.settle_without_storage();
  master.close(ann);
  master.join("bob");
  master.settle_without_storage();
  while (!contains(master.stored, "fold 0")) REQUIRE(master.run_storage());
  const auto accounts = master.core().accounts();
  const auto account = std::find_if(accounts.begin(), accounts.end(),
                                    [](const AccountRecord& a) { return a.name == "bob"; });
  REQUIRE(account != accounts.end());
  REQUIRE(account->commits >= 4);
}

TEST_CASE("rounds: a round is folded only when every shard and the input layer are durable",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.join("ann");
  master.settle_without_storage();
  while (!contains(master.stored, "fold 0")) {
    const bool is_whole =
        contains(master.stored, "stage 0/0.0") && contains(master.stored, "stage 0/1.0") &&
        contains(master.stored, "stage 0/2.0") && contains(master.stored, "stage 0/3.0") &&
        contains(master.stored, "stage 0/4.0");
    const bool is_folding =
        std::any_of(master.storage.begin(), master.storage.end(),
                    [](const StorageTask& task) { return std::holds_alternative<FoldTask>(task); });
    REQUIRE(is_folding == is_whole);
    REQUIRE(master.core().checkpoint() == 0);
    REQUIRE(master.run_storage());
  }
  REQUIRE(master.core().checkpoint() == 1);
}

TEST_CASE("rounds: no more than two rounds are open, which bounds the replay log", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.join("ann");
  master.settle_without_storage();  // nothing becomes durable: no round is folded
  REQUIRE(master.core().pipeline().rounds_started() == 2);
  REQUIRE(master.core().pipeline().log_size() == 5);
  REQUIRE(contains(master.worked, "C1"));
  REQUIRE_FALSE(contains(master.worked, "F5"));
  while (master.core().checkpoint() == 0) REQUIRE(master.run_storage());
  REQUIRE(contains(master.worked, "F5"));
  REQUIRE(master.core().pipeline().log_size() == 2);
  finish(master);
}

TEST_CASE("rounds: a round is not folded while a holder still replays it", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  // Everything of round 0 is staged, but the store is slow: ann dies before it says so.
  while (!contains(master.worked, "C0")) {
    REQUIRE((master.run_worker() || master.serve(ann) || master.serve(bob)));
  }
  master.settle_without_storage();
  master.hold(ann);
  master.hold(bob);
  master.close(ann);
  const ShardId shard = master.core().leases().held_by(bob).at(0);
  master.unhold(bob);
  // bob got ann's shards from checkpoint 0 and must replay round 0 although its commits arrive now.
  bool was_withheld = false;
  while (master.core().checkpoint() == 0) {
    if (master.run_storage()) {
      const LeaseTable& leases = master.core().leases();
      for (const ShardId held : leases.held_by(bob)) {
        if (leases.at(held).next_commit == 0 && leases.at(held).committed == 1) was_withheld = true;
      }
      continue;
    }
    REQUIRE(master.core().leases().at(shard).committed >= 1);
    REQUIRE((master.serve(bob) || master.run_worker()));
  }
  REQUIRE(was_withheld);
  finish(master);
}

TEST_CASE("rounds: only one fold is under way at a time, in order", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.join("ann");
  finish(master);
  std::vector<std::string> folds;
  for (const std::string& task : master.stored) {
    if (task.starts_with("fold")) folds.push_back(task);
  }
  REQUIRE(folds == std::vector<std::string>{"fold 0", "fold 1", "fold 2", "fold 3"});
}

// ---- Evaluation --------------------------------------------------------------------------------

TEST_CASE("evaluation: training waits until an epoch's checkpoint is evaluated", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  MasterDriver master(tiny_model(), settings);
  master.join("ann");
  finish(master);
  // Between the end of the first epoch and the second one's beginning.
  const std::size_t begin = position(master.worked, "E0");
  const std::size_t end = position(master.worked, "X");
  REQUIRE(position(master.worked, "C1") < begin);
  REQUIRE(begin < end);
  REQUIRE(end < position(master.worked, "F5"));
  REQUIRE(std::vector<std::string>(master.worked.begin() + static_cast<std::ptrdiff_t>(begin),
                                   master.worked.begin() + static_cast<std::ptrdiff_t>(end) + 1) ==
          std::vector<std::string>{"E0", "E4", "S0", "E8", "S4", "S8", "X"});
  const auto evaluated = master.notices<Evaluated>();
  REQUIRE(evaluated.size() == 2);
  REQUIRE(evaluated[0].checkpoint == 2);
  REQUIRE(evaluated[0].epoch == 1);
  REQUIRE(evaluated[1].checkpoint == 4);
  REQUIRE(std::count(master.stored.begin(), master.stored.end(), "evaluation") == 2);
  REQUIRE(master.core().progress().precision.at_1() == 0.5);
}

TEST_CASE("evaluation: rounds of several epochs are evaluated where one is due within",
          "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  const auto evaluated_epochs = [&](std::uint32_t every) {
    ModelConfig model = tiny_model();
    model.epochs = 8;
    model.round_batches = 10;  // two epochs
    settings.evaluate_every_epochs = every;
    MasterDriver master(model, settings);
    master.join("ann");
    finish(master);
    std::vector<std::uint32_t> epochs;
    for (const auto& notice : master.notices<Evaluated>()) {
      REQUIRE(notice.epoch == 2 * notice.checkpoint);
      epochs.push_back(notice.epoch);
    }
    return epochs;
  };
  REQUIRE(evaluated_epochs(1) == std::vector<std::uint32_t>{2, 4, 6, 8});
  REQUIRE(evaluated_epochs(3) == std::vector<std::uint32_t>{4, 6, 8});
  REQUIRE(evaluated_epochs(4) == std::vector<std::uint32_t>{4, 8});
  REQUIRE(evaluated_epochs(0) == std::vector<std::uint32_t>{8});
}

TEST_CASE("evaluation: every evaluation of a run scores the same sample", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  settings.evaluate_sample = 4;
  MasterDriver master(tiny_model(), settings);
  master.join("ann");
  finish(master);
  REQUIRE(master.notices<Evaluated>().size() == 2);
  REQUIRE(std::count(master.worked.begin(), master.worked.end(), "E0") == 2);
  REQUIRE(std::count(master.worked.begin(), master.worked.end(), "E4") == 0);
}

TEST_CASE("evaluation: with no interval only the end is evaluated", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  settings.evaluate_every_epochs = 0;
  MasterDriver master(tiny_model(), settings);
  master.join("ann");
  finish(master);
  REQUIRE(master.notices<Evaluated>().size() == 1);
  REQUIRE(master.notices<Evaluated>()[0].checkpoint == 4);
}

TEST_CASE("evaluation: what a vanished volunteer was scoring is scored by another", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  while (master.count<EvalUnit>(ann) == 0) {
    REQUIRE(
        (master.run_worker() || master.run_storage() || master.serve(bob) || master.serve(ann)));
  }
  REQUIRE(master.core().progress().stage == RunStage::kEvaluating);
  master.close(ann);
  finish(master);
  REQUIRE(master.notices<Evaluated>().size() == 2);
}

TEST_CASE("evaluation: the run ends only after the last one is on record", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 4;
  settings.evaluate_every_epochs = 0;
  MasterDriver master(tiny_model(), settings);
  master.join("ann");
  while (master.notices<Evaluated>().empty()) {
    master.settle_without_storage();
    if (master.notices<Evaluated>().empty()) REQUIRE(master.run_storage());
  }
  REQUIRE_FALSE(master.done.has_value());
  master.settle();
  REQUIRE(master.stored.back() == "evaluation");
  REQUIRE(master.outcome() == Outcome::kFinished);
}

// ---- Stopping ----------------------------------------------------------------------------------

}  // namespace gleaner
