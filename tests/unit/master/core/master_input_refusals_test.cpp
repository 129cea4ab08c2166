// Volunteers that lie about the input shards they hold, or about the points that they need for
// them. Their session ends with a sentence, and the run goes on to the same sums.
#include <catch2/catch.hpp>
#include <functional>

#include "common/limits.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// As in master_input_test: the input shards are 4 and 5.
ModelConfig refusing_model() {
  ModelConfig settings = tiny_model();
  settings.hidden = 32;
  settings.input_shards = 2;
  return settings;
}

CoreConfig refusing_config(bool lends_input = true) {
  CoreConfig settings = tiny_core_config(refusing_model());
  settings.lends_input = lends_input;
  settings.min_volunteers = 2;
  settings.unbalanced_rounds = 1'000'000;
  settings.test_points = 4;
  return settings;
}

void require_refused(MasterDriver& master, SessionId liar, const std::string& sentence) {
  const auto refusal = master.take<Refusal>(liar);
  REQUIRE(refusal.code == ErrorCode::kProtocol);
  REQUIRE_THAT(refusal.sentence, Catch::Contains(sentence));
  REQUIRE_FALSE(refusal.retry);
  REQUIRE(master.is_closed(liar));
  REQUIRE(master.held_by(liar) == 0);
  for (const AccountRecord& account : master.core().accounts()) {
    if (account.name != "liar") continue;
    REQUIRE(account.units_issued == account.units + account.units_refused + account.units_expired);
  }
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(master.gradients.size() == master.plan().batch_count());
  if (!master.core().input_stream()) return;
  REQUIRE(master.activations.size() == master.plan().batch_count());
  for (const auto& [batch, activations] : master.activations) {
    for (std::size_t i = 0; i < activations.size(); ++i) {
      REQUIRE(activations[i] == tiny_activation(batch, ShardId{i % 32 < 16 ? 4u : 5u}));
    }
  }
}

// Runs to the end with an honest volunteer and a liar, whose replies `distort` may change; a reply
// is a lie when it returns true.
void require_survives_input(const std::function<bool(MasterDriver&, Message&)>& distort,
                            const std::string& sentence) {
  MasterDriver master(refusing_model(), refusing_config());
  const SessionId honest = master.join("honest");
  const SessionId liar = master.join("liar");
  bool has_lied = false;
  while (!has_lied) {
    if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
    const std::optional<Message> next = master.take_task(liar);
    REQUIRE(next.has_value());
    for (Message& reply : master.volunteer(liar).replies_to(*next)) {
      has_lied = distort(master, reply);
      master.say(liar, std::move(reply));
      if (has_lied) break;
    }
  }
  require_refused(master, liar, sentence);
}

std::function<bool(MasterDriver&, Message&)> on_result(std::function<void(InputResult&)> change) {
  return [change](MasterDriver&, Message& message) {
    auto* result = std::get_if<InputResult>(&message);
    // One with activations, for there is none in a unit of updates alone.
    if (result == nullptr || result->activations.empty()) return false;
    change(*result);
    return true;
  };
}

// Everyone has loaded, and the master's worker waits.
struct LoadedScene {
  explicit LoadedScene(const CoreConfig& settings = refusing_config())
      : master(refusing_model(), settings) {
    honest = master.join("honest");
    liar = master.join("liar");
  }

  // Until the liar has a unit of this kind of step in its hands.
  InputUnit liar_gets(InputStep::Kind kind) {
    while (true) {
      if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
      const std::optional<Message> task = master.take_task(liar);
      REQUIRE(task.has_value());
      const auto* unit = std::get_if<InputUnit>(&*task);
      if (unit != nullptr && unit->steps.front().kind == kind) return *unit;
      answer(*task);
    }
  }

  void answer(const Message& task) {
    for (Message& reply : master.volunteer(liar).replies_to(task)) master.say(liar, reply);
  }

  MasterDriver master;
  SessionId honest{}, liar{};
};

}  // namespace

TEST_CASE("input refusal: a result for a unit that is not out", "[master]") {
  require_survives_input(on_result([](InputResult& r) { r.unit = UnitId{raw(r.unit) + 50}; }),
                         "is not out");
}

TEST_CASE("input refusal: a result for a unit of another kind", "[master]") {
  require_survives_input(
      [](MasterDriver&, Message& m) { return replace_result<UnitResult, InputResult>(m); },
      "is not out");
  require_survives_input(
      [](MasterDriver&, Message& m) { return replace_result<InputResult, UnitResult>(m); },
      "is not out");
}

TEST_CASE("input refusal: a result that was given before", "[master]") {
  LoadedScene scene;
  const InputUnit unit = scene.liar_gets(InputStep::Kind::kForward);
  scene.answer(unit);
  REQUIRE_FALSE(scene.master.is_closed(scene.liar));
  scene.master.say(scene.liar, InputResult{unit.unit, {}, 0});
  require_refused(scene.master, scene.liar, "is not out");
}

TEST_CASE("input refusal: too few or too many activations", "[master]") {
  require_survives_input(on_result([](InputResult& r) { r.activations.pop_back(); }), "expected");
  require_survives_input(on_result([](InputResult& r) { r.activations.emplace_back(); }),
                         "expected");
}

TEST_CASE("input refusal: activations that are none", "[master]") {
  require_survives_input(on_result([](InputResult& r) { r.activations.back().clear(); }),
                         "activations:");
  require_survives_input(on_result([](InputResult& r) { r.activations.back().pop_back(); }),
                         "activations:");
  require_survives_input(on_result([](InputResult& r) { r.activations.front()[0] = 1; }),
                         "activations:");
  // The last value becomes an infinity.
  require_survives_input(on_result([](InputResult& r) {
                           r.activations.back().back() = 0x7f;
                           r.activations.back().end()[-2] = 0x80;
                         }),
                         "is no value of a unit");
}

TEST_CASE("input refusal: a commit of an input shard with biases", "[master]") {
  require_survives_input(
      [](MasterDriver& master, Message& message) {
        auto* commit = std::get_if<ShardCommit>(&message);
        if (commit == nullptr || master.map().is_output(commit->lease.shard)) return false;
        commit->update.biases.resize(1);
        return true;
      },
      "the lists do not fit");
}

TEST_CASE("input refusal: a commit of an input shard before its results", "[master]") {
  LoadedScene scene;
  InputUnit unit = scene.liar_gets(InputStep::Kind::kBackward);
  const auto ends_round = [](const InputStep& step) {
    return step.kind == InputStep::Kind::kBackward && step.index == 2;
  };
  while (std::none_of(unit.steps.begin(), unit.steps.end(), ends_round)) {
    scene.answer(unit);
    unit = scene.liar_gets(InputStep::Kind::kBackward);
  }
  const LeaseRef lease = unit.leases.front();
  scene.master.say(scene.liar,
                   ShardCommit{lease, 0, 0, 1, tiny_update(scene.master.map(), lease.shard)});
  require_refused(scene.master, scene.liar, "before its results");
}

TEST_CASE("input refusal: a hand-over before the results of held-out points", "[master]") {
  // The next holder would be asked for them too, and they would count twice.
  LoadedScene scene;
  const InputUnit unit = scene.liar_gets(InputStep::Kind::kScore);
  const LeaseRef lease = unit.leases.front();
  scene.master.say(scene.liar, Leaving{"going"});
  const ShardLease& held = scene.master.core().leases().at(lease.shard);
  REQUIRE(held.state == LeaseState::kReleasing);
  scene.master.say(scene.liar, HandOver{lease, held.next_commit, held.next_batch, 0, 1, {}});
  require_refused(scene.master, scene.liar, "a hand-over of shard");
}

TEST_CASE("input refusal: points where the master has the input layer", "[master]") {
  LoadedScene scene(refusing_config(false));
  scene.master.say(scene.liar, PointsRequest{PointSet::kTraining, {0}});
  require_refused(scene.master, scene.liar, "was lent no input shard");
}

TEST_CASE("input refusal: points for a volunteer that was lent no input shard", "[master]") {
  CoreConfig settings = refusing_config();
  settings.min_volunteers = 1;
  MasterDriver master(refusing_model(), settings);
  master.join("honest");
  const SessionId liar = master.join("liar");
  REQUIRE(master.held_by(liar) == 0);
  master.say(liar, PointsRequest{PointSet::kTraining, {0}});
  require_refused(master, liar, "was lent no input shard");
}

TEST_CASE("input refusal: points that do not exist", "[master]") {
  for (const PointSet set : {PointSet::kTraining, PointSet::kTestSet}) {
    LoadedScene scene;
    scene.master.say(scene.liar, PointsRequest{set, {set == PointSet::kTraining ? 9u : 3u}});
    REQUIRE(scene.master.run_worker());
    REQUIRE_FALSE(scene.master.is_closed(scene.liar));
    REQUIRE(scene.master.take<Points>(scene.liar).set == set);
    scene.master.say(scene.liar, PointsRequest{set, {set == PointSet::kTraining ? 10u : 4u}});
    REQUIRE(scene.master.run_worker());
    require_refused(scene.master, scene.liar, "no such point");
  }
}

TEST_CASE("input refusal: more points than can be read", "[master]") {
  LoadedScene scene;
  PointsRequest request{PointSet::kTraining, std::vector<std::uint64_t>(kPointsPerRequestMax)};
  for (int i = 0; i < 4; ++i) scene.master.say(scene.liar, request);
  REQUIRE_FALSE(scene.master.is_closed(scene.liar));
  // Examples that have been read are requested no more.
  REQUIRE(scene.master.run_worker());
  scene.master.say(scene.liar, request);
  REQUIRE_FALSE(scene.master.is_closed(scene.liar));
  request.points.resize(1);
  scene.master.say(scene.liar, request);
  require_refused(scene.master, scene.liar, "faster than they can be read");
}

}  // namespace gleaner
