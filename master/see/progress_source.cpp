#include "master/see/progress_source.hpp"

#include <algorithm>

namespace gleaner {
namespace {

constexpr double kMarkGap = 0.2;
// A shorter time shows chance, not speed.
constexpr double kSecondsMin = 1;
constexpr double kWindowMin = 10;
constexpr double kWindowMax = 600;

constexpr Millis kWindow{10'000};
constexpr Millis kSampleGap{200};
// A shorter time shows chance, not speed.
constexpr Millis kMeasuredMin{1000};

}  // namespace

void Eta::note(const RunProgress& run, Instant now) {
  if (!first_epoch_ && run.stage == RunStage::kTraining) first_epoch_ = run.epoch;
  if (last_ && volunteers_ > 0) {
    const double passed = seconds_in(now - *last_);
    if (stage_ == RunStage::kTraining) trained_ += passed;
    if (stage_ == RunStage::kEvaluating) evaluating_ += passed;
  }
  if (stage_ == RunStage::kEvaluating && run.stage != RunStage::kEvaluating) ++evaluations_;
  if (run.volunteers != volunteers_) marks_.clear();
  last_ = now;
  stage_ = run.stage;
  volunteers_ = run.volunteers;
  if (stage_ == RunStage::kTraining && volunteers_ > 0) note_training(run.batch);
}

void Eta::note_training(BatchIndex batch) {
  if (!marks_.empty() && batch < marks_.back().batch) marks_.clear();  // the run went back
  if (!marks_.empty() && trained_ - marks_.back().trained < kMarkGap) return;
  marks_.push_back({trained_, batch});
  const double window = std::clamp(trained_ / 2, kWindowMin, kWindowMax);
  while (marks_.size() > 2 && trained_ - marks_[1].trained >= window) marks_.pop_front();
  const double seconds = marks_.back().trained - marks_.front().trained;
  const BatchIndex batches = marks_.back().batch - marks_.front().batch;
  if (seconds >= kSecondsMin && batches > 0) per_batch_ = seconds / static_cast<double>(batches);
}

double Eta::seconds(const RunProgress& run) const {
  if (per_batch_ < 0 || run.batch > run.batches) return -1;
  const double training = static_cast<double>(run.batches - run.batch) * per_batch_;
  if (evaluations_ == 0 || run.epoch <= *first_epoch_ || run.epoch > run.epochs) return training;
  const double per_epoch = evaluating_ / (run.epoch - *first_epoch_);
  return training + per_epoch * (run.epochs - run.epoch);
}

void ProgressSource::complete(RunProgress& run, Instant now) {
  measure(run, now);
  eta_.note(run, now);
  run.examples_per_second = examples_per_second_;
  run.bytes_down = bytes_down_;
  run.bytes_up = bytes_up_;
  run.eta_seconds = eta_.seconds(run);
}

void ProgressSource::measure(const RunProgress& run, Instant now) {
  // A pause (an evaluation, a wait) tells nothing about the speed of training: the last measurement
  // stays until there is a newer one.
  const bool is_training = run.stage == RunStage::kTraining && run.waiting_for.empty();
  if (!is_training) {
    samples_.clear();
    return;
  }
  if (!samples_.empty() && now - samples_.back().at < kSampleGap) return;
  samples_.push_back({now, run.examples, run.unit_bytes_down, run.unit_bytes_up});
  // Keeps one sample older than the window, so that the whole window is covered.
  while (samples_.size() > 2 && now - samples_[1].at >= kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  if (last.at - first.at < kMeasuredMin || last.examples <= first.examples) return;
  const auto examples = static_cast<double>(last.examples - first.examples);
  examples_per_second_ = examples / seconds_in(last.at - first.at);
  if (run.volunteers == 0) return;
  const double shares = examples * run.volunteers;
  bytes_down_ = static_cast<double>(last.bytes_down - first.bytes_down) / shares;
  bytes_up_ = static_cast<double>(last.bytes_up - first.bytes_up) / shares;
}

}  // namespace gleaner
