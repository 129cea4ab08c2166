#include "master/see/progress_source.hpp"

#include <algorithm>

namespace gleaner {
namespace {

constexpr double kMarkGap = 0.2;
// Less than this tells of chance, not of speed.
constexpr double kSecondsMin = 1;
constexpr double kWindowMin = 10;
constexpr double kWindowMax = 600;

}  // namespace

void Eta::note(const CoreSnapshot& core, Instant now) {
  if (!first_epoch_ && core.stage == RunStage::kTraining) first_epoch_ = core.epoch;
  if (last_ && volunteers_ > 0) {
    const double passed = seconds_in(now - *last_);
    if (stage_ == RunStage::kTraining) trained_ += passed;
    if (stage_ == RunStage::kEvaluating) evaluating_ += passed;
  }
  if (stage_ == RunStage::kEvaluating && core.stage != RunStage::kEvaluating) ++evaluations_;
  if (core.volunteers.size() != volunteers_) marks_.clear();
  last_ = now;
  stage_ = core.stage;
  volunteers_ = core.volunteers.size();
  if (stage_ == RunStage::kTraining && volunteers_ > 0) note_training(core.batch);
}

void Eta::note_training(BatchIndex batch) {
  if (!marks_.empty() && batch < marks_.back().batch) marks_.clear();  // it went back
  if (!marks_.empty() && trained_ - marks_.back().trained < kMarkGap) return;
  marks_.push_back({trained_, batch});
  const double window = std::clamp(trained_ / 2, kWindowMin, kWindowMax);
  while (marks_.size() > 2 && trained_ - marks_[1].trained >= window) marks_.pop_front();
  const double seconds = marks_.back().trained - marks_.front().trained;
  const BatchIndex batches = marks_.back().batch - marks_.front().batch;
  if (seconds >= kSecondsMin && batches > 0) per_batch_ = seconds / static_cast<double>(batches);
}

double Eta::seconds(const CoreSnapshot& core) const {
  if (per_batch_ < 0 || core.batch > core.batches) return -1;
  const double training = static_cast<double>(core.batches - core.batch) * per_batch_;
  if (evaluations_ == 0 || core.epoch <= *first_epoch_ || core.epoch > core.epochs) return training;
  const double per_epoch = evaluating_ / (core.epoch - *first_epoch_);
  return training + per_epoch * (core.epochs - core.epoch);
}

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
