// Volunteers that lie. Whatever they send, their session ends with a sentence, their shards are
// lent to others, and the run goes on to the same sums.
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "common/work/quantized_gradient.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

CoreConfig two_volunteers() {
  CoreConfig config = tiny_core_config();
  config.min_volunteers = 2;
  config.test_points = 4;
  return config;
}

// Runs to the end with an honest volunteer and a liar, whose replies `distort` may change; a reply
// is a lie when it returns true.
void require_survives(const std::function<bool(MasterDriver&, Message&)>& distort,
                      const std::string& sentence, ErrorCode code = ErrorCode::kProtocol) {
  MasterDriver master(tiny_model(), two_volunteers());
  const SessionId honest = master.join("honest");
  const SessionId liar = master.join("liar");
  master.hold(liar);
  bool has_lied = false;
  while (!has_lied) {
    if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
    // Reply by reply, so that the lie is the last thing said.
    const std::optional<Message> next = master.take_task(liar);
    REQUIRE(next.has_value());
    for (Message& reply : master.volunteer(liar).replies_to(*next)) {
      has_lied = distort(master, reply);
      master.say(liar, std::move(reply));
      if (has_lied) break;
    }
  }
  const auto refusal = master.take<Refusal>(liar);
  REQUIRE(refusal.code == code);
  REQUIRE_THAT(refusal.sentence, Catch::Contains(sentence));
  REQUIRE_FALSE(refusal.retry);
  REQUIRE(master.is_closed(liar));
  REQUIRE(master.held_by(liar) == 0);
  for (const AccountRecord& account : master.core().accounts()) {
    if (account.name != "liar") continue;
    REQUIRE(account.units_issued == account.units + account.units_refused + account.units_expired);
  }

  master.settle();
  REQUIRE(master.done.has_value());
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(master.gradients.size() == master.plan().batch_count());
  for (const auto& [batch, gradient] : master.gradients) {
    std::int32_t sum = 0;
    for (std::uint32_t s = 0; s < 4; ++s) sum += tiny_gradient(batch, ShardId{s});
    REQUIRE(gradient == std::vector<std::int32_t>(gradient.size(), sum));
  }
}

template <typename T>
std::function<bool(MasterDriver&, Message&)> on(std::function<void(MasterDriver&, T&)> change) {
  return [change](MasterDriver& master, Message& message) {
    auto* found = std::get_if<T>(&message);
    if (found == nullptr) return false;
    change(master, *found);
    return true;
  };
}

// Has said the first of three parts of a commit.
ShardCommit say_first_part(MasterDriver& master, SessionId honest, SessionId liar) {
  master.volunteer(liar).set_parts(3);
  std::optional<ShardCommit> first;
  while (!first) {
    if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
    if (master.count<TrainUnit>(liar) == 0) {
      REQUIRE(master.serve(liar));
      continue;
    }
    for (Message& reply : master.volunteer(liar).replies_to(master.take<TrainUnit>(liar))) {
      if (const auto* commit = std::get_if<ShardCommit>(&reply)) first = *commit;
      if (first) break;
      master.say(liar, reply);
    }
  }
  REQUIRE(first->parts == 3);
  master.say(liar, *first);
  REQUIRE_FALSE(master.is_closed(liar));
  return *first;
}

// A volunteer that is asked for its shards while it has a unit of them in its hands.
struct Leaver {
  Leaver() : master(tiny_model(), two_volunteers()) {
    honest = master.join("honest");
    leaver = master.join("leaver");
    while (master.count<TrainUnit>(leaver) == 0) {
      if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
      REQUIRE(master.serve(leaver));
    }
    unit = master.take<TrainUnit>(leaver);
    master.say(leaver, Leaving{"going"});
    release = master.take<ReleaseRequest>(leaver);
  }

  // Answers the oldest unit that is outstanding.
  void answer() {
    for (Message& reply : master.volunteer(leaver).replies_to(unit)) master.say(leaver, reply);
    while (master.count<TrainUnit>(leaver) > 0) {
      const auto next = master.take<TrainUnit>(leaver);
      for (Message& reply : master.volunteer(leaver).replies_to(next)) master.say(leaver, reply);
    }
  }

  HandOver part() { return std::get<HandOver>(master.volunteer(leaver).replies_to(release).at(0)); }

  void require_refused(const HandOver& lie) {
    master.say(leaver, lie);
    REQUIRE(master.is_closed(leaver));
    REQUIRE(master.take<Refusal>(leaver).code == ErrorCode::kProtocol);
    REQUIRE(master.held_by(honest) == 4);
    master.settle();
    REQUIRE(master.outcome() == Outcome::kFinished);
  }

  MasterDriver master;
  SessionId honest{}, leaver{};
  TrainUnit unit;
  ReleaseRequest release;
};

}  // namespace

TEST_CASE("refusal: a result for a unit that is not out", "[master]") {
  require_survives(
      on<UnitResult>([](MasterDriver&, UnitResult& r) { r.unit = UnitId{raw(r.unit) + 50}; }),
      "is not out");
}

TEST_CASE("refusal: an evaluation's result for a training unit", "[master]") {
  require_survives(
      [](MasterDriver&, Message& m) { return replace_result<UnitResult, EvalResult>(m); },
      "is not out");
}

TEST_CASE("refusal: a result with too few batches", "[master]") {
  require_survives(on<UnitResult>([](MasterDriver&, UnitResult& r) { r.batches.clear(); }),
                   "its result 0");
}

TEST_CASE("refusal: a result for other batches than the unit's", "[master]") {
  require_survives(on<UnitResult>([](MasterDriver&, UnitResult& r) { ++r.batches[0].batch; }),
                   "does not fit unit");
}

TEST_CASE("refusal: a result for other shards than the unit's", "[master]") {
  require_survives(on<UnitResult>([](MasterDriver&, UnitResult& r) {
                     r.batches[0].shards[0].shard = ShardId{9999};
                   }),
                   "does not fit unit");
  require_survives(
      on<UnitResult>([](MasterDriver&, UnitResult& r) { r.batches[0].shards.pop_back(); }),
      "does not fit unit");
}

TEST_CASE("refusal: a gradient that is none", "[master]") {
  require_survives(
      on<UnitResult>([](MasterDriver&, UnitResult& r) { r.batches[0].gradient.clear(); }),
      "gradient:");
}

TEST_CASE("refusal: a commit before its results", "[master]") {
  // The liar sits on its result and commits the round at once.
  require_survives(
      [](MasterDriver& master, Message& message) {
        const auto* result = std::get_if<UnitResult>(&message);
        if (result == nullptr || result->batches.back().batch != 2) return false;
        const ShardId shard = result->batches[0].shards[0].shard;
        message = ShardCommit{{shard, master.core().leases().at(shard).epoch},
                              0,
                              0,
                              1,
                              tiny_update(master.map(), shard)};
        return true;
      },
      "before its results");
}

TEST_CASE("refusal: a commit of another round than the next", "[master]") {
  require_survives(on<ShardCommit>([](MasterDriver&, ShardCommit& c) { ++c.round; }),
                   "that is not due");
}

TEST_CASE("refusal: a commit of a round that has not been trained", "[master]") {
  require_survives(
      [](MasterDriver& master, Message& message) {
        const auto* ready = std::get_if<ShardReady>(&message);
        if (ready == nullptr) return false;
        // On a lease that is loading, and then again on a ready lease.
        message = ShardCommit{ready->lease, 0, 0, 1, tiny_update(master.map(), ready->lease.shard)};
        return true;
      },
      "that is not due");
}

TEST_CASE("refusal: parts of a commit out of order, or of another count", "[master]") {
  require_survives(on<ShardCommit>([](MasterDriver&, ShardCommit& c) {
                     c.part = 1;
                     c.parts = 2;
                   }),
                   "that is not due");
}

TEST_CASE("refusal: a commit that changes the number of its parts", "[master]") {
  MasterDriver master(tiny_model(), two_volunteers());
  const SessionId honest = master.join("honest");
  const SessionId liar = master.join("liar");
  ShardCommit second = say_first_part(master, honest, liar);
  second.part = 1;
  second.parts = 2;
  second.update.rows = {1};
  master.say(liar, second);
  REQUIRE(master.is_closed(liar));
  REQUIRE_THAT(master.take<Refusal>(liar).sentence, Catch::Contains("that is not due"));
}

TEST_CASE("refusal: rows that do not fit their shard", "[master]") {
  require_survives(
      on<ShardCommit>([](MasterDriver&, ShardCommit& c) { c.update.levels.push_back(0); }),
      "the lists do not fit");
  require_survives(on<ShardCommit>([](MasterDriver&, ShardCommit& c) { c.update.states.clear(); }),
                   "the lists do not fit");
  require_survives(on<ShardCommit>([](MasterDriver&, ShardCommit& c) { c.update.rows = {3}; }),
                   "row 3 is out of range");
  require_survives(
      on<ShardCommit>([](MasterDriver&, ShardCommit& c) { c.update.states[0] = 3e38F; }),
      "row 0 has an optimizer state of 3e+38");
}

TEST_CASE("refusal: an evaluation's result of the wrong size or of neurons it was not asked for",
          "[master]") {
  require_survives(on<EvalResult>([](MasterDriver&, EvalResult& r) { r.best.pop_back(); }),
                   "does not fit unit");
  require_survives(on<EvalResult>([](MasterDriver&, EvalResult& r) { r.top_k = 1; }),
                   "does not fit unit");
  require_survives(on<EvalResult>([](MasterDriver&, EvalResult& r) { r.best[0].neuron = 12; }),
                   "does not fit unit");
  require_survives(
      on<EvalResult>([](MasterDriver&, EvalResult& r) { r.best[0].neuron = r.best[1].neuron; }),
      "does not fit unit");
}

TEST_CASE("refusal: a hand-over at another batch or checkpoint than the lease's", "[master]") {
  for (const int what : {0, 1, 2, 3, 4, 5}) {
    INFO(what);
    Leaver scene;
    scene.answer();
    HandOver lie = scene.part();
    if (what == 0) ++lie.next_batch;
    if (what == 1) ++lie.base_round;
    if (what == 2) lie.part = 1;
    if (what == 3) lie.parts = 0;
    if (what == 4) lie.rows.values.pop_back();
    if (what == 5) --lie.next_batch;
    scene.require_refused(lie);
  }
}

TEST_CASE("refusal: a hand-over before the results that lead to it", "[master]") {
  Leaver scene;
  HandOver lie;
  lie.lease = scene.release.lease;
  lie.next_batch = scene.master.core().leases().at(lie.lease.shard).next_batch;
  lie.rows = tiny_rows(scene.master.map(), lie.lease.shard);
  scene.require_refused(lie);
}

TEST_CASE("refusal: a hand-over that leaves a finished round uncommitted", "[master]") {
  MasterDriver master(tiny_model(), two_volunteers());
  const SessionId honest = master.join("honest");
  const SessionId liar = master.join("liar");
  master.hold(liar);
  // The liar answers everything and commits nothing.
  while (true) {
    if (master.run_worker() || master.run_storage() || master.serve(honest)) continue;
    if (master.count<LeaseGrant>(liar) > 0) {
      master.say(liar, master.volunteer(liar).replies_to(master.take<LeaseGrant>(liar)).at(0));
    } else if (master.count<TrainUnit>(liar) > 0) {
      master.say(liar, master.volunteer(liar).replies_to(master.take<TrainUnit>(liar)).at(0));
    } else {
      break;
    }
  }
  master.say(liar, Leaving{"going"});
  HandOver lie;
  lie.lease = master.take<ReleaseRequest>(liar).lease;
  lie.next_batch = master.core().leases().at(lie.lease.shard).next_batch;
  lie.rows = tiny_rows(master.map(), lie.lease.shard);
  master.say(liar, lie);
  REQUIRE(master.is_closed(liar));
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("refusal: a hand-over nobody asked for", "[master]") {
  MasterDriver master(tiny_model(), two_volunteers());
  const SessionId liar = master.join("liar");
  master.join("honest");
  const auto grant = master.take<LeaseGrant>(liar);
  master.say(liar, ShardReady{grant.lease});
  master.say(liar, HandOver{grant.lease, 0, 0, 0, 1, tiny_rows(master.map(), grant.lease.shard)});
  REQUIRE(master.is_closed(liar));
}

TEST_CASE("refusal: a hand-over in parts may break off without harm", "[master]") {
  Leaver scene;
  scene.answer();
  scene.master.volunteer(scene.leaver).set_parts(2);
  const HandOver first = scene.part();
  REQUIRE(first.parts == 2);
  scene.master.say(scene.leaver, first);
  REQUIRE_FALSE(scene.master.is_closed(scene.leaver));
  scene.master.close(scene.leaver);
  // Half of it is worth nothing: the shard is replayed from its last commit.
  REQUIRE(scene.master.core().leases().at(first.lease.shard).handed_over == nullptr);
  scene.master.settle();
  REQUIRE(scene.master.outcome() == Outcome::kFinished);
}

TEST_CASE("refusal: parts whose rows do not follow one another", "[master]") {
  require_survives(on<ShardCommit>([](MasterDriver&, ShardCommit& c) {
                     c.update = SparseUpdate{};
                     c.parts = 2;
                   }),
                   "that is not due");
  // Endless parts of one row would fill the store.
  MasterDriver master(tiny_model(), two_volunteers());
  const SessionId honest = master.join("honest");
  const SessionId liar = master.join("liar");
  ShardCommit again = say_first_part(master, honest, liar);
  again.part = 1;
  master.say(liar, again);
  REQUIRE(master.is_closed(liar));
  // And the memory.
  Leaver scene;
  scene.answer();
  scene.master.volunteer(scene.leaver).set_parts(3);
  HandOver part = scene.part();
  scene.master.say(scene.leaver, part);
  REQUIRE_FALSE(scene.master.is_closed(scene.leaver));
  part.part = 1;
  scene.master.say(scene.leaver, part);
  REQUIRE(scene.master.is_closed(scene.leaver));
}

TEST_CASE("refusal: a gradient in another encoding than its numbers', when the worker adds it",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId liar = master.join("liar");
  // Zeros, of one bit each.
  master.corrupt(liar, [&master](Message& message) {
    auto* result = std::get_if<UnitResult>(&message);
    if (result == nullptr) return;
    for (BatchResult& batch : result->batches) {
      const std::vector<std::uint32_t> units_on =
          count_units_on(tiny_codes(master.plan(), batch.batch, tiny_model().hidden));
      const std::size_t bits = std::accumulate(units_on.begin(), units_on.end(), std::size_t{0});
      batch.gradient.assign(units_on.size(), 1);
      batch.gradient.resize(units_on.size() + (bits + 7) / 8);
    }
  });
  master.settle();
  const auto refusal = master.take<Refusal>(liar);
  REQUIRE(refusal.code == ErrorCode::kFault);
  REQUIRE_THAT(refusal.sentence, Catch::Contains("0 bits suffice"));
  REQUIRE(master.is_closed(liar));
  // The sums are false.
  REQUIRE(master.trains_again<FalseWork>());
}

}  // namespace gleaner
