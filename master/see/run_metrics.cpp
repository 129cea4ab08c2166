// The figures of a run and of its page as Prometheus reads them.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/machine_facts.hpp"
#include "common/os/process.hpp"
#include "master/see/run_api.hpp"
#include "master/see/status_words.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Volunteers with series of their own; the others are added up.
constexpr std::size_t kVolunteerSeries = 100;

// Figures of a volunteer, or sums over volunteers of one name.
struct VolunteerFigures {
  double speed = 0, shards = 0, silent_seconds = 0, examples = 0, bytes_down = 0, bytes_up = 0;
};

class Metrics {
 public:
  // Every metric has the run's name.
  explicit Metrics(const PageView& view) : run_(view.status.name) {}

  void add_progress(const PageView& view);
  void add_waits(const PageView& view);
  void add_volunteers(const PageView& view, const EventCounts& events);
  void add_each_volunteer(const PageView& view);
  void add_rest(const EventCounts& events, const HttpCounts& http);
  void add_backups(const EventCounts& events);

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, all_);
    return out.str();
  }

 private:
  void begin(MetricType type, const char* name, const char* help) {
    all_.push_back({std::string("gleaner_") + name, help, type, {}});
  }

  void add(double value, const char* label = nullptr, std::string_view label_value = {},
           const char* direction = nullptr) {
    ClientMetric metric;
    metric.label.push_back({"run", run_});
    if (label != nullptr) metric.label.push_back({label, std::string(label_value)});
    if (direction != nullptr) metric.label.push_back({"direction", direction});
    (all_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    all_.back().metric.push_back(std::move(metric));
  }

  void counter(const char* name, const char* help, double value) {
    begin(MetricType::Counter, name, help);
    add(value);
  }

  // Leaves out figures that were not measured.
  void gauge(const char* name, const char* help, double value) {
    if (value < 0) return;
    begin(MetricType::Gauge, name, help);
    add(value);
  }

  std::string run_;
  std::vector<MetricFamily> all_;
};

// Negative when unknown.
double resident_bytes() {
  const auto kibibytes = number_after(read_text_file("/proc/self/status").value_or(""), "VmRSS:");
  return kibibytes ? *kibibytes * 1024 : -1;
}

double count(std::uint64_t value) {
  return static_cast<double>(value);
}

}  // namespace

void Metrics::add_progress(const PageView& view) {
  const RunProgress& p = view.status.progress;
  begin(MetricType::Gauge, "build_info", "Version of the program.");
  add(1, "version", kBuildVersion);
  begin(MetricType::Gauge, "stage", "1 for the stage that the run is at, 0 for the others.");
  for (const RunStage stage : {RunStage::kWaiting, RunStage::kTraining, RunStage::kEvaluating,
                               RunStage::kStopping, RunStage::kDone}) {
    add(stage == p.stage ? 1 : 0, "stage", stage_name(stage));
  }
  gauge("batches_applied", "Batches trained in the run so far.", count(p.batch));
  gauge("batches_planned", "Batches of the whole run.", count(p.batches));
  gauge("rounds_kept", "Checkpoints made in the run so far.", count(p.round));
  gauge("rounds_planned", "Checkpoints of the whole run.", count(p.rounds));
  gauge("epochs_planned", "Epochs of the whole run.", p.epochs);
  gauge("remaining_seconds", "Forecast of the time until the run is finished.", p.eta_seconds);
  gauge("staleness_batches", "Lag in use.", p.staleness);
  gauge("loss_nats", "Mean training loss per example, of the last round.", p.loss);
  gauge("active_neurons", "Mean active neurons per example, of the last round.", p.active);
  if (const Precision& precision = p.precision; precision.is_measured()) {
    begin(MetricType::Gauge, "precision_ratio", "Precision at k of the last evaluation.");
    for (std::size_t d = 0; d < precision.p.size(); ++d) {
      add(precision.p[d], "k", std::to_string(Precision::kDepths[d]));
    }
  }
  counter("examples_trained_total", "Examples trained in this process's life.", count(p.examples));
  if (view.checkpoint_wall_seconds > 0) {
    gauge("checkpoint_timestamp_seconds", "When the last checkpoint was kept, since 1970.",
          static_cast<double>(view.checkpoint_wall_seconds));
  }
}

void Metrics::add_waits(const PageView& view) {
  const RunStatus& s = view.status;
  gauge("held_up", "1 while something holds the run up.", s.is_held_up ? 1 : 0);
  begin(MetricType::Gauge, "wait_seconds",
        "Time since the run's last step, or since what it waits for began, by who can end it.");
  for (const WaitOwner owner :
       {WaitOwner::kOperator, WaitOwner::kVolunteers, WaitOwner::kMaster, WaitOwner::kStore}) {
    add(owner == s.wait_owner ? count(s.waits_us) / 1e6 : 0, "owner", owner_name(owner));
  }
  begin(MetricType::Counter, "time_seconds_total",
        "Time of this process's life, by what the run waited for.");
  for (std::size_t i = 0; i < kTimeUses; ++i) {
    add(view.time_all[i], "use", time_use_name(static_cast<TimeUse>(i)));
  }
}

void Metrics::add_volunteers(const PageView& view, const EventCounts& events) {
  const RunStatus& s = view.status;
  std::array<std::uint64_t, 4> shards{};
  std::uint64_t replaying = 0;
  std::vector<bool> holds(s.volunteers.size());
  for (const ShardEntry& shard : s.shards) {
    ++shards[static_cast<std::size_t>(shard.state)];
    if (shard.holder) holds[*shard.holder] = true;
    if (shard.state == LeaseState::kReady && shard.next_batch < s.progress.batch) ++replaying;
  }
  std::uint64_t holders = 0;
  for (const bool holds_one : holds) holders += holds_one ? 1 : 0;
  begin(MetricType::Gauge, "volunteers", "Volunteers that are here.");
  add(count(holders), "shards", "some");
  add(count(s.progress.volunteers > holders ? s.progress.volunteers - holders : 0), "shards",
      "none");
  begin(MetricType::Gauge, "shards", "Shards by the state of their lease.");
  for (const LeaseState state :
       {LeaseState::kFree, LeaseState::kLoading, LeaseState::kReady, LeaseState::kReleasing}) {
    add(count(shards[static_cast<std::size_t>(state)]), "state", state_name(state));
  }
  gauge("shards_replaying", "Shards that are trained on batches that were trained before.",
        count(replaying));
  counter("volunteers_joined_total", "Volunteers that joined.", count(events.joined));
  begin(MetricType::Counter, "volunteers_left_total", "Volunteers that left.");
  add(count(events.left_politely), "polite", "yes");
  add(count(events.left_otherwise), "polite", "no");
  begin(MetricType::Counter, "unit_bytes_total", "Bytes of work units and their results.");
  add(count(s.progress.unit_bytes_down), "direction", "down");
  add(count(s.progress.unit_bytes_up), "direction", "up");
  gauge("store_bytes", "Bytes of the store on its disk.", count(s.store_bytes));
  gauge("store_free_bytes", "Bytes that are free on the store's disk.", count(s.free_bytes));
}

void Metrics::add_each_volunteer(const PageView& view) {
  std::map<std::string, VolunteerFigures> all;
  const auto figures = [&](const std::string& name) -> VolunteerFigures& {
    return all[all.contains(name) || all.size() < kVolunteerSeries ? name : "others"];
  };
  const RunStatus& s = view.status;
  for (const VolunteerEntry& v : s.volunteers) {
    VolunteerFigures& f = figures(v.name);
    f.speed += double{v.speed};
    f.silent_seconds = std::max(f.silent_seconds, count(v.silent_us) / 1e6);
  }
  for (const ShardEntry& shard : s.shards) {
    if (shard.holder) ++figures(s.volunteers[*shard.holder].name).shards;
  }
  for (const AccountRecord& account : view.accounts) {
    VolunteerFigures& f = figures(account.name);
    f.examples += count(account.examples);
    f.bytes_down += count(account.down.all);
    f.bytes_up += count(account.up.all);
  }
  if (all.empty()) return;
  const auto family = [&](MetricType type, const char* name, const char* help,
                          double VolunteerFigures::*field) {
    begin(type, name, help);
    for (const auto& [who, f] : all) add(f.*field, "volunteer", who);
  };
  using F = VolunteerFigures;
  family(MetricType::Gauge, "volunteer_speed", "Examples x shards per second.", &F::speed);
  family(MetricType::Gauge, "volunteer_shards", "Shards that it holds.", &F::shards);
  family(MetricType::Gauge, "volunteer_silent_seconds", "Time since its last message.",
         &F::silent_seconds);
  if (view.accounts.empty()) return;  // also for observers
  family(MetricType::Counter, "volunteer_examples_total", "Examples x shards that it trained.",
         &F::examples);
  begin(MetricType::Counter, "volunteer_bytes_total", "Bytes exchanged with it.");
  for (const auto& [who, f] : all) {
    add(f.bytes_down, "volunteer", who, "down");
    add(f.bytes_up, "volunteer", who, "up");
  }
}

void Metrics::add_backups(const EventCounts& events) {
  counter("backups_total", "Backups made in this process's life.", count(events.backups));
  counter("backup_failures_total", "Backups, and commands after them, that failed.",
          count(events.backup_failures));
  if (events.backup_wall_seconds > 0) {
    gauge("backup_timestamp_seconds", "When the last backup was made, since 1970.",
          static_cast<double>(events.backup_wall_seconds));
  }
}

void Metrics::add_rest(const EventCounts& events, const HttpCounts& http) {
  counter("checkpoints_total", "Checkpoints made in this process's life.",
          count(events.checkpoints));
  gauge("memory_bytes", "Memory of the master's process.", resident_bytes());
  counter("processor_seconds_total", "Processor time of the master's process.",
          os::processor_seconds());
  counter("rate_cuts_total", "Rounds that diverged and were trained again at half the rates.",
          count(events.rate_cuts));
  begin(MetricType::Counter, "log_lines_total", "Warnings and errors.");
  add(count(events.warnings), "level", "warning");
  add(count(events.errors), "level", "error");
  begin(MetricType::Counter, "http_replies_total", "Replies of this server, by what they were.");
  add(count(http.answered), "result", "answered");
  add(count(http.refused), "result", "refused");
  add(count(http.failed), "result", "failed");
  gauge("http_connections", "Connections that are open to this server.", count(http.connections));
  gauge("http_streams", "Readers of its event stream.", count(http.streams));
}

std::string run_metrics(const PageView& view, const EventCounts& events, const HttpCounts& http) {
  Metrics all(view);
  all.add_progress(view);
  all.add_waits(view);
  all.add_volunteers(view, events);
  all.add_each_volunteer(view);
  all.add_backups(events);
  all.add_rest(events, http);
  return all.text();
}

}  // namespace gleaner
