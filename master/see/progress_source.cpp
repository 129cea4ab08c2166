#include "master/see/progress_source.hpp"

namespace gleaner {
namespace {

constexpr Millis kWindow{10'000};
constexpr Millis kSampleGap{200};
// A shorter time shows chance, not speed.
constexpr Millis kMeasuredMin{1000};

}  // namespace

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
