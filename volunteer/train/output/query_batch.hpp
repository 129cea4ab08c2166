// The facts about a batch's examples that every shard needs, computed once for all shards held:
// hash codes, and the table at which the walk through the tables begins, which depends on (seed,
// batch, position in the batch) alone. Written by one thread at a time (prepare runs its loop on
// the pool); then any thread reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "common/lsh/sim_hash.hpp"
#include "common/model/model_config.hpp"
#include "common/thread_pool.hpp"
#include "schema/hidden_codes.hpp"

namespace gleaner {

class QueryBatch {
 public:
  // `sim_hash` is null when sampling uses no tables; it outlives the batch.
  QueryBatch(const ModelConfig& config, const SimHash* sim_hash);

  // Computes everything for one batch; `codes` outlives its use.
  void prepare(BatchIndex batch, const HiddenCodes& codes, ThreadPool& pool);

  [[nodiscard]] BatchIndex batch() const { return batch_; }

  [[nodiscard]] std::uint32_t examples() const { return codes_->examples; }

  [[nodiscard]] const HiddenCodes& codes() const { return *codes_; }

  // The example's code in each table.
  [[nodiscard]] std::span<const std::uint32_t> hashes(std::uint32_t example) const {
    return {&hashes_[std::size_t{example} * tables_], tables_};
  }

  // Table at which the walk begins.
  [[nodiscard]] std::uint32_t start_table(std::uint32_t example) const {
    return start_tables_[example];
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  void prepare_example(std::uint32_t example, HashScratch& scratch);

  const ModelConfig& config_;
  const SimHash* sim_hash_;
  std::uint32_t tables_;
  BatchIndex batch_ = 0;
  const HiddenCodes* codes_ = nullptr;
  std::vector<std::uint32_t> hashes_;
  std::vector<std::uint32_t> start_tables_;
  std::vector<HashScratch> scratch_;  // one a worker
};

}  // namespace gleaner
