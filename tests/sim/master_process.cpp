#include "tests/sim/master_process.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "master/tasks/going_back.hpp"
#include "tests/sim/describe.hpp"

namespace gleaner::sim {
namespace {

constexpr Millis kStorageRetry{200};

}  // namespace

MasterProcess::MasterProcess(SimContext& context, ClusterResult& result)
    : context_(context), result_(result), config_(context.options.master) {
  context_.workload.complete(config_);
}

// ---- Life and death ----------------------------------------------------------------------------

void MasterProcess::arm_disk() {
  const auto& points = context_.options.crash_points;
  if (crash_points_used_ < points.size()) {
    const CrashPoint& point = points[crash_points_used_++];
    disk_.fail_after(point.write, point.outcome);
    is_crash_point_armed_ = true;
  } else if (dies_in_recovery_) {
    dies_in_recovery_ = false;
    is_crash_point_armed_ = true;
    disk_.fail_after(context_.random.next_below(4), context_.random.chance(1, 2)
                                                        ? MemoryStore::FailedWrite::kApplied
                                                        : MemoryStore::FailedWrite::kDropped);
  }
}

void MasterProcess::start() {
  if (!context_.log.violations().empty() || result_.finished) return;
  if (!is_crash_point_armed_ && !is_write_armed_) arm_disk();
  auto store = std::make_unique<FaultyStore>(disk_.share(), disk_faults_);
  Result<void> undone;
  auto opened = context_.workload.open(std::move(store), config_.lends_input, [&](RunStore& run) {
    disk_faults_.is_looked_at = true;
    context_.tell_checkers([&](Checker& c) { c.store_opened(run); });
    disk_faults_.is_looked_at = false;
    undone = undo_work_of_banned(run);
  });
  if (opened && !undone) opened = undone.error();
  if (!opened) {
    context_.log.line("master", "does not start: " + opened.error().message);
    if (opened.error().code == ErrorCode::kDiskFull) {
      context_.log.mark("branch.no_room_at_a_start");
      restart_later();
    } else if (dies_of_disk(opened.error())) {
      context_.log.mark("branch.died_in_recovery");
    } else {
      context_.log.violation("the store does not open: " + opened.error().message);
    }
    return;
  }
  if (opened->has_resumed_fold) context_.log.mark("branch.fold_resumed");
  ++life_;
  tasks_ = std::move(opened->tasks);
  core_ = std::make_unique<MasterCore>(context_.workload.model(), config_, opened->resume);
  worker_free_ = context_.clock.now();
  context_.tell_checkers([&](Checker& c) { c.master_started(opened->resume, config_); });
  note_checkpoint();
  if (context_.log.is_traced()) {
    context_.log.line("master",
                      "starts at checkpoint " + std::to_string(opened->resume.checkpoint));
  }
  tick(life_);
}

bool MasterProcess::dies_of_disk(const Error& error) {
  if (error.code != ErrorCode::kIo) return false;
  if (is_crash_point_armed_) {
    is_crash_point_armed_ = false;
    context_.log.mark("branch.power_failed_at_a_write");
    die(Death::kMachine);
    return true;
  }
  if (is_write_armed_ || disk_faults_.has_failed) {
    context_.log.mark(is_write_armed_ ? "branch.write_failed" : "branch.read_failed");
    is_write_armed_ = disk_faults_.has_failed = false;
    die(Death::kProcess);
    return true;
  }
  return false;
}

void MasterProcess::die(Death death) {
  context_.log.line("master", death == Death::kProcess ? "dies" : "loses its power");
  ++life_;
  core_.reset();
  tasks_.reset();
  storage_queue_.clear();
  for (const auto& [id, is_live] : links_) {
    context_.network.abandon(id, End::kMaster,
                             death == Death::kProcess || context_.random.chance(1, 3));
  }
  links_.clear();
  dies_in_fold_ = false;
  if (referee_over_) referee_over_();
  context_.tell_checkers([](Checker& c) { c.master_gone(); });
  if (death == Death::kMachine) {
    const std::uint64_t unsynced = disk_.unsynced();
    if (unsynced > 0) context_.log.mark("branch.unsynced_writes_lost");
    disk_.crash(context_.random.next_below(unsynced + 1));
  } else {
    disk_.restart();
  }
  is_write_armed_ = false;
  restart_later();
}

void MasterProcess::restart_later() {
  const Millis most = context_.options.restart_after_most;
  const Millis pause =
      context_.uniform(Millis(5), context_.random.chance(1, 3) ? Millis(20) : most);
  context_.clock.after(pause, [this, life = life_] {
    if (life == life_ && !is_running()) start();
  });
}

void MasterProcess::ask_to_stop() {
  handle(StopRequested{});
}

std::string MasterProcess::waiting_for() const {
  return core_ ? core_->snapshot().waiting_for : "the master to start";
}

void MasterProcess::fail_next_write() {
  if (is_crash_point_armed_ || is_write_armed_) return;
  is_write_armed_ = true;
  disk_.fail_after(0, context_.random.chance(1, 2) ? MemoryStore::FailedWrite::kApplied
                                                   : MemoryStore::FailedWrite::kDropped);
}

void MasterProcess::slow_disk(Instant until, std::int64_t factor) {
  disk_slow_until_ = until;
  disk_slowness_ = factor;
}

void MasterProcess::fill_disk(Instant until) {
  disk_.fill_after(0);
  disk_full_until_ = std::max(disk_full_until_, until);
  context_.clock.at(disk_full_until_, [this] {
    if (context_.clock.now() >= disk_full_until_) disk_.make_room();
  });
}

void MasterProcess::tick(std::uint64_t life) {
  if (!is_running() || life != life_) return;
  handle(Tick{});
  context_.clock.after(kTick, [this, life] { tick(life); });
}

// ---- Events and effects ------------------------------------------------------------------------

void MasterProcess::handle(Event event) {
  if (!is_running() || result_.finished || !context_.log.violations().empty()) return;
  context_.clock.note(event.index());
  if (std::holds_alternative<BackwardDone>(event)) result_.applied.push_back(context_.clock.now());
  if (context_.log.is_traced()) {
    if (const std::string text = describe(event); !text.empty()) context_.log.line("master", text);
  }
  context_.tell_checkers([&](Checker& c) { c.event(event); });
  const std::uint64_t life = life_;
  perform(core_->handle(std::move(event), context_.clock.now()));
  // After its last effect the core keeps its tables as they were.
  if (life == life_ && !result_.finished) {
    context_.tell_checkers([&](Checker& c) { c.state(*core_); });
  }
}

void MasterProcess::perform(Effects effects) {
  const std::uint64_t life = life_;
  for (Effect& effect : effects) {
    if (life != life_) return;
    if (context_.log.is_traced()) {
      if (const std::string text = describe(effect); !text.empty()) {
        context_.log.line("master", text);
      }
    }
    context_.tell_checkers([&](Checker& c) { c.effect(effect); });
    std::visit([this](auto& e) { perform(e); }, effect);
  }
}

void MasterProcess::perform(Send& effect) {
  const ConnectionId id = raw(effect.session);
  if (!links_.contains(id)) return;
  Packet packet = context_.workload.pack(effect.message);
  core_->handle(MessageSent{effect.session, effect.message.index(), packet.wire_bytes},
                context_.clock.now());
  context_.network.send(id, End::kMaster, std::move(packet));
  const std::size_t waiting = context_.network.queued_bytes(id, End::kMaster);
  context_.tell_checkers([&](Checker& c) { c.bytes_waiting(waiting); });
}

void MasterProcess::perform(CloseSession& effect) {
  context_.network.close(raw(effect.session), End::kMaster);
}

void MasterProcess::perform(WorkerTask& task) {
  worker_free_ = std::max(worker_free_, context_.clock.now()) + tasks_->cost(task);
  context_.clock.at(worker_free_, [this, life = life_, task = std::move(task)] {
    if (life != life_) return;
    context_.tell_checkers([&](Checker& c) { c.working(task); });
    handle(tasks_->run(task));
  });
}

void MasterProcess::perform(StorageTask& task) {
  const bool is_idle = storage_queue_.empty();
  storage_queue_.push(std::move(task));
  if (is_idle) do_storage();
}

void MasterProcess::do_storage() {
  Micros cost = tasks_->cost(storage_queue_.next());
  if (context_.clock.now() < disk_slow_until_) cost *= disk_slowness_;
  context_.clock.after(cost, [this, life = life_] {
    if (life == life_) store(life);
  });
}

void MasterProcess::store(std::uint64_t life) {
  const StorageTask& task = storage_queue_.next();
  const bool is_fold = std::holds_alternative<FoldTask>(task);
  const bool is_begun = storage_queue_.is_between_steps();
  const bool dies = is_fold && dies_in_fold_;
  if (dies && context_.random.chance(1, is_begun ? 16 : 3)) {
    context_.log.mark(is_begun ? "branch.died_within_a_fold" : "branch.died_before_a_fold");
    die(Death::kMachine);
    return;
  }
  if (is_begun && !is_fold) context_.log.mark("branch.overtook_a_fold");
  std::optional<Event> outcome = tasks_->run(task);
  if (!outcome) {
    storage_queue_.stepped();
    do_storage();
    return;
  }
  Event& done = *outcome;
  if (is_fold) dies_in_fold_ = false;
  if (std::holds_alternative<StoreFull>(done)) {
    handle(std::move(done));
    context_.clock.after(kStorageRetry, [this, life] {
      if (life == life_) do_storage();
    });
    return;
  }
  if (RunStore* run = tasks_->store()) {
    disk_faults_.is_looked_at = true;
    context_.tell_checkers([&](Checker& c) { c.stored(task, done, *run); });
    disk_faults_.is_looked_at = false;
    if (std::holds_alternative<Folded>(done)) note_checkpoint();
  }
  const auto* failed = std::get_if<TaskFailed>(&done);
  if (failed != nullptr && is_crash_point_armed_ && dies_of_disk(failed->error)) {
    if (is_fold) context_.log.mark("branch.power_failed_in_a_fold");
    return;
  }
  if (dies && context_.random.chance(1, 2)) {
    context_.log.mark("branch.died_after_a_fold");
    die(Death::kMachine);
    return;
  }
  storage_queue_.done();
  if (!storage_queue_.empty()) do_storage();
  // Between the write and the core's learning of it the process may die, and right after that.
  context_.clock.after(Micros(200), [this, life, dies, done = std::move(*outcome)]() mutable {
    if (life != life_) return;
    handle(std::move(done));
    if (!dies || life != life_ || result_.finished) return;
    context_.log.mark("branch.died_after_folded");
    die(Death::kMachine);
  });
}

void MasterProcess::note_checkpoint() {
  RunStore* run = tasks_->store();
  if (run == nullptr) return;
  disk_faults_.is_looked_at = true;
  const RoundIndex now = run->checkpoint();
  result_.reached.digests[now] = run->checkpoint_digest().value();
  disk_faults_.is_looked_at = false;
  if (config_.audit != AuditMode::kAdaptive) return;
  std::erase_if(kept_, [&](const auto& kept) { return !is_kept_to_go_back(kept.first, now); });
  kept_[now] = disk_.copy();
}

void MasterProcess::perform(Notice& effect) {
  context_.clock.note(effect.index());
  const char* kinds[] = {"joined", "left",    "checkpoint", "evaluated", "log",
                         "paused", "resumed", "convicted",  "referee"};
  context_.log.mark(std::string("notice.") + kinds[effect.index()]);
  if (std::holds_alternative<RefereeWanted>(effect)) {
    context_.clock.after(Micros(1), [this, life = life_] {
      if (life == life_) referee_wanted_();
    });
  }
  if (const auto* convicted = std::get_if<VolunteerConvicted>(&effect)) {
    banned_.insert(convicted->identity);
    result_.convicted.insert(convicted->name);
    context_.log.line("master", "convicts " + convicted->name + ": " + convicted->what);
  }
  const auto* line = std::get_if<LogLine>(&effect);
  if (line == nullptr) return;
  context_.log.mark("log." + line->kind);
  // Who is convicted is judged by name.
  if (line->level == LogLevel::kError && line->kind != "convicted") {
    context_.log.violation(line->kind + ": " + line->message);
  }
}

void MasterProcess::perform(Done& effect) {
  const char* outcomes[] = {"finished", "stopped", "abandoned", "diverged", "falsified", "failed"};
  context_.log.mark(std::string("done.") + outcomes[static_cast<std::size_t>(effect.outcome)]);
  switch (effect.outcome) {
    case Outcome::kFinished:
      result_.finished = true;
      result_.evaluation = core_->snapshot().last_evaluation;
      disk_faults_.is_looked_at = true;
      if (RunStore* run = tasks_->store()) result_.history = run->history().value();
      context_.tell_checkers([](Checker& c) { c.run_finished(); });
      break;
    case Outcome::kStopped:
    case Outcome::kAbandoned:
      die(Death::kProcess);
      break;
    case Outcome::kDiverged:
      cut_rates();
      break;
    case Outcome::kFalsified:
      die(Death::kProcess);
      break;
    case Outcome::kFailed:
      if (!dies_of_disk(effect.error)) {
        context_.log.violation("the master failed: " + effect.error.message);
      }
      break;
  }
}

// Cut or not, if the disk fails the round diverges again.
void MasterProcess::cut_rates() {
  if (RunStore* run = tasks_->store()) {
    const auto cut = run->cut_rates();
    if (!cut && dies_of_disk(cut.error())) return;
    if (!cut && cut.error().code != ErrorCode::kDiskFull) {
      context_.log.violation("the rates cannot be cut: " + cut.error().message);
    }
  }
  die(Death::kProcess);
}

Result<void> MasterProcess::undo_work_of_banned(RunStore& run) {
  if (config_.audit != AuditMode::kAdaptive) return {};
  const auto round = first_unaudited(run, {banned_.begin(), banned_.end()});
  if (!round) return round.error();
  const auto kept = *round ? kept_.upper_bound(**round) : kept_.begin();
  if (kept == kept_.begin()) return {};
  const auto& [checkpoint, disk] = *std::prev(kept);
  const auto earlier = RunStore::open(disk->share());
  if (!earlier) return earlier.error();
  context_.log.line("master", "goes back to checkpoint " + std::to_string(checkpoint));
  context_.tell_checkers([&, to = checkpoint](Checker& c) { c.goes_back(to); });
  if (auto gone = run.go_back(**earlier); !gone) return gone;
  context_.log.mark("branch.went_back");
  return {};
}

// ---- Links -------------------------------------------------------------------------------------

ConnectionId MasterProcess::admit(std::size_t volunteer, const Standing& standing,
                                  const LinkShape& link, Network::Hearing other) {
  // The number is only known once the connection is open.
  const auto own = std::make_shared<ConnectionId>();
  Network::Hearing hearing;
  hearing.on_packet = [this, own, life = life_](Packet packet) {
    if (life == life_) received(*own, std::move(packet));
  };
  hearing.on_closed = [this, own, life = life_] {
    if (life != life_ || links_.erase(*own) == 0) return;
    handle(SessionClosed{SessionId{*own}, "the connection broke"});
  };
  *own = context_.network.open(volunteer, link, std::move(hearing), std::move(other));
  if (banned_.contains(standing.identity)) {
    context_.network.send(
        *own, End::kMaster,
        context_.workload.pack(Refusal{ErrorCode::kInvite, "this key is banned", false}));
    context_.network.close(*own, End::kMaster);
    return *own;
  }
  links_[*own] = true;
  handle(SessionOpened{SessionId{*own}, "sim:" + std::to_string(*own), standing});
  return *own;
}

void MasterProcess::received(ConnectionId id, Packet packet) {
  if (!links_.contains(id)) return;
  auto message = context_.workload.unpack(packet);
  if (message) {
    handle(MessageReceived{SessionId{id}, std::move(*message), packet.wire_bytes});
    return;
  }
  context_.log.mark("branch.nonsense_received");
  Send refusal{SessionId{id}, Refusal{message.error().code, message.error().message, false}};
  perform(refusal);
  context_.network.close(id, End::kMaster);
  handle(SessionClosed{SessionId{id}, "sent nonsense: " + message.error().message});
}

}  // namespace gleaner::sim
