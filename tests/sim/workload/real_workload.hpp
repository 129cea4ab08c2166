// The real worker, persister, store and executor; messages cross the network as bytes.
#pragma once

#include "common/data/packed_dataset.hpp"
#include "common/thread_pool.hpp"
#include "tests/sim/workload/workload.hpp"

namespace gleaner::sim {

class RealWorkload : public Workload {
 public:
  // `train` and `test` outlive the workload.
  RealWorkload(const ModelConfig& model, const PackedDataset& train, const PackedDataset& test);

  Result<Opened> open(std::unique_ptr<Store> disk, const CoreConfig& config,
                      const std::function<void(RunStore&)>& opened) override;
  std::unique_ptr<VolunteerTasks> start_volunteer(std::uint64_t memory_bytes) override;
  void complete(CoreConfig& config) const override;

  [[nodiscard]] const ModelConfig& model() const override { return model_; }

  [[nodiscard]] std::size_t wire_bytes(const Bytes& payload) const override {
    return payload.size();
  }

 private:
  const ModelConfig model_;
  const PackedDataset& train_;
  const PackedDataset& test_;
  const std::vector<std::uint32_t> label_counts_;
  ThreadPool pool_{1};
};

}  // namespace gleaner::sim
