#include "tests/sim/cluster.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "common/counter_random.hpp"
#include "common/thread_pool.hpp"
#include "master/core/master_core.hpp"
#include "master/persister.hpp"
#include "master/worker.hpp"
#include "schema/codec.hpp"
#include "schema/versions.hpp"
#include "storage/memory_store.hpp"
#include "tests/sim/sim_clock.hpp"
#include "volunteer/core/volunteer_core.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::sim {
namespace {

constexpr Millis kTick{50};
constexpr Millis kHeartbeat{200};
constexpr Millis kSilence{2'000};

std::int64_t no_wall_clock() {
  return 0;
}

// One TCP connection: bytes arrive in order, after a delay, until it breaks.
struct Connection {
  std::size_t volunteer = 0;
  std::uint64_t volunteer_life = 0;
  std::uint64_t master_life = 0;
  bool is_open = true;
  bool is_cut = false;  // neither end has been told
  Instant last_to_master{};
  Instant last_to_volunteer{};
};

// A master process.
struct Master {
  Master(const ClusterOptions& options, const PackedDataset& train, const PackedDataset& test,
         std::unique_ptr<RunStore> run_store, ThreadPool& pool, CoreConfig config,
         ResumePoint resume)
      : store(std::move(run_store)),
        core(options.model, config, resume),
        worker(options.model, train, &test, config.label_counts, pool),
        persister(*store, {}, &no_wall_clock) {}

  std::unique_ptr<RunStore> store;
  MasterCore core;
  Worker worker;
  Persister persister;
  Instant worker_free{};
  Instant storage_free{};
};

// A volunteer process.
struct Volunteer {
  std::unique_ptr<volunteer::VolunteerCore> core;
  std::unique_ptr<volunteer::Executor> executor;
  std::uint64_t life = 0;  // grows with every start; closures of an earlier one are void
  std::uint64_t slowness = 1;
  std::uint64_t connection = 0;  // 0: none
  Instant frozen_until{};
  Instant executor_free{};
};

class Cluster {
 public:
  Cluster(const ClusterOptions& options, const PackedDataset& train, const PackedDataset& test)
      : options_(options),
        train_(train),
        test_(test),
        random_(options.seed, Purpose::kSimulation),
        pool_(1),
        volunteers_(options.volunteers) {}

  ClusterResult run();

 private:
  using MasterEvent = gleaner::Event;
  using VolunteerEvent = volunteer::Event;

  // -- master
  void start_master();
  void kill_master();
  void tick_master(std::uint64_t life);
  void to_master(MasterEvent event);
  void perform(Effects effects);
  void perform(Send& effect);
  void perform(CloseSession& effect);
  void perform(WorkerTask& task);
  void perform(StorageTask& task);
  void perform(Notice& effect);
  void perform(Done& effect);
  void check_invariants();

  // -- volunteers
  void start_volunteer(std::size_t index);
  void kill_volunteer(std::size_t index);
  void tick_volunteer(std::size_t index, std::uint64_t life);
  void to_volunteer(std::size_t index, std::uint64_t life, VolunteerEvent event);
  void perform(std::size_t index, volunteer::Effects effects);
  void perform(std::size_t index, volunteer::Connect& effect);
  void perform(std::size_t index, volunteer::Disconnect& effect);
  void perform(std::size_t index, volunteer::Send& effect);
  void perform(std::size_t index, volunteer::StartWork& effect);
  void perform(std::size_t index, volunteer::Exit& effect);

  // -- network
  void cut(std::uint64_t connection, bool tell_master, bool tell_volunteer);
  void deliver_to_master(std::uint64_t connection, Bytes bytes);
  void deliver_to_volunteer(std::uint64_t connection, Bytes bytes);

  Millis latency() { return uniform(options_.latency_min, options_.latency_max); }

  Millis uniform(Millis low, Millis high) {
    return low + Millis(random_.next_below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }

  // -- faults
  void plan_faults();
  void recur(Millis mean, const char* name, void (Cluster::*fault)());
  void reset_some_connection();
  void crash_some_volunteer();
  void freeze_some_volunteer();
  void stop_some_volunteer();
  void crash_master();
  void stop_master();

  [[nodiscard]] bool is_over() const { return result_.finished || !result_.violations.empty(); }

  const ClusterOptions& options_;
  const PackedDataset& train_;
  const PackedDataset& test_;
  Rng random_;
  SimClock clock_;
  ThreadPool pool_;
  MemoryStore disk_;
  std::unique_ptr<Master> master_;
  std::uint64_t master_life_ = 0;
  std::vector<Volunteer> volunteers_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t last_connection_ = 0;
  std::uint64_t last_epoch_ = 0;  // of any lease so far
  ClusterResult result_;
};

// ---- Master ------------------------------------------------------------------------------------

void Cluster::start_master() {
  RunIdentity identity;
  identity.model = options_.model;
  std::vector<std::uint32_t> label_counts = count_labels(train_);
  auto store = RunStore::create_or_open(disk_.share(), identity, label_counts);
  if (!store) {
    result_.violations.push_back("the store does not open: " + store.error().message);
    return;
  }
  if (auto discarded = (*store)->discard_staged(); !discarded) {
    result_.violations.push_back("staged commits stay: " + discarded.error().message);
    return;
  }
  ResumePoint resume;
  resume.checkpoint = (*store)->checkpoint();
  auto epoch = (*store)->reserve_lease_epochs(1 << 20);
  if (!epoch || raw(*epoch) <= last_epoch_) {
    result_.violations.push_back("lease epochs do not grow over a restart");
    return;
  }
  resume.first_epoch = *epoch;
  resume.digests = *(*store)->shard_digests();
  const auto history = (*store)->history();
  for (const HistoryRecord& record : *history) {
    if (record.checkpoint == resume.checkpoint) resume.is_evaluated = record.evaluated > 0;
  }
  CoreConfig config;
  config.heartbeat = kHeartbeat;
  config.silence = kSilence;
  config.hello_deadline = Millis(1'000);
  config.rejoin_grace = options_.rejoin_grace;
  config.stop_grace = Millis(500);
  config.stall = Millis(20'000);
  config.rows_per_chunk = 3;
  config.batches_per_unit_max = 3;
  config.unit_target = Micros(20'000);
  config.test_points = test_.points();
  config.evaluate_chunk = 16;
  config.label_counts = std::move(label_counts);
  master_ =
      std::make_unique<Master>(options_, train_, test_, std::move(*store), pool_, config, resume);
  ++master_life_;
  if (auto loaded = master_->worker.load(*master_->store); !loaded) {
    result_.violations.push_back("the input layer does not load: " + loaded.error().message);
    return;
  }
  result_.digests[resume.checkpoint] = *master_->store->checkpoint_digest();
  tick_master(master_life_);
}

void Cluster::kill_master() {
  master_.reset();
  for (auto& [id, connection] : connections_) {
    if (connection.is_open) cut(id, false, random_.chance(1, 2));
  }
  clock_.after(uniform(Millis(10), Millis(3'000)), [this] { start_master(); });
}

void Cluster::tick_master(std::uint64_t life) {
  if (!master_ || life != master_life_) return;
  to_master(Tick{});
  clock_.after(kTick, [this, life] { tick_master(life); });
}

void Cluster::to_master(MasterEvent event) {
  if (!master_ || is_over()) return;
  clock_.note(event.index());
  perform(master_->core.handle(std::move(event), clock_.now()));
  if (master_) check_invariants();
}

void Cluster::perform(Effects effects) {
  for (Effect& effect : effects) {
    if (!master_) return;
    std::visit([this](auto& e) { perform(e); }, effect);
  }
}

void Cluster::perform(Send& effect) {
  const auto found = connections_.find(raw(effect.session));
  if (found == connections_.end() || !found->second.is_open) return;
  Bytes bytes = encode(effect.message);
  master_->core.record_sent(effect.session, effect.message, bytes.size());
  Connection& connection = found->second;
  connection.last_to_volunteer = std::max(connection.last_to_volunteer, clock_.now() + latency());
  clock_.at(connection.last_to_volunteer,
            [this, id = raw(effect.session), bytes = std::move(bytes)]() mutable {
              deliver_to_volunteer(id, std::move(bytes));
            });
}

void Cluster::perform(CloseSession& effect) {
  const std::uint64_t id = raw(effect.session);
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.is_open) return;
  Connection& connection = found->second;
  connection.last_to_volunteer = std::max(connection.last_to_volunteer, clock_.now() + latency());
  clock_.at(connection.last_to_volunteer, [this, id] { cut(id, false, true); });
}

void Cluster::perform(WorkerTask& task) {
  master_->worker_free = std::max(master_->worker_free, clock_.now()) + Micros(500);
  clock_.at(master_->worker_free, [this, life = master_life_, task = std::move(task)] {
    if (master_ && life == master_life_) to_master(master_->worker.run(task));
  });
}

void Cluster::perform(StorageTask& task) {
  const Micros cost(std::holds_alternative<FoldTask>(task) ? 5'000 : 1'000);
  if (std::holds_alternative<ReadChunkTask>(task)) ++result_.happened["download.chunk"];
  master_->storage_free = std::max(master_->storage_free, clock_.now()) + cost;
  clock_.at(master_->storage_free, [this, life = master_life_, task = std::move(task)] {
    if (!master_ || life != master_life_) return;
    MasterEvent done = master_->persister.run(task);
    // Between the write and the core's learning of it the process may die.
    clock_.after(Micros(200), [this, life, done = std::move(done)]() mutable {
      if (!master_ || life != master_life_) return;
      if (const auto* folded = std::get_if<Folded>(&done)) {
        std::string digest = *master_->store->checkpoint_digest();
        result_.digests[folded->round + 1] = std::move(digest);
      }
      to_master(std::move(done));
    });
  });
}

void Cluster::perform(Notice& effect) {
  clock_.note(effect.index());
  const char* kinds[] = {"came", "gone", "checkpoint", "evaluated", "remark"};
  ++result_.happened[std::string("notice.") + kinds[effect.index()]];
  const auto* remark = std::get_if<Remark>(&effect);
  if (remark == nullptr) return;
  ++result_.happened["remark." + remark->kind];
  if (remark->severity == Severity::kError) {
    result_.violations.push_back(remark->kind + ": " + remark->text);
  }
}

void Cluster::perform(Done& effect) {
  ++result_.happened["done." + std::to_string(static_cast<int>(effect.outcome))];
  switch (effect.outcome) {
    case Outcome::kFinished:
      result_.finished = true;
      result_.evaluation = master_->core.snapshot().last_evaluation;
      result_.history = *master_->store->history();
      break;
    case Outcome::kStopped:
    case Outcome::kAbandoned:
      kill_master();
      break;
    case Outcome::kFailed:
      result_.violations.push_back("the master failed: " + effect.error.message);
      break;
  }
}

void Cluster::check_invariants() {
  // A shard has at most one holder by construction; its holder must be a session that lives, and a
  // lease must never have been handed batches that have no hidden codes yet.
  const LeaseTable& leases = master_->core.leases();
  for (std::uint32_t s = 0; s < leases.size(); ++s) {
    const ShardLease& lease = leases.at(ShardId{s});
    last_epoch_ = std::max(last_epoch_, raw(lease.epoch));
    if (lease.state == LeaseState::kFree) continue;
    if (lease.next_batch > master_->core.pipeline().frontier()) {
      result_.violations.push_back("a lease is ahead of the forward pass");
    }
    if (lease.committed < master_->core.checkpoint()) {
      result_.violations.push_back("a round is folded that a shard has not committed");
    }
  }
  const std::size_t rounds = 2 * options_.model.round_batches;
  if (master_->core.pipeline().log_size() > rounds) {
    result_.violations.push_back("the replay log holds more than two rounds");
  }
}

// ---- Volunteers --------------------------------------------------------------------------------

void Cluster::start_volunteer(std::size_t index) {
  if (is_over()) return;
  Volunteer& volunteer = volunteers_[index];
  ++volunteer.life;
  volunteer::CoreConfig config;
  config.master = "master";
  config.hello.protocol_min = kProtocolMin;
  config.hello.protocol_max = kProtocolMax;
  config.hello.identity_high = 1;
  config.hello.identity_low = index + 1;
  config.hello.name = "v" + std::to_string(index + 1);
  config.hello.cores = 1;
  config.hello.memory_bytes = std::uint64_t{1} << 30;
  config.hello.simd = "scalar";
  config.hello.speed = 1;
  config.retry_first = Millis(20);
  config.retry_longest = Millis(1'000);
  config.welcome_deadline = Millis(1'500);
  config.leave_grace = Millis(2'000);
  config.chunks_in_flight = 3;
  config.seed = options_.seed * 1000 + index;
  volunteer.core = std::make_unique<volunteer::VolunteerCore>(config);
  volunteer.executor = std::make_unique<volunteer::Executor>(pool_, config.hello.memory_bytes);
  volunteer.frozen_until = clock_.now();
  volunteer.executor_free = clock_.now();
  volunteer.connection = 0;
  to_volunteer(index, volunteer.life, volunteer::Started{});
  tick_volunteer(index, volunteer.life);
}

void Cluster::kill_volunteer(std::size_t index) {
  Volunteer& volunteer = volunteers_[index];
  volunteer.core.reset();
  volunteer.executor.reset();
  ++volunteer.life;
  // Half of the time the master hears nothing: the machine lost its power.
  if (volunteer.connection != 0) cut(volunteer.connection, random_.chance(1, 2), false);
  clock_.after(uniform(Millis(1), Millis(4'000)), [this, index] { start_volunteer(index); });
}

void Cluster::tick_volunteer(std::size_t index, std::uint64_t life) {
  if (volunteers_[index].life != life || is_over()) return;
  to_volunteer(index, life, volunteer::Tick{});
  clock_.after(kTick, [this, index, life] { tick_volunteer(index, life); });
}

void Cluster::to_volunteer(std::size_t index, std::uint64_t life, VolunteerEvent event) {
  Volunteer& volunteer = volunteers_[index];
  if (volunteer.life != life || !volunteer.core || is_over()) return;
  if (clock_.now() < volunteer.frozen_until) {
    clock_.at(volunteer.frozen_until, [this, index, life, event = std::move(event)]() mutable {
      to_volunteer(index, life, std::move(event));
    });
    return;
  }
  clock_.note(event.index() + 100);
  perform(index, volunteer.core->handle(std::move(event), clock_.now()));
}

void Cluster::perform(std::size_t index, volunteer::Effects effects) {
  const std::uint64_t life = volunteers_[index].life;
  for (volunteer::Effect& effect : effects) {
    if (volunteers_[index].life != life) return;
    std::visit([&](auto& e) { perform(index, e); }, effect);
  }
}

void Cluster::perform(std::size_t index, volunteer::Connect&) {
  const std::uint64_t life = volunteers_[index].life;
  clock_.after(latency(), [this, index, life] {
    if (volunteers_[index].life != life || is_over()) return;
    if (!master_) {
      to_volunteer(index, life, volunteer::ConnectFailed{"connection refused"});
      return;
    }
    const std::uint64_t id = ++last_connection_;
    connections_[id] = {index, life, master_life_, true, false, clock_.now(), clock_.now()};
    volunteers_[index].connection = id;
    to_master(SessionOpened{SessionId{id}, "sim:" + std::to_string(id)});
    to_volunteer(index, life, volunteer::Connected{});
  });
}

void Cluster::perform(std::size_t index, volunteer::Disconnect&) {
  const std::uint64_t id = volunteers_[index].connection;
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.is_open) return;
  Connection& connection = found->second;
  connection.last_to_master = std::max(connection.last_to_master, clock_.now() + latency());
  clock_.at(connection.last_to_master, [this, id] { cut(id, true, true); });
}

void Cluster::perform(std::size_t index, volunteer::Send& effect) {
  const auto found = connections_.find(volunteers_[index].connection);
  if (found == connections_.end() || !found->second.is_open) return;
  Connection& connection = found->second;
  connection.last_to_master = std::max(connection.last_to_master, clock_.now() + latency());
  clock_.at(connection.last_to_master,
            [this, id = found->first, bytes = encode(effect.message)]() mutable {
              deliver_to_master(id, std::move(bytes));
            });
}

void Cluster::perform(std::size_t index, volunteer::StartWork& effect) {
  Volunteer& volunteer = volunteers_[index];
  const Micros cost(1'000 * static_cast<std::int64_t>(volunteer.slowness));
  volunteer.executor_free = std::max(volunteer.executor_free, clock_.now()) + cost;
  clock_.at(volunteer.executor_free,
            [this, index, life = volunteer.life, effect = std::move(effect)] {
              if (volunteers_[index].life != life || is_over()) return;
              auto replies = volunteers_[index].executor->execute(effect.work);
              volunteer::WorkDone done{effect.generation, {}, {}};
              if (replies) {
                done.replies = std::move(*replies);
                for (Message& reply : done.replies) {
                  // The time that the work took in the simulation, not on this machine.
                  auto* result = std::get_if<UnitResult>(&reply);
                  if (result == nullptr) continue;
                  result->compute_us = 0;
                  for (const BatchResult& batch : result->batches) {
                    result->compute_us += batch.shards.size() * 1'000 * volunteers_[index].slowness;
                  }
                }
              } else {
                done.error = replies.error();
                result_.violations.push_back("work failed: " + replies.error().message);
              }
              to_volunteer(index, life, std::move(done));
            });
}

void Cluster::perform(std::size_t index, volunteer::Exit& effect) {
  ++result_.happened[effect.success ? "exit.success" : "exit.failure"];
  Volunteer& volunteer = volunteers_[index];
  if (volunteer.connection != 0) cut(volunteer.connection, true, false);
  ++volunteer.life;
  clock_.after(uniform(Millis(10), Millis(3'000)), [this, index] { start_volunteer(index); });
}

// ---- Network -----------------------------------------------------------------------------------

void Cluster::cut(std::uint64_t id, bool tell_master, bool tell_volunteer) {
  Connection& connection = connections_.at(id);
  connection.is_open = false;
  if (tell_master && connection.master_life == master_life_) {
    clock_.after(latency(), [this, id] {
      if (connections_.at(id).master_life == master_life_) {
        to_master(SessionClosed{SessionId{id}, "the connection broke"});
      }
    });
  }
  if (tell_volunteer) {
    clock_.after(latency(), [this, id] {
      const Connection& gone = connections_.at(id);
      if (volunteers_[gone.volunteer].connection != id) return;
      to_volunteer(gone.volunteer, gone.volunteer_life,
                   volunteer::Disconnected{"the connection broke"});
    });
  }
}

void Cluster::deliver_to_master(std::uint64_t id, Bytes bytes) {
  const Connection& connection = connections_.at(id);
  if (!connection.is_open || connection.master_life != master_life_ || !master_) return;
  auto message = decode(bytes);
  if (!message) {
    result_.violations.push_back("a message does not decode: " + message.error().message);
    return;
  }
  clock_.note(bytes.size());
  to_master(MessageReceived{SessionId{id}, std::move(*message), bytes.size()});
}

void Cluster::deliver_to_volunteer(std::uint64_t id, Bytes bytes) {
  const Connection& connection = connections_.at(id);
  if (!connection.is_open || volunteers_[connection.volunteer].connection != id) return;
  auto message = decode(bytes);
  if (!message) {
    result_.violations.push_back("a message does not decode: " + message.error().message);
    return;
  }
  clock_.note(bytes.size());
  to_volunteer(connection.volunteer, connection.volunteer_life,
               volunteer::MessageReceived{std::move(*message)});
}

// ---- Faults ------------------------------------------------------------------------------------

void Cluster::recur(Millis mean, const char* name, void (Cluster::*fault)()) {
  if (mean.count() == 0) return;
  const Millis delay = uniform(Millis(1), 2 * mean);
  clock_.after(delay, [this, mean, name, fault] {
    if (is_over() || clock_.now() > Instant(options_.faults.until)) return;
    ++result_.happened[std::string("fault.") + name];
    (this->*fault)();
    recur(mean, name, fault);
  });
}

void Cluster::plan_faults() {
  const Faults& faults = options_.faults;
  recur(faults.reset_every, "reset", &Cluster::reset_some_connection);
  recur(faults.volunteer_crash_every, "volunteer_crash", &Cluster::crash_some_volunteer);
  recur(faults.volunteer_freeze_every, "volunteer_freeze", &Cluster::freeze_some_volunteer);
  recur(faults.volunteer_leave_every, "volunteer_leave", &Cluster::stop_some_volunteer);
  recur(faults.master_crash_every, "master_crash", &Cluster::crash_master);
  recur(faults.master_stop_every, "master_stop", &Cluster::stop_master);
}

void Cluster::reset_some_connection() {
  std::vector<std::uint64_t> open;
  for (const auto& [id, connection] : connections_) {
    if (connection.is_open) open.push_back(id);
  }
  if (!open.empty()) cut(open[random_.next_below(open.size())], true, true);
}

void Cluster::crash_some_volunteer() {
  const std::size_t index = random_.next_below(volunteers_.size());
  if (volunteers_[index].core) kill_volunteer(index);
}

void Cluster::freeze_some_volunteer() {
  Volunteer& volunteer = volunteers_[random_.next_below(volunteers_.size())];
  // Never earlier than before: events that wait for the thaw must not be overtaken.
  volunteer.frozen_until =
      std::max(volunteer.frozen_until, clock_.now() + uniform(kSilence / 2, 2 * kSilence));
}

void Cluster::stop_some_volunteer() {
  const std::size_t index = random_.next_below(volunteers_.size());
  to_volunteer(index, volunteers_[index].life, volunteer::StopRequested{"stopped by the test"});
}

void Cluster::crash_master() {
  if (!master_) return;
  kill_master();
  disk_.crash();
}

void Cluster::stop_master() {
  to_master(StopRequested{});
}

// ---- The run -----------------------------------------------------------------------------------

ClusterResult Cluster::run() {
  start_master();
  for (std::size_t index = 0; index < volunteers_.size(); ++index) {
    volunteers_[index].slowness = 1 + random_.next_below(options_.slowness_max);
    clock_.after(uniform(Millis(0), Millis(options_.join_spread_ms)),
                 [this, index] { start_volunteer(index); });
  }
  plan_faults();
  while (!is_over() && clock_.now() < Instant(options_.give_up_after) && clock_.step()) {
  }
  if (!result_.finished && result_.violations.empty()) {
    result_.violations.push_back(
        "not finished in time" +
        (master_ ? "; the master waits for: " + master_->core.snapshot().waiting_for : ""));
  }
  result_.duration = std::chrono::duration_cast<Millis>(clock_.now().time_since_epoch());
  result_.event_digest = clock_.digest();
  result_.events = clock_.steps();
  return std::move(result_);
}

}  // namespace

ClusterResult run_cluster(const ClusterOptions& options, const PackedDataset& train,
                          const PackedDataset& test) {
  return Cluster(options, train, test).run();
}

}  // namespace gleaner::sim
