#include "tests/sim/cluster.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "tests/sim/fault_injector.hpp"
#include "tests/sim/master_process.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/sim/volunteer_process.hpp"
#include "tests/support/lies.hpp"

namespace gleaner::sim {
namespace {

// Notes every batch's gradient, for other runs to be compared with.
class GradientRecorder : public Checker {
 public:
  GradientRecorder(SimLog& log, ClusterResult& result) : Checker(log), result_(result) {}

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    rate_cuts_ = resume.rate_cuts.size();
  }

  void working(const WorkerTask& task) override {
    const auto* backward = std::get_if<BackwardTask>(&task);
    if (backward == nullptr || !backward->gradient) return;
    result_.reached.gradient_digests[{rate_cuts_, backward->batch}] =
        digest_of(*backward->gradient);
  }

 private:
  ClusterResult& result_;
  std::size_t rate_cuts_ = 0;
};

class Cluster {
 public:
  Cluster(const ClusterOptions& options, Workload& workload)
      : options_(options),
        random_(options.seed, Purpose::kSimulation),
        log_(clock_, options.trace),
        network_(clock_, random_, log_, options.send_queue_bytes_max,
                 options.master_bytes_per_second),
        context_{options, clock_, random_, log_, network_, workload, checkers_},
        master_(context_, result_),
        injector_(context_, master_, volunteers_) {
    if (options.is_checked) checkers_ = all_checkers(log_, options);
    if (options.is_checked && options.expected == nullptr) {
      checkers_.push_back(std::make_unique<GradientRecorder>(log_, result_));
    }
    for (std::size_t index = 0; index < options.volunteers; ++index) {
      Standing standing = trusted(KeyId{1, index + 1});
      if (options.strangers.are_there && index + options.strangers.trusted < options.volunteers) {
        standing.is_trusted = false;
        standing.invite = InviteId{index + 1};
      }
      volunteers_.push_back(std::make_unique<VolunteerProcess>(
          context_, master_, index, standing, 1 + random_.next_below(options.slowness_max)));
    }
    make_relays();
    for (std::size_t index = 0; index < options.strangers.liars; ++index) make_liar(index);
    if (options.strangers.withholds) {
      volunteers_[options.volunteers - options.strangers.trusted - 1]->withhold(result_.withholder);
    }
    const Standing own{kRefereeIdentity, Role::kVolunteer, true, true, {}};
    referee_ = std::make_unique<VolunteerProcess>(context_, master_, options.volunteers, own, 1);
    master_.on_referee([this] { referee_->bring_back(); }, [this] { referee_->remove(true); });
  }

  ClusterResult run() {
    master_.start();
    for (const auto& relay : relays_) relay->start();
    for (const auto& volunteer : volunteers_) {
      clock_.after(context_.uniform(Millis(0), Millis(options_.join_spread_ms)),
                   [&volunteer] { volunteer->start(); });
    }
    injector_.start();
    for (const Presence& step : options_.presence) {
      clock_.after(step.from, [this, &step] { be_present(step); });
    }
    if (options_.kill_one_at.count() > 0) {
      clock_.after(options_.kill_one_at, [this] { volunteers_.front()->kill(true); });
    }
    // Some time, then health: what a fault began may outlast it by as much again.
    const Instant deadline = Instant(options_.faults.until + options_.heal_within);
    while (!is_over() && clock_.now() < deadline && clock_.step()) {
    }
    if (!is_over()) {
      log_.violation("progress: not finished within the time after the last fault; waiting for " +
                     master_.waiting_for());
    }
    check_end();
    result_.duration = std::chrono::duration_cast<Millis>(clock_.now().time_since_epoch());
    result_.event_digest = clock_.digest();
    result_.events = clock_.steps();
    result_.writes = master_.disk().writes();
    result_.happened = log_.marks();
    result_.violations = log_.violations();
    return std::move(result_);
  }

 private:
  // Where audits may miss lies, the model is the honest one if they missed none.
  void check_end() {
    std::set<std::string> out = result_.convicted;
    out.insert(result_.banned.begin(), result_.banned.end());
    if (!result_.finished || options_.expected == nullptr ||
        options_.master.audit != AuditMode::kAdaptive ||
        !std::ranges::includes(out, result_.liars)) {
      return;
    }
    const auto& [checkpoint, digest] = *options_.expected->digests.rbegin();
    if (result_.reached.digests.at(checkpoint) != digest) {
      log_.violation(
          "adaptive: every liar was convicted or banned, and the model is not the honest one");
    }
  }

  // Draws which volunteers come and go.
  void be_present(const Presence& step) {
    while (true) {
      std::vector<VolunteerProcess*> there;
      std::vector<VolunteerProcess*> away;
      for (const auto& volunteer : volunteers_) {
        (volunteer->is_removed() ? away : there).push_back(volunteer.get());
      }
      const std::size_t wanted = std::min<std::size_t>(step.volunteers, volunteers_.size());
      if (there.size() == wanted) return;
      const bool is_one_to_go = there.size() > wanted;
      const std::vector<VolunteerProcess*>& drawn = is_one_to_go ? there : away;
      VolunteerProcess& one = *drawn[random_.next_below(drawn.size())];
      is_one_to_go ? one.remove(step.is_told) : one.bring_back();
    }
  }

  void make_relays() {
    constexpr std::size_t kRelayBase = 2'000'000;  // no volunteer's machine
    for (std::size_t i = 0; i < options_.relays.count; ++i) {
      relays_.push_back(std::make_unique<RelayProcess>(context_, master_, kRelayBase + i));
    }
    if (!options_.relays.lie.empty()) {
      // The last volunteer goes to the master.
      const KeyId& victim = volunteers_.back()->identity();
      auto all = relay_lies(victim);
      all.merge(lies_in_sums());
      relays_.front()->tell(all.at(options_.relays.lie), result_.relayed_lies);
    }
    for (std::size_t index = 0; !relays_.empty() && index < volunteers_.size(); ++index) {
      if (index % 4 == 3 && !options_.relays.takes_all) continue;
      volunteers_[index]->go_through(*relays_[index % relays_.size()]);
    }
  }

  void make_liar(std::size_t index) {
    const Strangers& strangers = options_.strangers;
    auto lie = lies().find(strangers.lie);
    if (lie == lies().end()) lie = std::next(lies().begin(), random_.next_below(lies().size()));
    // Two that tell the same lie of the same message would confirm each other: they would collude.
    while (!lies_told_.insert(lie->first).second) {
      if (++lie == lies().end()) lie = lies().begin();
    }
    const std::string name = "v" + std::to_string(index + 1);
    volunteers_[index]->tell(
        lie->second,
        [this, name, mark = "lie." + lie->first](std::optional<RoundIndex> round) {
          log_.mark(mark);
          result_.liars.insert(name);
          if (round) result_.lied_in[name].insert(*round);
        },
        [this, name] { result_.sent_away.insert(name); });
  }

  [[nodiscard]] bool is_over() const { return result_.finished || !log_.violations().empty(); }

  const ClusterOptions& options_;
  Rng random_;
  SimClock clock_;
  SimLog log_;
  Network network_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  ClusterResult result_;
  std::set<std::string> lies_told_;
  SimContext context_;
  MasterProcess master_;
  std::vector<std::unique_ptr<RelayProcess>> relays_;
  FaultInjector::Volunteers volunteers_;
  std::unique_ptr<VolunteerProcess> referee_;
  FaultInjector injector_;
};

}  // namespace

CoreConfig impatient_master() {
  CoreConfig config;
  config.audit = AuditMode::kOff;
  config.heartbeat = Millis(200);
  config.silence = Millis(2'000);
  config.join_timeout = Millis(1'000);
  config.stop_grace = Millis(500);
  config.stall = Millis(20'000);
  config.rows_per_chunk = 3;
  config.batches_per_unit_max = 3;
  config.unit_target = Micros(20'000);
  config.evaluate_chunk = 16;
  return config;
}

volunteer::VolunteerCoreConfig impatient_volunteer() {
  volunteer::VolunteerCoreConfig config;
  config.retry_first = Millis(20);
  config.retry_longest = Millis(1'000);
  config.welcome_deadline = Millis(1'500);
  config.leave_grace = Millis(2'000);
  config.chunks_in_flight = 3;
  return config;
}

ClusterResult run_cluster(const ClusterOptions& options, Workload& workload) {
  return Cluster(options, workload).run();
}

}  // namespace gleaner::sim
