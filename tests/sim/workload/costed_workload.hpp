// The sizes and times of training's messages without their content, for questions about throughput.
// An example of the small model stands for many examples of the modelled run; its messages take as
// long on the network as the modelled run's messages (schema/README.md, "Sizes").
#pragma once

#include "tests/sim/workload/workload.hpp"

namespace gleaner::sim {

// The modelled machine and data: the shape of citeulike-t on machines of one core.
struct CostModel {
  std::uint32_t labels = 52'946;
  std::uint32_t hidden = 128;
  std::uint32_t shards = 16;
  std::uint32_t batch_examples = 256;
  std::uint32_t round_batches = 64;
  std::uint32_t staleness = 16;
  std::uint32_t batches = 64 * 100;
  double example_us = 100;    // of processor per example, on all shards together
  double pass_us = 0;         // per example and shard besides
  double input_share = 0.02;  // fraction of that on the master, per pass of the input layer
  // An example in a unit: its activations, which a relay needs once; the number of its labels in
  // the unit's shards; and all of its labels, as far as they are in the unit's shards.
  double activation_bytes = 84;
  double count_bytes = 1;
  double label_bytes = 22;
  double bytes_up = 120;   // of a result, per example
  double row_bytes = 581;  // of a download
  double commit_row_bytes = 78;
  Micros stage_round{60'000};  // the store's time for a round's commits, all shards
  Micros fold{200'000};
  Micros read_mib{5'000};  // the store's time for a MiB of rows

  // Takes the hidden layer out.
  void make_wide() {
    hidden = 0;
    staleness = 1;
    input_share = activation_bytes = bytes_up = count_bytes = label_bytes = 0;
    commit_row_bytes = 32;
    pass_us = 0.3;
  }
};

class CostedWorkload : public Workload {
 public:
  explicit CostedWorkload(const CostModel& cost);

  Result<Opened> open(std::unique_ptr<Store> disk, const CoreConfig& config,
                      const std::function<void(RunStore&)>& opened) override;
  std::unique_ptr<VolunteerTasks> start_volunteer(std::uint64_t memory_bytes) override;
  void complete(CoreConfig& config) const override;

  [[nodiscard]] const ModelConfig& model() const override { return model_; }

  [[nodiscard]] std::size_t wire_bytes(const Bytes& payload) const override;

  // Examples of the modelled run per example of the small model.
  [[nodiscard]] std::uint32_t scale() const { return cost_.batch_examples / model_.batch_examples; }

  // Examples that all volunteers trained so far on all shards of the modelled run, lost work
  // included.
  [[nodiscard]] double trained_examples() const { return trained_examples_; }

 private:
  [[nodiscard]] double size_of(const Message& message) const;
  [[nodiscard]] double shard_rows() const;

  const CostModel cost_;
  ModelConfig model_;
  double trained_examples_ = 0;
};

}  // namespace gleaner::sim
