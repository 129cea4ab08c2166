#include "master/core/round_meter.hpp"

namespace gleaner {

void RoundMeter::begin_round(Instant now) {
  round_started_ = now;
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
}

void RoundMeter::sent(std::uint64_t bytes) {
  unit_bytes_down_ += bytes;
  round_bytes_down_ += bytes;
}

void RoundMeter::received(std::uint64_t bytes) {
  unit_bytes_up_ += bytes;
  round_bytes_up_ += bytes;
}

RoundRecord RoundMeter::record(RoundIndex round, const RunPlan& plan, const RoundSums& sums,
                               std::uint32_t volunteers, Instant now) const {
  RoundRecord record;
  record.checkpoint = round + 1;
  record.batches = plan.round_end(round);
  record.epoch = plan.epochs_done(round + 1);
  record.volunteers = volunteers;
  const auto count = static_cast<double>(sums.examples);
  record.loss = to_nats(sums.loss) / count;
  record.active = static_cast<double>(sums.active) / count;
  record.code_length = sums.code_lengths / count;
  const double seconds = seconds_in(now - round_started_);
  if (seconds > 0) record.examples_per_second = count / seconds;
  if (round_unit_examples_ > 0) {
    const auto carried = static_cast<double>(round_unit_examples_);
    record.bytes_down = static_cast<double>(round_bytes_down_) / carried;
    record.bytes_up = static_cast<double>(round_bytes_up_) / carried;
  }
  return record;
}

}  // namespace gleaner
