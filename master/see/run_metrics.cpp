#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "master/see/run_api.hpp"
#include "master/see/status_words.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Families {
 public:
  void begin(MetricType type, const char* name, const char* help) {
    all_.push_back({std::string("gleaner_") + name, help, type, {}});
  }

  void add(double value, const char* label = nullptr, std::string_view label_value = {}) {
    ClientMetric metric;
    if (label != nullptr) metric.label.push_back({label, std::string(label_value)});
    (all_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    all_.back().metric.push_back(std::move(metric));
  }

  void counter(const char* name, const char* help, double value) {
    begin(MetricType::Counter, name, help);
    add(value);
  }

  // A figure that was not measured is left out.
  void gauge(const char* name, const char* help, double value) {
    if (value < 0) return;
    begin(MetricType::Gauge, name, help);
    add(value);
  }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, all_);
    return out.str();
  }

 private:
  std::vector<MetricFamily> all_;
};

double count(std::uint64_t value) {
  return static_cast<double>(value);
}

void add_progress(Families& all, const PageView& view) {
  const RunProgress& p = view.status.progress;
  all.begin(MetricType::Gauge, "build_info", "Version of the program.");
  all.add(1, "version", kBuildVersion);
  all.begin(MetricType::Gauge, "stage", "1 for the stage that the run is at, 0 for the others.");
  for (const RunStage stage : {RunStage::kWaiting, RunStage::kTraining, RunStage::kEvaluating,
                               RunStage::kStopping, RunStage::kDone}) {
    all.add(stage == p.stage ? 1 : 0, "stage", stage_name(stage));
  }
  all.gauge("batches_applied", "Batches trained in the run so far.", count(p.batch));
  all.gauge("batches_planned", "Batches of the whole run.", count(p.batches));
  all.gauge("rounds_kept", "Checkpoints made in the run so far.", count(p.round));
  all.gauge("rounds_planned", "Checkpoints of the whole run.", count(p.rounds));
  all.gauge("epochs_planned", "Epochs of the whole run.", p.epochs);
  all.gauge("remaining_seconds", "Forecast of the time until the run is finished.", p.eta_seconds);
  all.gauge("staleness_batches", "Lag in use.", p.staleness);
  all.gauge("loss_nats", "Mean training loss per example, of the last round.", p.loss);
  all.gauge("active_neurons", "Mean active neurons per example, of the last round.", p.active);
  if (const Precision& precision = p.precision; precision.is_measured()) {
    all.begin(MetricType::Gauge, "precision_ratio", "Precision at k of the last evaluation.");
    for (std::size_t d = 0; d < precision.p.size(); ++d) {
      all.add(precision.p[d], "k", std::to_string(Precision::kDepths[d]));
    }
  }
  all.counter("examples_trained_total", "Examples trained in this process's life.",
              count(p.examples));
  if (view.checkpoint_wall_seconds > 0) {
    all.gauge("checkpoint_timestamp_seconds", "When the last checkpoint was kept, since 1970.",
              static_cast<double>(view.checkpoint_wall_seconds));
  }
}

void add_waits(Families& all, const PageView& view) {
  const RunStatus& s = view.status;
  all.gauge("held_up", "1 while something holds the run up.", s.is_held_up ? 1 : 0);
  all.begin(MetricType::Gauge, "wait_seconds",
            "Time since the run's last step, or since what it waits for began, by who can end it.");
  for (const WaitOwner owner :
       {WaitOwner::kOperator, WaitOwner::kVolunteers, WaitOwner::kMaster, WaitOwner::kStore}) {
    all.add(owner == s.wait_owner ? count(s.waits_us) / 1e6 : 0, "owner", owner_name(owner));
  }
  all.begin(MetricType::Counter, "time_seconds_total",
            "Time of this process's life, by what the run waited for.");
  for (std::size_t i = 0; i < kTimeUses; ++i) {
    all.add(view.time_all[i], "use", time_use_name(static_cast<TimeUse>(i)));
  }
}

void add_volunteers(Families& all, const PageView& view, const EventCounts& events) {
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
  all.begin(MetricType::Gauge, "volunteers", "Volunteers that are here.");
  all.add(count(holders), "shards", "some");
  all.add(count(s.progress.volunteers > holders ? s.progress.volunteers - holders : 0), "shards",
          "none");
  all.begin(MetricType::Gauge, "shards", "Shards by the state of their lease.");
  for (const LeaseState state :
       {LeaseState::kFree, LeaseState::kLoading, LeaseState::kReady, LeaseState::kReleasing}) {
    all.add(count(shards[static_cast<std::size_t>(state)]), "state", state_name(state));
  }
  all.gauge("shards_replaying", "Shards that are trained on batches that were trained before.",
            count(replaying));
  all.counter("volunteers_joined_total", "Volunteers that joined.", count(events.joined));
  all.begin(MetricType::Counter, "volunteers_left_total", "Volunteers that left.");
  all.add(count(events.left_politely), "polite", "yes");
  all.add(count(events.left_otherwise), "polite", "no");
  all.begin(MetricType::Counter, "unit_bytes_total", "Bytes of work units and their results.");
  all.add(count(s.progress.unit_bytes_down), "direction", "down");
  all.add(count(s.progress.unit_bytes_up), "direction", "up");
  all.gauge("store_bytes", "What the store takes on its disk.", count(s.store_bytes));
  all.gauge("store_free_bytes", "What is free on the store's disk.", count(s.free_bytes));
}

void add_rest(Families& all, const EventCounts& events, const HttpCounts& http) {
  all.counter("checkpoints_total", "Checkpoints made in this process's life.",
              count(events.checkpoints));
  all.counter("rate_cuts_total", "Rounds that diverged and were trained again at half the rates.",
              count(events.rate_cuts));
  all.begin(MetricType::Counter, "log_lines_total", "Warnings and errors.");
  all.add(count(events.warnings), "level", "warning");
  all.add(count(events.errors), "level", "error");
  all.begin(MetricType::Counter, "http_replies_total",
            "Replies of this server, by what they were.");
  all.add(count(http.answered), "result", "answered");
  all.add(count(http.refused), "result", "refused");
  all.add(count(http.failed), "result", "failed");
  all.gauge("http_connections", "Connections that are open to this server.",
            count(http.connections));
  all.gauge("http_streams", "Readers of its event stream.", count(http.streams));
}

}  // namespace

std::string run_metrics(const PageView& view, const EventCounts& events, const HttpCounts& http) {
  Families all;
  add_progress(all, view);
  add_waits(all, view);
  add_volunteers(all, view, events);
  add_rest(all, events, http);
  return all.text();
}

}  // namespace gleaner
