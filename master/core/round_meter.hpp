// Measurements of the open round and of this process. No decision about the model depends on them.
// Used from the core only.
#pragma once

#include <cstdint>

#include "common/model/run_plan.hpp"
#include "common/time.hpp"
#include "master/core/pipeline.hpp"
#include "schema/records.hpp"

namespace gleaner {

class RoundMeter {
 public:
  void restart_clock(Instant now) { round_started_ = now; }

  // The next round has been under way since the last one began to close.
  void begin_round(Instant now);

  void batch_applied(std::uint32_t examples) { examples_ += examples; }

  // Bytes of training units and of their results.
  void sent(std::uint64_t bytes);
  void received(std::uint64_t bytes);

  // A volunteer's result covered this number of examples.
  void carried(std::uint64_t examples) { round_unit_examples_ += examples; }

  // One of `shards` was trained on this number of examples, with `volunteers` present.
  void shard_round(std::uint64_t examples, std::uint32_t shards, std::uint32_t volunteers) {
    shard_examples_ += examples;
    examples_ += shard_examples_ / shards;
    shard_examples_ %= shards;
    carried(examples * volunteers / shards);
  }

  [[nodiscard]] RoundRecord record(RoundIndex round, const RunPlan& plan, const RoundSums& sums,
                                   std::uint32_t volunteers, Instant now) const;

  // Since this process started.
  [[nodiscard]] std::uint64_t examples() const { return examples_; }

  [[nodiscard]] std::uint64_t unit_bytes_down() const { return unit_bytes_down_; }

  [[nodiscard]] std::uint64_t unit_bytes_up() const { return unit_bytes_up_; }

 private:
  Instant round_started_{};
  std::uint64_t examples_ = 0;
  // examples x shards that do not yet make an example of all shards
  std::uint64_t shard_examples_ = 0;
  std::uint64_t unit_bytes_down_ = 0, unit_bytes_up_ = 0;
  // In the open round: bytes of units and results, and examples x volunteers they carried.
  std::uint64_t round_bytes_down_ = 0, round_bytes_up_ = 0, round_unit_examples_ = 0;
};

inline void RoundMeter::begin_round(Instant now) {
  round_started_ = now;
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
}

inline void RoundMeter::sent(std::uint64_t bytes) {
  unit_bytes_down_ += bytes;
  round_bytes_down_ += bytes;
}

inline void RoundMeter::received(std::uint64_t bytes) {
  unit_bytes_up_ += bytes;
  round_bytes_up_ += bytes;
}

inline RoundRecord RoundMeter::record(RoundIndex round, const RunPlan& plan, const RoundSums& sums,
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
