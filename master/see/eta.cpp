#include "master/see/eta.hpp"

#include <algorithm>

namespace gleaner {
namespace {

constexpr double kMarkGap = 0.2;
// A shorter time shows chance, not speed.
constexpr double kSecondsMin = 1;
constexpr double kWindowMin = 10;
constexpr double kWindowMax = 600;

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

}  // namespace gleaner
