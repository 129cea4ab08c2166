// Only the messages of training, in their sizes, and its time: for questions about throughput. One
// example of the small model stands for many of the run it models; its messages take as long on the
// network as the modelled ones would (schema/README.md, "Sizes").
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
  double example_us = 100;    // of processor, an example on all shards together
  double pass_us = 0;         // and for each shard that it is passed by
  double input_share = 0.02;  // of that again, on the master, for each pass of the input layer
  // An example in a unit: its activations, which a relay needs once; how many of its labels are in
  // the unit's shards; and all of its labels, of which a unit has those in its shards.
  double activation_bytes = 84;
  double count_bytes = 1;
  double label_bytes = 22;
  double bytes_up = 120;   // of a result, an example
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

  // Examples of the modelled run that one of the small model's stands for.
  [[nodiscard]] std::uint32_t scale() const { return cost_.batch_examples / model_.batch_examples; }

  // Examples that all volunteers trained so far, whether or not it counted, each on all shards of
  // the modelled run.
  [[nodiscard]] double trained_examples() const { return trained_examples_; }

 private:
  [[nodiscard]] double size_of(const Message& message) const;
  [[nodiscard]] double shard_rows() const;

  const CostModel cost_;
  ModelConfig model_;
  double trained_examples_ = 0;
};

}  // namespace gleaner::sim
