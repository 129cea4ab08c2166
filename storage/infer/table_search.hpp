// The best labels among the candidates that the run's hash tables propose: a fraction of the work
// of scoring every neuron, at some loss of recall.  A query's buckets, one per table over the whole
// layer, propose neurons. Scored are the neurons that the most tables propose, and always the
// neurons of the most frequent labels: large weights and high biases let these win often even if
// they do not point in the query's direction, which is all that hashing measures. Scores are exact,
// so a returned logit is the model's to the bit. One thread at a time; queries run on the pool. run
// on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/hash_table.hpp"
#include "common/train/kernels.hpp"
#include "common/train/sim_hash.hpp"
#include "common/work/quantized_activations.hpp"
#include "storage/infer/stored_model.hpp"

namespace gleaner {

class TableSearch {
 public:
  static constexpr std::uint32_t kCandidatesUsual = 512;

  // Reads all output rows of `model`'s store into memory. Scores at most `candidates` proposed
  // neurons, and as many frequent ones. kInvalidArgument when the run has no tables.
  static Result<std::unique_ptr<TableSearch>> open(StoredModel& model, std::uint32_t candidates);

  // codes.examples x model.entries(top_k), in the order of StoredModel::top. If fewer neurons are
  // scored, the remaining entries are label 0 with a logit of minus infinity.
  std::vector<ScoredLabel> top(const QuantizedActivations& codes, std::uint32_t top_k);

 private:
  TableSearch(StoredModel& model, std::uint32_t candidates);

  // Working memory of one thread.
  struct Scratch {
    HashScratch hash;
    std::vector<std::uint32_t> codes;
    AlignedVector<float> hidden;
    std::vector<std::uint16_t> counts;    // by neuron: number of tables that propose it
    std::vector<std::uint32_t> proposed;  // neurons with a count, in the order of discovery
    std::vector<std::uint32_t> by_count;  // number of neurons with each count
    std::vector<ScoredLabel> scored;
  };

  Result<void> load();
  void choose_frequent();
  // Counts the neurons that the query's buckets propose.
  void propose(std::span<const std::uint8_t> hidden, Scratch& scratch) const;
  // Keeps at most candidates_ of the proposed neurons: the ones that most tables propose.
  void select(Scratch& scratch) const;
  void score(std::span<const std::uint32_t> neurons, Scratch& scratch) const;
  void search(const QuantizedActivations& codes, std::size_t example, std::span<ScoredLabel> best,
              Scratch& scratch) const;

  StoredModel& model_;
  const Kernels& kernels_;
  const ModelConfig config_;
  const ShardMap map_;
  const std::uint32_t candidates_;
  const SimHash sim_hash_;
  AlignedVector<float> weights_;  // neurons x H
  std::vector<float> biases_;
  ShardCodes codes_;  // of all neurons
  HashTables tables_;
  std::vector<std::uint32_t> frequent_;    // neurons that are always scored, ascending
  std::vector<std::uint8_t> is_frequent_;  // by neuron
  std::vector<Scratch> scratch_;           // one per thread
};

}  // namespace gleaner
