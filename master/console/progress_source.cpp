#include "master/console/progress_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gleaner {
namespace {

constexpr Millis kWindow{10'000};
constexpr Millis kSampleGap{200};
// Less than this tells of chance, not of speed.
constexpr Millis kMeasuredMin{1000};

RunPhase phase_of(CoreSnapshot::Phase phase) {
  switch (phase) {
    case CoreSnapshot::Phase::kWaiting:
      return RunPhase::kWaiting;
    case CoreSnapshot::Phase::kTraining:
      return RunPhase::kTraining;
    case CoreSnapshot::Phase::kEvaluating:
      return RunPhase::kEvaluating;
    case CoreSnapshot::Phase::kStopping:
      return RunPhase::kStopping;
    case CoreSnapshot::Phase::kDone:
      return RunPhase::kFinished;
  }
  return RunPhase::kWaiting;
}

LogLevel level_of(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return LogLevel::kInfo;
    case Severity::kWarning:
      return LogLevel::kWarning;
    case Severity::kError:
      return LogLevel::kError;
  }
  return LogLevel::kInfo;
}

struct EventOf {
  const RunShape& shape;

  RunEvent operator()(const VolunteerCame& n) const {
    return VolunteerJoined{n.name, n.peer, n.cores, n.memory_bytes, n.simd, n.volunteers};
  }

  RunEvent operator()(const VolunteerGone& n) const {
    return VolunteerLeft{n.name, n.reason, n.is_polite, n.shards, n.volunteers};
  }

  RunEvent operator()(const CheckpointReached& n) const {
    const RoundRecord& r = n.record;
    CheckpointSaved saved;
    saved.checkpoint = r.round + 1;
    saved.rounds = shape.rounds;
    saved.batches = r.batches;
    saved.epochs_done = r.epoch;
    saved.epochs = shape.epochs;
    saved.ends_epoch = r.batches % shape.batches_per_epoch == 0;
    saved.loss = r.loss;
    saved.active = r.active;
    saved.examples_per_second = r.examples_per_second;
    saved.bytes_down = r.bytes_down;
    saved.bytes_up = r.bytes_up;
    return saved;
  }

  RunEvent operator()(const CheckpointEvaluated& n) const {
    Evaluated evaluated;
    evaluated.checkpoint = n.checkpoint;
    evaluated.epochs_done = n.epoch;
    evaluated.epochs = shape.epochs;
    evaluated.points = n.evaluation.points;
    evaluated.all = n.evaluation.all_points;
    evaluated.precision = n.evaluation.precision;
    evaluated.test_points = n.evaluation.test_points;
    return evaluated;
  }

  RunEvent operator()(const TrainingPaused& n) const { return Paused{n.reason}; }

  RunEvent operator()(const TrainingResumed& n) const {
    return Resumed{static_cast<double>(n.paused.count()) / 1e6};
  }

  RunEvent operator()(const VolunteerConvicted& n) const {
    return LogLine{LogLevel::kError, fmt::format("{} is kept out of this run: {}", n.name, n.what)};
  }

  RunEvent operator()(const RefereeWanted&) const {
    return LogLine{LogLevel::kInfo,
                   "there is nobody to do a volunteer's work again: this process does it"};
  }

  RunEvent operator()(const Remark& n) const { return LogLine{level_of(n.severity), n.text}; }
};

}  // namespace

RunSnapshot ProgressSource::snapshot(const CoreSnapshot& core, Instant now) {
  measure(core, now);
  RunSnapshot s;
  s.phase = phase_of(core.phase);
  s.rounds_done = core.round;
  s.rounds = core.rounds;
  s.batches_done = core.batch;
  s.batches = core.batches;
  s.epochs_done = core.epoch;
  s.epochs = core.epochs;
  s.examples_per_second = examples_per_second_;
  s.loss = core.loss;
  s.active = core.active;
  s.precision = core.last_evaluation.precision;
  s.volunteers = static_cast<std::uint32_t>(core.volunteers.size());
  s.staleness = core.staleness;
  s.bytes_down = bytes_down_;
  s.bytes_up = bytes_up_;
  if (examples_per_second_ > 0 && core.batch <= core.batches) {
    s.eta_seconds = static_cast<double>(core.batches - core.batch) * shape_.batch_examples /
                    examples_per_second_;
  }
  s.waiting_for = core.waiting_for;
  return s;
}

void ProgressSource::measure(const CoreSnapshot& core, Instant now) {
  // A pause (an evaluation, a wait) says nothing about the speed of training: what was measured
  // before it stands until there is something newer.
  const bool is_training = core.phase == CoreSnapshot::Phase::kTraining && core.waiting_for.empty();
  if (!is_training) {
    samples_.clear();
    return;
  }
  if (!samples_.empty() && now - samples_.back().at < kSampleGap) return;
  samples_.push_back({now, core.examples, core.unit_bytes_down, core.unit_bytes_up});
  // One sample older than the window stays, so that the window is covered.
  while (samples_.size() > 2 && now - samples_[1].at >= kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  if (last.at - first.at < kMeasuredMin || last.examples <= first.examples) return;
  const auto examples = static_cast<double>(last.examples - first.examples);
  examples_per_second_ = examples / (static_cast<double>((last.at - first.at).count()) / 1e6);
  if (core.volunteers.empty()) return;
  const double shares = examples * static_cast<double>(core.volunteers.size());
  bytes_down_ = static_cast<double>(last.bytes_down - first.bytes_down) / shares;
  bytes_up_ = static_cast<double>(last.bytes_up - first.bytes_up) / shares;
}

RunEvent ProgressSource::event(const Notice& notice) const {
  return std::visit(EventOf{shape_}, notice);
}

}  // namespace gleaner
