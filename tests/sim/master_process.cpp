#include "tests/sim/master_process.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "master/shell/way_back.hpp"
#include "schema/wire/codec.hpp"
#include "tests/sim/describe.hpp"

namespace gleaner::sim {
namespace {

// From the end of a write to the core's learning of it.
constexpr Micros kHandOver{20};
constexpr RunnerPace kPace{kTick, Millis(200)};

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
  auto opened = context_.workload.open(std::move(store), config_, [&](RunStore& run) {
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
  run();
}

void MasterProcess::run() {
  CoreRunner::Observer observer;
  observer.on_event = [this](const Event& event) { saw(event); };
  observer.on_effects = [this](const Effects& effects) { saw(effects); };
  observer.on_notice = [this](const Notice& notice) { saw(notice); };
  observer.on_arrival = [this](const std::optional<KeyId>& key, const std::string&,
                               const Message&) -> std::variant<Standing, Message> {
    if (kept_out_.banned.contains(*key)) {
      return Refusal{ErrorCode::kInvite, "this key is banned", false};
    }
    Standing relay = trusted(*key);
    if (context_.options.relays.are_strangers) {
      relay.is_trusted = false;
      relay.invite = InviteId{key->low};
    }
    return relay;
  };
  observer.on_relayed = [this](const Standing& relay,
                               const KeyId& key) -> std::variant<Standing, Message> {
    Standing standing = relay;
    standing.identity = identity_behind(relay, key);
    standing.is_suspended = kept_out_.has_suspended(relay.invite);
    if (!kept_out_.banned.contains(key) && !kept_out_.banned.contains(standing.identity)) {
      return standing;
    }
    return Refusal{ErrorCode::kInvite, "this key is banned", false};
  };
  observer.on_done = [this, life = life_](const Done& done) {
    context_.clock.after(Micros(0), [this, life, done] {
      if (life == life_) conclude(done);
    });
  };
  runner_ = std::make_unique<CoreRunner>(context_.clock, *core_, *this, *this, std::move(observer),
                                         kPace);
  runner_->start();
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
  for (const ConnectionId id : context_.network.attached(End::kMaster)) {
    context_.network.abandon(id, End::kMaster,
                             death == Death::kProcess || context_.random.chance(1, 3));
  }
  runner_.reset();
  core_.reset();
  tasks_.reset();
  dies_in_fold_ = is_within_fold_ = false;
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
  if (is_running()) runner_->stop();
}

std::string MasterProcess::waiting_for() const {
  return runner_ ? runner_->progress().waiting_for : "the master to start";
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

// ---- What the runner does ----------------------------------------------------------------------

void MasterProcess::saw(const Event& event) {
  context_.clock.note(event.index());
  if (std::holds_alternative<BackwardDone>(event)) result_.applied.push_back(context_.clock.now());
  if (context_.log.is_traced()) {
    if (const std::string text = describe(event); !text.empty()) context_.log.line("master", text);
  }
  context_.tell_checkers([&](Checker& c) {
    c.event(event);
    c.bytes_waiting(context_.network.queued_bytes_most());
  });
}

void MasterProcess::saw(const Effects& effects) {
  if (const auto& rounds = core_->shard_rounds()) {
    const std::size_t done = std::max<std::size_t>(rounds->batches_done(), result_.applied.size());
    result_.applied.resize(done, context_.clock.now());
  }
  bool is_done = false;
  for (const Effect& effect : effects) {
    if (context_.log.is_traced()) {
      if (const std::string text = describe(effect); !text.empty()) {
        context_.log.line("master", text);
      }
    }
    context_.tell_checkers([&](Checker& c) { c.effect(effect); });
    is_done = is_done || std::holds_alternative<Done>(effect);
  }
  // After its last effect the core keeps its tables as they were.
  if (!is_done) context_.tell_checkers([&](Checker& c) { c.state(*core_); });
}

void MasterProcess::run(WorkerTask task, std::function<void(Event)> done) {
  worker_free_ = std::max(worker_free_, context_.clock.now()) + tasks_->cost(task);
  context_.clock.at(worker_free_,
                    [this, life = life_, task = std::move(task), done = std::move(done)] {
                      if (life != life_) return;
                      context_.tell_checkers([&](Checker& c) { c.working(task); });
                      done(tasks_->run(task));
                    });
}

void MasterProcess::run(std::shared_ptr<const StorageTask> task,
                        std::function<void(std::optional<Event>)> done) {
  Micros cost = tasks_->cost(*task);
  if (context_.clock.now() < disk_slow_until_) cost *= disk_slowness_;
  context_.clock.after(cost, [this, life = life_, task = std::move(task), done = std::move(done)] {
    if (life == life_) store(*task, done);
  });
}

void MasterProcess::store(const StorageTask& task,
                          const std::function<void(std::optional<Event>)>& done) {
  const bool is_fold = std::holds_alternative<FoldTask>(task);
  const bool dies = is_fold && dies_in_fold_;
  if (dies && context_.random.chance(1, is_within_fold_ ? 16 : 3)) {
    context_.log.mark(is_within_fold_ ? "branch.died_within_a_fold" : "branch.died_before_a_fold");
    die(Death::kMachine);
    return;
  }
  if (is_within_fold_ && !is_fold) context_.log.mark("branch.overtook_a_fold");
  std::optional<Event> outcome = tasks_->run(task);
  if (!outcome) {
    is_within_fold_ = true;
    return done(std::nullopt);
  }
  if (is_fold) dies_in_fold_ = false;
  if (std::holds_alternative<StoreFull>(*outcome)) return done(std::move(outcome));
  if (is_fold) is_within_fold_ = false;
  if (RunStore* run = tasks_->store()) {
    disk_faults_.is_looked_at = true;
    context_.tell_checkers([&](Checker& c) { c.stored(task, *outcome, *run); });
    disk_faults_.is_looked_at = false;
    if (std::holds_alternative<Folded>(*outcome)) note_checkpoint();
  }
  const auto* failed = std::get_if<TaskFailed>(&*outcome);
  if (failed != nullptr && is_crash_point_armed_ && dies_of_disk(failed->error)) {
    if (is_fold) context_.log.mark("branch.power_failed_in_a_fold");
    return;
  }
  if (dies && context_.random.chance(1, 2)) {
    context_.log.mark("branch.died_after_a_fold");
    die(Death::kMachine);
    return;
  }
  // Between the write and the core's learning of it the process may die, and right after that.
  context_.clock.after(kHandOver, [this, life = life_, dies, done, outcome]() mutable {
    if (life != life_) return;
    done(std::move(outcome));
    if (!dies || runner_->is_done()) return;
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

void MasterProcess::saw(const Notice& notice) {
  context_.clock.note(notice.index());
  const char* kinds[] = {"joined", "left",    "checkpoint", "evaluated", "log",
                         "paused", "resumed", "convicted",  "referee"};
  context_.log.mark(std::string("notice.") + kinds[notice.index()]);
  if (std::holds_alternative<RefereeWanted>(notice)) {
    context_.clock.after(Micros(1), [this, life = life_] {
      if (life == life_) referee_wanted_();
    });
  }
  if (const auto* convicted = std::get_if<Conviction>(&notice)) {
    kept_out_.convict(convicted->who);
    if (kept_out_.has_suspended(convicted->who.invite))
      context_.log.mark("branch.invite_suspended");
    result_.convicted.insert(convicted->who.name);
    context_.log.line("master", "convicts " + convicted->who.name + ": " + convicted->what);
  }
  const Instant now = context_.clock.now();
  const auto* left = std::get_if<VolunteerLeft>(&notice);
  if (left != nullptr) result_.left.push_back({left->name, left->reason, now});
  const auto* line = std::get_if<LogLine>(&notice);
  if (line == nullptr) return;
  if (line->kind == "turned_away") result_.left.push_back({line->peer, line->message, now});
  context_.log.mark("log." + line->kind);
  // Who is convicted is judged by name.
  if (line->level == LogLevel::kError && line->kind != "convicted") {
    context_.log.violation(line->kind + ": " + line->message);
  }
}

void MasterProcess::conclude(const Done& done) {
  const char* outcomes[] = {"finished", "stopped", "abandoned", "train_again", "failed"};
  context_.log.mark(std::string("done.") + outcomes[static_cast<std::size_t>(done.outcome)]);
  switch (done.outcome) {
    case Outcome::kFinished:
      result_.finished = true;
      disk_faults_.is_looked_at = true;
      if (RunStore* run = tasks_->store()) result_.history = run->history().value();
      context_.tell_checkers([](Checker& c) { c.run_finished(); });
      break;
    case Outcome::kStopped:
    case Outcome::kAbandoned:
      die(Death::kProcess);
      break;
    case Outcome::kTrainAgain:
      train_again(*done.reason);
      break;
    case Outcome::kFailed:
      if (!dies_of_disk(done.error)) {
        context_.log.violation("the master failed: " + done.error.message);
      }
      break;
  }
}

void MasterProcess::train_again(const TrainAgainReason& reason) {
  const char* reasons[] = {"divergence", "false_work", "lost_gradients"};
  context_.log.mark(std::string("again.") + reasons[reason.index()]);
  if (std::holds_alternative<Divergence>(reason)) return cut_rates();
  die(Death::kProcess);
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

void MasterProcess::ban(const KeyId& key, const std::string& name) {
  result_.banned.insert(name);
  kept_out_.banned.insert(key);
  if (!is_running()) return;
  runner_->expel([&](const Standing& standing) {
    const bool is_it = standing.identity == key;
    return is_it ? std::optional(Refusal{ErrorCode::kInvite, "this key is banned", false})
                 : std::nullopt;
  });
  if (is_running()) runner_->ban(key, name);
}

Result<void> MasterProcess::undo_work_of_banned(RunStore& run) {
  const auto round = first_unaudited(run, {kept_out_.banned.begin(), kept_out_.banned.end()});
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

std::shared_ptr<SimLink> MasterProcess::make_link() {
  return std::make_shared<SimLink>(
      context_.network, End::kMaster,
      [this](Bytes payload, Lane lane) { return context_.pack(std::move(payload), lane); },
      [](const std::function<void()>& call) { call(); });
}

ConnectionId MasterProcess::receive(std::size_t machine, const LinkShape& shape,
                                    Network::Hearing other) {
  const auto link = make_link();
  const ConnectionId id = context_.network.open(machine, shape, link->hearing(), std::move(other));
  link->join(id);
  runner_->receive({link, "sim:" + std::to_string(id), KeyId{3, machine}});
  return id;
}

ConnectionId MasterProcess::admit(std::size_t volunteer, const Standing& standing,
                                  const LinkShape& shape, Network::Hearing other) {
  const auto link = make_link();
  const ConnectionId id =
      context_.network.open(volunteer, shape, link->hearing(), std::move(other));
  link->join(id);
  if (kept_out_.banned.contains(standing.identity)) {
    const Message refusal = Refusal{ErrorCode::kInvite, "this key is banned", false};
    link->send(encode(refusal), lane_of(refusal));
    link->close();
  } else {
    Standing now = standing;
    now.is_suspended = kept_out_.has_suspended(standing.invite);
    runner_->admit(link, "sim:" + std::to_string(id), now);
  }
  return id;
}

}  // namespace gleaner::sim
