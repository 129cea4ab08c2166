// The wide shards that are held, trained together: one index over all of them, in which each
// example's neurons are looked up once. What a shard comes to is the same whichever other shards
// are here. One caller at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/wide/wide_chooser.hpp"
#include "volunteer/train/wide/wide_index.hpp"
#include "volunteer/train/wide/wide_shard.hpp"

namespace gleaner {

class WideLayer {
 public:
  // `config` and `pool` outlive the layer.
  WideLayer(const ModelConfig& config, ThreadPool& pool);

  // Makes these, ascending, the shards that are held. They are loaded, and outlive the layer or the
  // next call.
  void hold(std::span<WideShard* const> shards);

  // The short lists are made again before the next step.
  void mark_lists_stale() { are_lists_stale_ = true; }

  // Trains some of the shards that are held, ascending, on a batch. `outcomes`: one a shard.
  void train(const WideBatch& batch, std::span<WideShard* const> shards,
             std::span<ShardOutcome> outcomes);

  // As WideIndex::exact_top, of these shards, ascending.
  std::vector<ScoredNeuron> exact_top(std::span<WideShard* const> shards,
                                      std::span<const ExampleView> examples, std::uint32_t top_k);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // The places of these among those that are held.
  void ask(std::span<WideShard* const> shards);

  ThreadPool& pool_;
  WideIndex index_;
  bool are_lists_stale_ = true;
  std::vector<WideChooser> choosers_;   // one a thread
  std::vector<WideScratch> scratch_;    // one a thread
  std::vector<std::size_t> places_;     // of the shards that are asked
  std::vector<std::uint8_t> is_asked_;  // by place
};

}  // namespace gleaner
