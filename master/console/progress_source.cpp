#include "master/console/progress_source.hpp"

namespace gleaner {
namespace {

constexpr Millis kWindow{10'000};
constexpr Millis kSampleGap{200};
// Less than this tells of chance, not of speed.
constexpr Millis kMeasuredMin{1000};

}  // namespace

RunSnapshot ProgressSource::snapshot(const CoreSnapshot& core, Instant now) {
  measure(core, now);
  eta_.note(core, now);
  RunSnapshot s;
  s.stage = core.stage;
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
  s.eta_seconds = eta_.seconds(core);
  s.waiting_for = core.waiting_for;
  return s;
}

void ProgressSource::measure(const CoreSnapshot& core, Instant now) {
  // A pause (an evaluation, a wait) says nothing about the speed of training: what was measured
  // before it stands until there is something newer.
  const bool is_training = core.stage == RunStage::kTraining && core.waiting_for.empty();
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
  examples_per_second_ = examples / seconds_in(last.at - first.at);
  if (core.volunteers.empty()) return;
  const double shares = examples * static_cast<double>(core.volunteers.size());
  bytes_down_ = static_cast<double>(last.bytes_down - first.bytes_down) / shares;
  bytes_up_ = static_cast<double>(last.bytes_up - first.bytes_up) / shares;
}

}  // namespace gleaner
