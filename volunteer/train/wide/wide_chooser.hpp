// Chooses which neurons of the wide shards that are held each example of a batch trains.
//
// An example's active set in a shard: its true labels; the shard's part of `active_cap` neurons
// whose weights, of those in the short lists of the example's features, add up to most; and the
// true labels of `random_negatives` other examples of the batch, drawn with replacement, since
// frequent labels have no large weights and are found by no list. With Sampling::kAll it is every
// neuron, with kRandom true labels and drawn ones alone. A shard's set is the same whichever other
// shards are held.
//
// One chooser a thread; reused from batch to batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/output/active_set.hpp"
#include "volunteer/train/wide/wide_index.hpp"
#include "volunteer/train/wide/wide_shard.hpp"

namespace gleaner {

// A batch to be trained.
struct WideBatch {
  BatchIndex batch = 0;
  std::span<const ExampleView> examples;  // of unit length
  const Positives* positives = nullptr;   // that fall in the shards that are asked
  float rate = 0;
};

class alignas(kCacheLine) WideChooser {
 public:
  explicit WideChooser(const ModelConfig& config) : config_(config) {}

  // The pairs of some consecutive examples, for each shard in the order of the examples.
  // `is_asked`: by the place of a shard, whether it is to be trained.
  void choose(const WideBatch& batch, const WideIndex& index,
              std::span<const std::uint8_t> is_asked, ExampleRange examples);

  // The pairs of the shard at `place`.
  [[nodiscard]] std::span<const WidePair> pairs(std::size_t place) const { return pairs_[place]; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Candidate {
    std::uint32_t neuron = 0;
    float score = 0;
  };

  void add(const WideIndex& index, std::uint32_t neuron, std::uint32_t example, bool is_true);
  void add_labels(const WideBatch& batch, const WideIndex& index, std::uint32_t of,
                  std::uint32_t example, bool is_true);
  void add_listed(const WideIndex& index, std::span<const std::uint8_t> is_asked,
                  const ExampleView& view, std::uint32_t example);
  void add_all(const WideIndex& index, std::span<const std::uint8_t> is_asked,
               std::uint32_t example);

  const ModelConfig& config_;
  std::vector<std::vector<WidePair>> pairs_;  // by shard
  std::uint64_t turn_ = 0;                    // one an example
  std::vector<std::uint64_t> last_turns_;     // neurons: the last example that has it
  std::vector<float> scores_;                 // neurons: zero between examples
  std::vector<std::uint32_t> met_;
  std::vector<Candidate> best_;        // shards x their part of the cap
  std::vector<std::uint32_t> counts_;  // of them, by shard
};

}  // namespace gleaner
