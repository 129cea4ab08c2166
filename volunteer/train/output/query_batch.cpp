#include "volunteer/train/output/query_batch.hpp"

#include "common/check.hpp"
#include "common/counter_random.hpp"

namespace gleaner {

QueryBatch::QueryBatch(const ModelConfig& config, const SimHash* sim_hash)
    : config_(config), sim_hash_(sim_hash), tables_(sim_hash == nullptr ? 0 : config.tables) {}

void QueryBatch::prepare(BatchIndex batch, const HiddenCodes& codes, ThreadPool& pool) {
  GLEANER_CHECK(codes.hidden == config_.hidden);
  batch_ = batch;
  codes_ = &codes;
  if (sim_hash_ == nullptr) return;
  hashes_.resize(std::size_t{codes.examples} * tables_);
  start_tables_.resize(codes.examples);
  scratch_.resize(pool.threads());
  pool.parallel_for(codes.examples, [this](std::size_t example, unsigned worker) {
    prepare_example(static_cast<std::uint32_t>(example), scratch_[worker]);
  });
}

void QueryBatch::prepare_example(std::uint32_t example, HashScratch& scratch) {
  const std::size_t first = std::size_t{example} * tables_;
  const std::span<const std::uint8_t> hidden(
      codes_->codes.data() + std::size_t{example} * config_.hidden, config_.hidden);
  sim_hash_->hash_query(hidden, std::span(hashes_).subspan(first, tables_), scratch);
  start_tables_[example] = static_cast<std::uint32_t>(
      below(counter_random(config_.seed, Purpose::kStartTable, batch_, example), tables_));
}

std::uint64_t QueryBatch::memory_bytes() const {
  return (hashes_.capacity() + start_tables_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gleaner
